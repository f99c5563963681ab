"""Errors of the judge. Codes are stable: records hold them."""

from __future__ import annotations

from scoring.exceptions import ArenaError, ErrorInfo, Fault

__all__ = ["ArenaError", "ErrorInfo", "Fault", "JudgeError"]


class JudgeError(ArenaError):
    """A trace could not be judged. It is then *unjudged*: never a zero, never the agent's fault."""

    code = "judge.unjudged"
    fault = Fault.VALIDATOR
