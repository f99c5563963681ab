"""What can go wrong, and whose fault it was.

Every room has one `exceptions` module; all of them build on `ArenaError`. The
`code` is stable: it is stored in records, shown to people and never renamed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """Who has to act.

    Only an `AGENT` fault counts as a failure of the agent. `VALIDATOR` (host,
    model provider) and `PLATFORM` (arena, database) are retried, never charged
    to the miner and never dropped from a denominator. `CALLER` is the person at
    the keyboard: bad input, bad options.
    """

    AGENT = "agent"
    VALIDATOR = "validator"
    PLATFORM = "platform"
    CALLER = "caller"


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """An error as data, for traces, records and pages.

    `message` may hold text of an agent or a model: show it escaped.
    """

    code: str
    fault: Fault
    message: str

    def to_json(self) -> dict[str, str]:
        """Return the JSON object that records hold."""
        return {"code": self.code, "fault": self.fault.value, "message": self.message}

    @classmethod
    def from_json(cls, value: dict[str, str]) -> ErrorInfo:
        """Read what `to_json` wrote."""
        return cls(value["code"], Fault(value["fault"]), value["message"])


class ArenaError(Exception):
    """Base of every error this project raises on purpose.

    `remedy` is the command or the change that mends it, when there is one; it is
    shown after the message.
    """

    code: str = "arena.error"
    fault: Fault = Fault.PLATFORM

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        fault: Fault | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.fault = fault or type(self).fault
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message

    @property
    def info(self) -> ErrorInfo:
        """The same error as data."""
        return ErrorInfo(self.code, self.fault, self.message)


class ProblemError(ArenaError):
    """A problem or a suite that cannot be read."""

    code = "scoring.bad_problem"
    fault = Fault.CALLER


class ScoringError(ArenaError):
    """A value that no score can be made of: NaN quality, shares that are no shares."""

    code = "scoring.bad_value"
    fault = Fault.CALLER
