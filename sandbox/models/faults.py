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

_LASTING = frozenset({KEY_REFUSED, NO_FUNDS, NOT_SERVED})
_MAX_PROVIDER_TEXT = 500


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
