"""Whose fault a failed model call was, told from what the provider said.

A provider that is overloaded, broken, unreachable or refuses our key is the
validator's business. A request that it refuses as wrong is the agent's: every agent
writes its own requests.
"""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import Mapping

import httpx2

from sandbox.exceptions import Fault, ModelError

RATE_LIMITED = "model.rate_limited"
UNAVAILABLE = "model.unavailable"
TIMEOUT = "model.timeout"
UNREACHABLE = "model.unreachable"
BROKEN_ANSWER = "model.broken_answer"
EMPTY_ANSWER = "model.empty_answer"
KEY_REFUSED = "model.key_refused"
NO_FUNDS = "model.no_funds"
NOT_SERVED = "model.not_served"
BAD_REQUEST = "model.bad_request"
TOO_LONG = "model.context_too_long"
UNKNOWN_MODEL = "model.unknown"
POISONOUS = "model.fails_on_request"
"""A server that is sound fails on this request and on no other."""

_LASTING = frozenset({KEY_REFUSED, NO_FUNDS, NOT_SERVED})
_MAX_PROVIDER_TEXT = 500
CONNECT_S = 10.0


class ProviderError(ModelError):
    """What one provider answered instead of a completion."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        fault: Fault = Fault.VALIDATOR,
        retry_after_s: float | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message, code=code, fault=fault, remedy=remedy)
        self.retry_after_s = retry_after_s

    @property
    def lasting(self) -> bool:
        """Whether only the operator can mend it, so that trying again is idle."""
        return self.code in _LASTING


def from_status(status: int, message: str, headers: Mapping[str, str]) -> ProviderError:
    """Classify an HTTP status of a provider. `message` is the provider's own text."""
    said = f"HTTP {status}: {message[:_MAX_PROVIDER_TEXT]}"
    retry_after = retry_after_s(headers)
    if status == 429 and "request too large" in message.lower():
        # More than the account may ever ask for at once: waiting does not help.
        return ProviderError(said, code=TOO_LONG, fault=Fault.AGENT)
    if status == 429:
        return ProviderError(said, code=RATE_LIMITED, retry_after_s=retry_after)
    if status in (401, 403):
        return ProviderError(said, code=KEY_REFUSED, remedy="check the key of this route")
    if status == 402:
        return ProviderError(said, code=NO_FUNDS, remedy="fund the account of this route")
    if status in (404, 405):
        return ProviderError(
            said, code=NOT_SERVED, remedy="check base_url and upstream_model of this route"
        )
    if status in (408, 409, 425) or status >= 500 or status < 400:
        return ProviderError(said, code=UNAVAILABLE, retry_after_s=retry_after)
    code = TOO_LONG if status == 413 or _says_too_long(message) else BAD_REQUEST
    return ProviderError(said, code=code, fault=Fault.AGENT)


def connect_soon(timeout_s: float) -> httpx2.Timeout:
    """Time-outs of one try: a server that does not even accept is given up sooner."""
    return httpx2.Timeout(timeout_s, connect=min(timeout_s, CONNECT_S))


def timed_out(timeout_s: float) -> ProviderError:
    """No answer in time."""
    return ProviderError(f"no answer in {timeout_s:.0f} s", code=TIMEOUT)


def unreachable(error: Exception) -> ProviderError:
    """No connection, or one that broke off before the answer was whole.

    The SDKs report both as one error and keep httpx's as its cause.
    """
    cause = error.__cause__ or error
    if isinstance(cause, httpx2.RemoteProtocolError | httpx2.ReadError | httpx2.DecodingError):
        return broken(f"broke off: {type(cause).__name__}")
    return ProviderError(f"cannot reach it: {type(cause).__name__}", code=UNREACHABLE)


def broken(what: str) -> ProviderError:
    """An answer that is none."""
    return ProviderError(f"its answer {what}", code=BROKEN_ANSWER)


def provider_text(body: object, otherwise: str) -> str:
    """What a provider says in the body of an error."""
    if isinstance(body, dict):
        message = body.get("message")
        return message if isinstance(message, str) else provider_text(body.get("error"), otherwise)
    return body if isinstance(body, str) and body else otherwise


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds of a Retry-After header (RFC 9110 section 10.2.3: seconds or a date)."""
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _says_too_long(message: str) -> bool:
    lowered = message.lower()
    return any(
        phrase in lowered
        for phrase in ("context length", "context_length", "context window", "too long")
    )
