"""JSON from people who mean harm: read strictly, or made harmless.

What the recorder keeps is hashed as canonical JSON (RFC 8785), stored in Postgres and
sent over HTTP. So it may hold no NUL byte, no lone surrogate, no NaN, no number beyond
2**53 - 1 in size, no key twice, and no nesting that breaks a parser. `read` refuses
such text from an agent with a clear reason; `harmless` mends it in the answer of a model
provider, which nobody can ask to try again.
"""

from __future__ import annotations

import json
import math
from typing import NoReturn

from scoring.types import Json

MAX_DEPTH = 64
"""Levels of lists and objects; a tool schema needs about ten."""
MAX_INTEGER = 2**53 - 1
"""The largest whole number that every JSON reader agrees on (RFC 7493)."""
MAX_VALUES = 1_000_000
"""Commas and opening brackets in one text: ten megabytes of `{},` would fill 200 of memory."""
REPLACEMENT = "�"


def read(data: bytes) -> Json:
    """Decode UTF-8 JSON. Raises ValueError with a one-line reason."""
    if len(data) > MAX_VALUES and data.count(b",") + data.count(b"[") > MAX_VALUES:
        raise ValueError(f"holds more than {MAX_VALUES:,} values")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from None
    try:
        value: Json = json.loads(
            text,
            object_pairs_hook=_no_twins,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_exact,
        )
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at character {error.pos}") from None
    _check(value)
    return value


def check_text(text: str) -> None:
    """Refuse NUL bytes and lone surrogates. Raises ValueError."""
    if "\x00" in text:
        raise ValueError("holds a NUL byte")
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError("holds a lone surrogate") from None


def harmless_text(text: str) -> str:
    """The text with NUL bytes and lone surrogates replaced by U+FFFD."""
    if "\x00" in text:
        text = text.replace("\x00", REPLACEMENT)
    if text.isascii():
        return text
    # A surrogate pair that was escaped in two halves becomes its character again.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def harmless(value: Json, *, depth: int = MAX_DEPTH) -> Json:
    """A copy that canonical JSON, Postgres and HTTP can hold.

    Texts are mended, numbers without an exact JSON form become None (NaN, infinity) or
    the nearest float, and what is nested deeper than `depth` becomes None.
    """
    match value:
        case str():
            return harmless_text(value)
        case bool() | None:
            return value
        case int():
            return value if abs(value) <= MAX_INTEGER else _as_float(value)
        case float():
            return value if math.isfinite(value) else None
        case list():
            return [harmless(v, depth=depth - 1) for v in value] if depth > 0 else None
        case dict():
            if depth <= 0:
                return None
            return {harmless_text(k): harmless(v, depth=depth - 1) for k, v in value.items()}


def dump(value: Json) -> bytes:
    """Compact UTF-8 JSON. What UTF-8 or Postgres cannot hold is made harmless."""
    return dump_as_sent(value)[0]


def dump_as_sent(value: Json) -> tuple[bytes, Json]:
    """`dump`, and the value that the bytes stand for (a mended copy where it had to be)."""
    try:
        data = _encode(value)
        if b"\\u0000" not in data:
            return data, value
    except ValueError:  # a lone surrogate or NaN; UnicodeEncodeError is a ValueError
        pass
    mended = harmless(value)
    return _encode(mended), mended


def _encode(value: Json) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8")


def _check(root: Json) -> None:
    # Level by level and not by recursion: the depth is what is being checked.
    level: list[Json] = [root]
    depth = 0
    while level:
        below: list[Json] = []
        nested = False
        for value in level:
            if isinstance(value, str):
                check_text(value)
            elif isinstance(value, list):
                nested = True
                below.extend(value)
            elif isinstance(value, dict):
                nested = True
                for key in value:
                    check_text(key)
                below.extend(value.values())
        depth += nested
        if depth > MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
        level = below


def _no_twins(pairs: list[tuple[str, Json]]) -> Json:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key[:100]!r} stands twice in one object")
            seen.add(key)
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _exact(text: str) -> int:
    # Length first: Python reads a million digits in quadratic time.
    if len(text) > 17 or abs(int(text)) > MAX_INTEGER:
        raise ValueError("a number is too large")
    return int(text)


def _as_float(value: int) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None
