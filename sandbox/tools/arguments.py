"""Reading the arguments of a tool call: bounded, typed, and never trusted.

Models send numbers for ids, lists for comma lists and objects for JSON text.
Where the meaning is plain it is taken; everything else is a `ToolError` that names
the argument, because the agent reads it and can mend its call.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from sandbox.exceptions import ToolError
from sandbox.strict_json import harmless
from scoring.types import Json, JsonObject

MAX_QUERY_CHARS = 8_192
"""A search query; the longest real problem text has under 2,000."""
MAX_TEXT_CHARS = 65_536
"""Any other text argument, such as `product_queries`."""
MAX_IDS = 50
"""Products in one call; as many as one search can ever list."""
MAX_SPECS = 20
"""Products asked for in one `find_products_in_same_shop`."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The argument object of one call to the tool `tool`."""

    tool: str
    values: Mapping[str, Json]

    def only(self, *names: str) -> None:
        """Refuse arguments that the tool does not take. Raises ToolError."""
        extra = [name for name in self.values if name not in names]
        if extra:
            known = ", ".join(names)
            raise ToolError(f"{self.tool} takes {known}; not {extra[0][:100]!r}")

    def text(self, name: str, *, limit: int = MAX_TEXT_CHARS) -> str | None:
        """A text; numbers are read as their text. None when absent. Raises ToolError."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ToolError(f"{self.tool}: {name} must be text")
        return self._bounded(name, str(value), limit)

    def required_text(self, name: str, *, limit: int = MAX_TEXT_CHARS) -> str:
        """`text`, but absent is a ToolError."""
        value = self.text(name, limit=limit)
        if value is None:
            raise ToolError(f"{self.tool}: {name} is missing")
        return value

    def comma_list(self, name: str) -> str | None:
        """A comma list as text; a JSON list of texts or numbers is joined. Raises ToolError."""
        value = self.values.get(name)
        if not isinstance(value, list):
            return self.text(name)
        if any(isinstance(item, bool) or not isinstance(item, str | int | float) for item in value):
            raise ToolError(f"{self.tool}: {name} must be a comma-separated list")
        return self._bounded(name, ",".join(str(item) for item in value), MAX_TEXT_CHARS)

    def required_comma_list(self, name: str) -> str:
        """`comma_list`, but absent is a ToolError."""
        value = self.comma_list(name)
        if value is None:
            raise ToolError(f"{self.tool}: {name} is missing")
        return value

    def page(self, name: str = "page") -> int:
        """A page number, 1 when absent. Raises ToolError when it is no whole number."""
        value = self.values.get(name, 1)
        if isinstance(value, str):
            value = _number(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ToolError(f"{self.tool}: {name} must be a whole number from 1 to 5")
        return value

    def number(self, name: str, default: float | None = None) -> int | float:
        """A finite number of the type that was sent. Raises ToolError."""
        value = self.values.get(name)
        if value is None:
            value = default
        if isinstance(value, str):
            value = _number(value)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
            or abs(value) > 1e15
        ):
            raise ToolError(f"{self.tool}: {name} must be a number")
        return value

    def _bounded(self, name: str, text: str, limit: int) -> str:
        if len(text) > limit:
            raise ToolError(f"{self.tool}: {name} is longer than {limit:,} characters")
        return text


def split_ids(tool: str, text: str) -> list[str]:
    """The ids of a comma list, stripped, empty ones left out. Raises ToolError over 50."""
    ids = [part.strip() for part in text.split(",")]
    ids = [part for part in ids if part]
    if len(ids) > MAX_IDS:
        raise ToolError(f"{tool}: more than {MAX_IDS} ids in one call")
    return ids


def read_json_text(value: Json) -> Json:
    """JSON text decoded; an object or a list given directly is taken as it is.

    Escapes in the text may stand for NUL bytes and lone surrogates, which no search
    engine and no record can hold: they are replaced. Raises ValueError on broken JSON,
    on NaN and on nesting beyond the parser's depth.
    """
    if not isinstance(value, str):
        return value
    try:
        decoded: Json = json.loads(value, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return harmless(decoded)


def as_object(value: Json) -> JsonObject | None:
    """The value when it is a JSON object, else None."""
    return value if isinstance(value, dict) else None


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
