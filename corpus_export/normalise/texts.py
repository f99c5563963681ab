"""The text forms of the corpus: arguments and observations, the same from both dialects."""

from __future__ import annotations

import json

from sandbox.provenance import WrittenCall
from sandbox.provenance.tags import read_json
from sandbox.strict_json import check_text, harmless, harmless_text
from scoring.types import Json


def arguments_text(written: WrittenCall) -> str:
    """The arguments of a call: canonical JSON of the object, else what was emitted.

    Keys sorted, no spaces; the values are the model's, types and all.
    """
    if written.arguments is not None:
        return compact(written.arguments, sort_keys=True)
    raw = written.written
    return clean(raw) if isinstance(raw, str) else compact(raw)


def observation_text(value: Json) -> str:
    """What a row shows of a result: a text as it is, any other value as compact JSON."""
    return clean(value) if isinstance(value, str) else compact(value)


def observation_value(text: str) -> Json:
    """The value that an agent shows as `text`: what it is as JSON, else the text itself."""
    if text[:1] not in _JSON_STARTS:
        return text
    value = read_json(text)
    return text if value is None and text.strip() != "null" else value


_JSON_STARTS = frozenset('{["-0123456789tfn \n')


def in_tool_order(value: Json, depth: int = 4) -> Json:
    """An answer as the tools write it: a record sorts keys, and makes of the price 99.0 a 99."""
    if isinstance(value, list):
        return [in_tool_order(item, depth) for item in value]
    if not isinstance(value, dict) or depth == 0:
        return value
    known = [key for key in _KEYS if key in value]
    rest = [key for key in value if key not in _KEYS]
    ordered = {key: in_tool_order(value[key], depth - 1) for key in (*known, *rest)}
    price = ordered.get("price")
    return ordered | {"price": float(price)} if type(price) is int else ordered


_KEYS = (
    *("product_id", "shop_id", "title", "price", "service", "sold_count"),
    *("short_description", "description", "attributes", "sku_options"),
    *("found", "matched", "matches", "mismatches", "product_summary", "products", "shops_tried"),
    *("prices", "total_before", "discount_amount", "total_after", "within_budget"),
    *("voucher_applied", "budget", "error"),
)


def compact(value: Json, *, sort_keys: bool = False) -> str:
    """Compact JSON text, with nothing in it that UTF-8 or Postgres cannot hold."""
    try:
        text = _dumps(value, sort_keys)
        check_text(text)
        if "\\u0000" not in text:
            return text
    except (ValueError, RecursionError):
        pass
    return _dumps(harmless(value), sort_keys)


def clean(text: str) -> str:
    """A text without NUL bytes and lone surrogates."""
    try:
        check_text(text)
    except ValueError:
        return harmless_text(text)
    return text


def _dumps(value: Json, sort_keys: bool) -> str:
    return json.dumps(
        value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=sort_keys
    )
