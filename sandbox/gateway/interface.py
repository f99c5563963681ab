"""What the race knows of the gateway: open a session, hand its socket to a sandbox,
take the trace."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sandbox.exceptions import ErrorInfo
from sandbox.trace import Trace


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    """Per problem; DESIGN.md, Gateway."""

    requests: int = 1000
    requests_per_second: float = 30.0
    burst: int = 50
    body_bytes: int = 10 << 20
    total_body_bytes: int = 50 << 20
    answer_bytes: int = 64 << 20
    """All answers together: the trace keeps them in memory until the run ends."""
    model_calls: int = 100
    completion_tokens: int = 65_536
    cost_usd: float = 0.25
    model_timeout_s: float = 300.0


class GatewaySession(Protocol):
    """The gateway of one sandbox, while it lives."""

    socket: Path

    def excused_s(self) -> float:
        """Queue and provider time so far: the validator's, not the agent's."""
        ...

    def trace(self) -> Trace:
        """What was recorded so far. Final once the session is closed."""
        ...

    def infrastructure_error(self) -> ErrorInfo | None:
        """The failure, not the agent's, that spoilt this run: the model provider
        failed on every try of a call and no later call succeeded. None when there was none."""
        ...


class Gateway(Protocol):
    """Opens one session a sandbox. Never holds a reward."""

    def session(
        self, run_id: str, *, limits: GatewayLimits | None = None
    ) -> AbstractAsyncContextManager[GatewaySession]:
        """A fresh socket and a fresh recorder; removed when the context ends."""
        ...
