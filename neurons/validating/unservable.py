"""Runs of an agent whose model cannot be served, by its own fault: each a failure on record.

A run that a validator gives up is tried elsewhere, as is right for a fault of its own. What is
the agent's is an outcome: every problem is recorded as failed, with the reason, and no agent
is started.
"""

from __future__ import annotations

from sandbox.exceptions import ErrorInfo
from sandbox.isolation.interface import Isolation, SandboxResult, SandboxSpec


class Unservable:
    """In place of an isolation: every run ends at once with the agent's own error."""

    def __init__(self, inner: Isolation, error: ErrorInfo) -> None:
        self._inner = inner
        self._error = error
        self.name = inner.name

    async def run(self, spec: SandboxSpec) -> SandboxResult:
        """Nothing is run."""
        return SandboxResult(None, self._error, "", wall_s=0.0, excused_s=0.0)

    async def reclaim(self) -> list[str]:
        """Nothing is left behind."""
        return []

    async def close(self) -> None:
        """What is wrapped is closed by whoever opened it."""

    def environment(self) -> dict[str, str]:
        """Where its problems would have run."""
        return self._inner.environment()
