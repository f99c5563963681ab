"""One interface for every way to confine an agent.

A sandbox lives for one problem. It has no network but one Unix socket, the
gateway session's; the socket's identity is the credential. What comes out of it is
the agent's word and untrusted: the recorder sits on the other side of the socket.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sandbox.exceptions import ErrorInfo
from scoring.types import AgentProblem, JsonObject


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What one sandbox may use. Defaults are SN15's (notes/upstream, notes/sandbox)."""

    wall_s: float = 300.0
    """The agent's own time: what `SandboxSpec.excused_s` reports is not counted."""
    hard_wall_s: float = 900.0
    """Killed after this, whatever is excused."""
    memory_bytes: int = 4 << 30
    """Memory with swap."""
    pids: int = 256
    cpus: float = 1.0
    open_files: int = 1024
    tmp_bytes: int = 256 << 20
    file_bytes: int = 64 << 20
    answer_bytes: int = 16 << 20
    """The dialogue, as JSON."""
    log_bytes: int = 1 << 20
    """Standard output and error together; the rest is dropped and counted."""


def _nothing_excused() -> float:
    return 0.0


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """Everything one run needs. Holds no secret and no reward."""

    run_id: str
    agent_source: bytes
    problem: AgentProblem
    gateway_socket: Path
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    env: Mapping[str, str] = field(default_factory=dict)
    """Extra environment, such as SANDBOX_MODEL. Never a real token."""
    excused_s: Callable[[], float] = _nothing_excused
    """Seconds of queue and provider time so far, which the agent is not charged for."""


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """How a run ended. `error` is None exactly when `agent_main` returned a dialogue.

    `error.fault` says whose it was: AGENT for anything the agent did, VALIDATOR for
    what the host could not give. `dialogue` is untrusted: bounded, valid JSON, a list
    of objects, without NUL bytes or lone surrogates; kept also when a later check
    failed, so that nothing is lost.
    """

    dialogue: tuple[JsonObject, ...] | None
    error: ErrorInfo | None
    log: str
    wall_s: float
    excused_s: float
    log_dropped_bytes: int = 0
    peak_memory_bytes: int | None = None
    cpu_s: float | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One line of `arena doctor`: what was looked at, and the command that mends it."""

    name: str
    ok: bool
    detail: str
    remedy: str | None = None


class Isolation(Protocol):
    """A way to confine. Instances are shared by all workers of one process."""

    name: str

    async def run(self, spec: SandboxSpec) -> SandboxResult:
        """Run one agent on one problem in a fresh sandbox and remove it again.

        Raises IsolationError when no sandbox could be made (the validator's fault).
        When cancelled it kills and removes the sandbox before it returns.
        """
        ...

    async def reclaim(self) -> list[str]:
        """Remove what earlier processes left behind (kill -9); say what it was.

        Never touches a sandbox whose owner is alive.
        """
        ...

    async def close(self) -> None:
        """Kill and remove everything this instance made."""
        ...

    def environment(self) -> dict[str, str]:
        """What decides how agents run (isolation, interpreter, image digest), for the
        record's environment hash."""
        ...


# Codes of `SandboxResult.error`. Stable: records hold them.
AGENT_SYNTAX = "agent.syntax_error"
AGENT_NO_MAIN = "agent.no_agent_main"
AGENT_IMPORT = "agent.failed_to_load"
AGENT_EXCEPTION = "agent.exception"
AGENT_BAD_RETURN = "agent.bad_return"
AGENT_EXITED = "agent.exited"
AGENT_TIMEOUT = "agent.timeout"
AGENT_OUT_OF_MEMORY = "agent.out_of_memory"
AGENT_ANSWER_TOO_LARGE = "agent.answer_too_large"
HOST_FAILED = "validator.sandbox_failed"
HOST_HARD_STOP = "validator.hard_stop"
