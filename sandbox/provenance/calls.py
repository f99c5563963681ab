"""When are two tool calls the same call?

A model writes a call as JSON; code carries it to the wire as a query string. In
between, numbers become text, defaults appear or vanish and `q` is quoted once or
twice. `normalise` removes exactly those differences and no others: nothing is case
folded and lists keep their order.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import unquote_plus

from sandbox.provenance.tags import read_json

FIND = "find_product"
VIEW = "view_product_information"
CHECK = "check_product_match"
SAME_SHOP = "find_products_in_same_shop"
VOUCHER = "calculate_voucher"
RECOMMEND = "recommend_product"
TERMINATE = "terminate"

TOOLS = (FIND, VIEW, CHECK, SAME_SHOP, VOUCHER, RECOMMEND, TERMINATE)
"""The seven tools. Any other is the miner's invention, or the model's."""

RETRIEVALS = frozenset({FIND, VIEW, CHECK, SAME_SHOP})

DEFAULTS: dict[str, dict[str, str]] = {
    FIND: {"page": "1", "sort": "default", "service": "default"},
    VOUCHER: {"cap": "0"},
    TERMINATE: {"status": "success"},
}
"""Argument values that say the same as leaving the argument out."""

COMMA_LISTS = frozenset({"product_ids", "product_prices", "service"})
"""Arguments that hold several values, as a comma list or as a JSON list."""

MAX_DEPTH = 24
"""Arguments nested deeper are not compared: such a call equals no other."""

Value: TypeAlias = "str | list[Value] | dict[str, Value]"
_DECIMAL = re.compile(r"-?\d{1,40}\.\d{1,40}")


class _UnreadableError(Exception):
    """Arguments that cannot be compared."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call in normal form. Calls with equal `key` are the same call.

    `key` is None when the arguments cannot be compared; such a call pays nothing and
    nothing pays it.
    """

    name: str
    arguments: dict[str, Value] = field(hash=False)
    key: str | None

    def text(self, argument: str) -> str:
        """The argument when it is a plain text, else the empty string."""
        value = self.arguments.get(argument, "")
        return value if isinstance(value, str) else ""

    def without(self, *names: str, **changed: str) -> Call:
        """The same call with arguments left out, and others changed."""
        kept = {k: v for k, v in self.arguments.items() if k not in names}
        return normalise(self.name, kept | changed)


def normalise(name: str, arguments: Any) -> Call:
    """The normal form of a call. Idempotent; never raises, whatever the types.

    `arguments` is a JSON object, or None for unreadable ones. Raises nothing: what
    cannot be compared gives a call whose key is None.
    """
    name = name.strip()
    if not isinstance(arguments, dict):
        return Call(name, {}, None)
    try:
        normal = _arguments(name, arguments)
        text = json.dumps([name, normal], sort_keys=True)
    except (_UnreadableError, RecursionError):
        return Call(name, {}, None)
    return Call(name, normal, hashlib.sha256(text.encode()).hexdigest())


def leaves(value: Value) -> Iterable[str]:
    """The texts inside a normalised value, depth first."""
    if isinstance(value, str):
        yield value
        return
    for inner in value.values() if isinstance(value, dict) else value:
        yield from leaves(inner)


def _arguments(name: str, arguments: dict[Any, Any]) -> dict[str, Value]:
    defaults = DEFAULTS.get(name, {})
    normal: dict[str, Value] = {}
    for key, value in arguments.items():
        if value is None:
            continue
        argument = _scalar(key)
        shown = _argument(argument, value)
        if shown not in ("", defaults.get(argument)):
            normal[argument] = shown
    return normal


def _argument(argument: str, value: Any) -> Value:
    if isinstance(value, str):
        text = value.strip()
        parsed = read_json(text) if text[:1] in ("{", "[") else None
        value = text if parsed is None else parsed
    if argument in COMMA_LISTS and not isinstance(value, dict):
        parts = value if isinstance(value, list) else _scalar(value).split(",")
        return ",".join(part for p in parts for part in _list_parts(argument, p))
    if argument == "q" and not isinstance(value, list | dict):
        return _number(_url_decoded(_scalar(value)))
    return _value(value, MAX_DEPTH)


def _list_parts(argument: str, item: Any) -> Iterable[str]:
    # An item may hold commas itself: `["1,2", 3]` is three ids.
    dropped = ("", "default") if argument == "service" else ("",)
    parts = (_number(p.strip()) for p in _scalar(item).split(","))
    return (p for p in parts if p not in dropped)


def _value(value: Any, depth: int) -> Value:
    if depth == 0:
        raise _UnreadableError
    if isinstance(value, dict):
        pairs = ((_scalar(k), _value(v, depth - 1)) for k, v in value.items() if v is not None)
        return {k: v for k, v in pairs if v != ""}
    if isinstance(value, list | tuple):
        return [_value(v, depth - 1) for v in value if v is not None]
    return _scalar(value)


def _scalar(value: Any) -> str:
    """A scalar as text: as JSON writes it, whole floats and decimals without spare zeros."""
    if isinstance(value, str):
        return _number(value.strip())
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        # Python refuses to write integers of more than 4,300 digits.
        return str(value) if value.bit_length() < 4096 else hex(value)
    if isinstance(value, float):
        return _number(repr(value))
    raise _UnreadableError


def _number(text: str) -> str:
    if _DECIMAL.fullmatch(text):
        return text.rstrip("0").rstrip(".")
    return text


def _url_decoded(q: str) -> str:
    """`q` as the search means it: agents quote it, and their HTTP client once more.

    Decoded up to twice. A text that would still change is no such quoting and stays
    as it came, which keeps the normal form a fixed point.
    """
    decoded = unquote_plus(unquote_plus(q))
    shown = decoded if unquote_plus(decoded) == decoded else q
    return " ".join(shown.split())
