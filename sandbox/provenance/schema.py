"""What a request for a completion forces, besides its messages: schemas and `tool_choice`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from sandbox.provenance.passages import phrase
from sandbox.provenance.tags import read_call
from scoring.types import Json, JsonObject

MAX_NODES = 100_000
"""Values of one request that are looked at; the gateway's body limit is well below."""
_FORCING = frozenset({"const", "enum"})


class Request:
    """The parameters of one request: what they force, and the texts they hold."""

    def __init__(self, params: JsonObject) -> None:
        self._params = params if isinstance(params, dict) else {}
        self._forced: dict[str, frozenset[str]] = {}

    @cached_property
    def forced_tool(self) -> str | None:
        """The one tool that the model had to call, if it had no choice."""
        choice = self._params.get("tool_choice")
        if choice in ("none", "auto", None):
            return None
        if isinstance(choice, str):
            offered = self.declared_tools
        else:
            offered = list(dict.fromkeys(_names(choice)))
        return offered[0] if len(offered) == 1 else None

    @cached_property
    def declared_tools(self) -> list[str]:
        """The names of the tools that the request declares."""
        return [name for name, _ in self._tools]

    def forced_values(self, tool: str) -> frozenset[str]:
        """The values (phrases) to which a schema limits the arguments of `tool`."""
        if tool not in self._forced:
            schemas: list[Json] = [schema for name, schema in self._tools if name == tool]
            schemas += [v for k, v in self._params.items() if k not in ("tools", "tool_choice")]
            texts = (text for schema in schemas for text in _forcing(schema))
            self._forced[tool] = frozenset(phrase(text) for text in texts)
        return self._forced[tool]

    def texts(self) -> Iterator[str]:
        """The texts of the request outside its messages, one for each tool and parameter."""
        for _, schema in self._tools:
            yield "\n".join(strings(schema))
        for key, value in self._params.items():
            if key not in ("tools", "model"):
                yield "\n".join(strings(value))

    @cached_property
    def _tools(self) -> list[tuple[str, Json]]:
        declared = self._params.get("tools")
        found: list[tuple[str, Json]] = []
        for item in declared if isinstance(declared, list) else ():
            call = read_call(item)
            if call is not None:
                found.append((call.name, item))
        return found


def _names(choice: Json) -> Iterator[str]:
    for key, value in _walk(choice):
        if key == "name" and isinstance(value, str):
            yield value.strip()


def _forcing(schema: Json) -> Iterator[str]:
    for key, value in _walk(schema):
        if key in _FORCING:
            yield from strings(value)


def strings(value: Json) -> Iterator[str]:
    """The keys and plain values inside, in reading order."""
    for key, inner in _walk(value):
        if key:
            yield key
        if isinstance(inner, str):
            yield inner
        elif isinstance(inner, int | float) and not isinstance(inner, bool):
            yield str(inner) if abs(inner) < 1e15 else ""


def _walk(value: Json) -> Iterator[tuple[str, Json]]:
    """Every value inside, in reading order, with the key it stands under; no recursion."""
    stack: list[tuple[str, Json]] = [("", value)]
    for _ in range(MAX_NODES):
        if not stack:
            return
        key, current = stack.pop()
        yield key, current
        if isinstance(current, dict):
            stack += [(str(k), v) for k, v in reversed(current.items())]
        elif isinstance(current, list):
            stack += [("", v) for v in reversed(current)]
