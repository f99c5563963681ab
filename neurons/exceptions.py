"""Errors of the processes that people start."""

from __future__ import annotations

from scoring.exceptions import ArenaError, ErrorInfo, Fault

__all__ = ["ArenaError", "ErrorInfo", "Fault", "LocalChainError", "NotRegisteredError"]


class LocalChainError(ArenaError):
    """What the local chain refuses. The message is the error's name on the real chain."""

    code = "local_chain.refused"
    fault = Fault.CALLER


class NotRegisteredError(ArenaError):
    """A hotkey that is not on the subnet."""

    code = "chain.not_registered"
    fault = Fault.CALLER
