"""What a client of the arena's API can be told: refusals, silence, and answers that are none.

`code` is `api.` and the arena's own code in lower case; `error_code` is that code as it came.
"""

from __future__ import annotations

from typing import Final

from arena.exceptions import ArenaError, Fault
from scoring.types import JsonObject

COOLDOWN: Final = "COOLDOWN_ACTIVE"
SKEW: Final = "TIMESTAMP_SKEW"

REMEDIES: Final = {
    "AT_CAPACITY": "finish the runs that are held, or end them",
    "BANNED": "ask the operator of the arena",
    "INVALID_SIGNATURE": "check that --wallet.hotkey names the hotkey that is registered",
    "NOT_REGISTERED": "register it: btcli subnet register",
    "NOT_REGISTERED_AS_VALIDATOR": "stake more to this hotkey, and wait for the next epoch",
    "NONCE_REUSED": "nothing to do: the next try signs anew",
    "WRONG_RECEIVER": "check --arena.url",
}


class ArenaApiError(ArenaError):
    """A call that was not answered as it was meant to be.

    `retry_after` is when to come again, in seconds, where the arena said so.
    """

    code = "api.failed"
    fault = Fault.PLATFORM
    transient = True
    """Whether the same call may succeed later."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        fault: Fault | None = None,
        remedy: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, code=code, fault=fault, remedy=remedy)
        self.retry_after = retry_after


class UnreachableError(ArenaApiError):
    """No answer: no connection, or none in time."""

    code = "api.unreachable"


class UnavailableError(ArenaApiError):
    """The arena answers that it cannot (5xx)."""

    code = "api.unavailable"


class AnswerError(ArenaApiError):
    """An answer that is not what the API promises: too long, no JSON, fields missing."""

    code = "api.bad_answer"
    transient = False


class RefusedError(ArenaApiError):
    """The arena says no (4xx). `body` is the whole answer, of which nothing is to be trusted."""

    code = "api.refused"
    fault = Fault.CALLER
    transient = False

    def __init__(
        self,
        message: str,
        error_code: str,
        *,
        status: int,
        body: JsonObject | None = None,
        retry_after: float | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(
            message,
            code=f"api.{error_code.lower()}",
            remedy=remedy or REMEDIES.get(error_code),
            retry_after=retry_after,
        )
        self.error_code = error_code
        self.status = status
        self.body = body or {}


class RateLimitedError(RefusedError):
    """Too many requests (429): the same one is fine later. A cooldown is none of these."""

    fault = Fault.PLATFORM
    transient = True


class ClockSkewError(RefusedError):
    """This machine's clock and the arena's are too far apart for signatures."""

    fault = Fault.VALIDATOR
