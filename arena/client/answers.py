"""Answers read with suspicion: bounded, and every refusal an exception with its code."""

from __future__ import annotations

import json
import re
from typing import Any, Final, cast

import httpx
from oro_sdk.retry import parse_retry_after

from arena.client.exceptions import (
    COOLDOWN,
    SKEW,
    AnswerError,
    ArenaApiError,
    ClockSkewError,
    RateLimitedError,
    RefusedError,
    UnavailableError,
)
from scoring.types import JsonObject

MAX_ANSWER: Final = 64 << 20
"""The longest answer of the API that is read, in bytes: problems of one evaluation."""
_MAX_DETAIL: Final = 500
_MAX_ITEMS: Final = 5
_CODE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,59}")


async def read_bounded(response: httpx.Response, limit: int) -> bytes:
    """The body. Raises AnswerError when it has more than `limit` bytes."""
    parts: list[bytes] = []
    seen = 0
    async for chunk in response.aiter_bytes():
        seen += len(chunk)
        if seen > limit:
            raise AnswerError(f"an answer has more than {limit} bytes")
        parts.append(chunk)
    return b"".join(parts)


def refusal(response: httpx.Response, body: bytes, skew_s: float | None = None) -> ArenaApiError:
    """What an answer of 400 and above says. `skew_s`: the arena's clock minus ours."""
    retry_after = parse_retry_after(response)
    value = _object(body)
    detail = _detail(value.get("detail"))
    status = response.status_code
    if status >= 500:
        said = f": {detail}" if detail else ""
        return UnavailableError(f"the arena answers {status}{said}", retry_after=retry_after)
    code = value.get("error_code")
    if not (isinstance(code, str) and _CODE.fullmatch(code)):
        code = "VALIDATION_ERROR" if status == 422 else f"HTTP_{status}"
    message = detail or f"the arena answers {status}"
    kind: type[RefusedError] = RefusedError
    remedy = None
    if code == SKEW:
        kind = ClockSkewError
        message = _skewed(skew_s)
        remedy = "set the clock: timedatectl set-ntp true"
    elif status == 429 and code != COOLDOWN:
        kind = RateLimitedError
    return kind(message, code, status=status, body=value, retry_after=retry_after, remedy=remedy)


def _skewed(skew_s: float | None) -> str:
    if skew_s is None:
        return "this machine's clock is too far from the arena's"
    side = "behind" if skew_s > 0 else "ahead of"
    return f"this machine's clock is {abs(skew_s):.0f} s {side} the arena's"


def _object(body: bytes) -> JsonObject:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _detail(value: Any) -> str:
    """One printable line of what an answer says is wrong: a text, or FastAPI's list."""
    if isinstance(value, list):
        items = [item for item in value[:_MAX_ITEMS] if isinstance(item, dict)]
        value = "; ".join(f"{_place(item.get('loc'))}{item.get('msg', '')}" for item in items)
    if not isinstance(value, str):
        return ""
    line = " ".join(value[: 4 * _MAX_DETAIL].split())
    return "".join(c if c.isprintable() else "�" for c in line)[:_MAX_DETAIL]


def _place(loc: Any) -> str:
    return ".".join(str(part)[:100] for part in loc[:8]) + ": " if isinstance(loc, list) else ""
