"""Canonical JSON (RFC 8785) of values that untrusted agents and models wrote.

RFC 8785 takes I-JSON only. What it refuses is replaced, the same way on every machine,
so that an agent cannot make its own run impossible to record:

- an integer outside ±(2**53-1) becomes its decimal text,
- NaN and the infinities become the texts "NaN", "Infinity", "-Infinity",
- a lone surrogate becomes its escape as six plain characters, as in the text \\ud800,
- what is nested deeper than `MAX_DEPTH` becomes the text "[nested too deep]".
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import rfc8785

from scoring.types import Json

MAX_DEPTH = 100
_MAX_INT = 2**53 - 1


def canonical(value: Json) -> bytes:
    """The one byte form of `value`. Raises TypeError on what is not JSON."""
    return rfc8785.dumps(ijson(value))


def ijson(value: Json, depth: int = 0) -> Json:
    """`value` with everything replaced that I-JSON cannot hold."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return value if -_MAX_INT <= value <= _MAX_INT else _decimal(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if depth >= MAX_DEPTH:
        return "[nested too deep]"
    if isinstance(value, (list, tuple)):
        return [ijson(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return {_text(key): ijson(item, depth + 1) for key, item in value.items()}
    raise TypeError(f"not a JSON value: {type(value).__name__}")


def _text(value: str) -> str:
    if value.isascii():
        return value
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def _decimal(value: int) -> str:
    """Decimal text, in hexadecimal beyond what Python prints in reasonable time."""
    return str(value) if value.bit_length() < 4096 else hex(value)
