"""An agent's time: what passed since it started, less what was not its own.

Time spent in the validator's queue or waiting for a model provider is excused. An
agent is stopped when its own time is over; a hard stop bounds the whole. Pure but for
the clock it is given.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from sandbox.exceptions import ErrorInfo, Fault
from sandbox.isolation.interface import AGENT_TIMEOUT, HOST_HARD_STOP, SandboxLimits


def _unknown() -> None:
    return None


class AgentClock:
    """Runs from `start()`, which is called when the agent's code may begin."""

    def __init__(
        self,
        limits: SandboxLimits,
        excused_s: Callable[[], float],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._excused = excused_s
        self._now = now
        self._started: float | None = None
        self._stopped: float | None = None
        self._cpu: Callable[[], float | None] = _unknown
        self._cpu_before = 0.0
        self._cpu_stopped: float | None = None

    def start(self, cpu_s: Callable[[], float | None] | None = None) -> None:
        """Begin to count. `cpu_s` tells the sandbox's processor time, where it is known."""
        self._started = self._now()
        self._cpu = cpu_s or _unknown
        self._cpu_before = self._cpu() or 0.0

    def stop(self) -> None:
        """Stop counting; the first call decides."""
        if self._stopped is None:
            self._stopped = self._now()
            self._cpu_stopped = self._cpu_s()

    @property
    def wall_s(self) -> float:
        """Seconds from start to stop, or to now; 0 before the start."""
        if self._started is None:
            return 0.0
        end = self._stopped if self._stopped is not None else self._now()
        return end - self._started

    def excused_s(self) -> float:
        """Seconds that the agent is not charged for: never more than have passed."""
        return min(max(self._excused(), 0.0), self.wall_s)

    def own_s(self) -> float:
        """Seconds of the agent's own time so far: what is not excused, and no less than it
        has computed. An agent that computes does not wait, whatever calls it keeps open."""
        cpu = self._cpu_stopped if self._cpu_stopped is not None else self._cpu_s()
        return max(self.wall_s - self.excused_s(), cpu / max(self._limits.cpus, 1.0))

    def _cpu_s(self) -> float:
        return max(0.0, (self._cpu() or 0.0) - self._cpu_before)

    def remaining_s(self) -> float:
        """Seconds until the agent is to be stopped, as it looks now; it may become more."""
        own = self._limits.wall_s - self.own_s()
        return min(own, self._limits.hard_wall_s - self.wall_s)

    def overrun(self) -> ErrorInfo | None:
        """Why the agent's time is over, or None. An answer that came later is void.

        A hard stop is the validator's fault when excused time led to it.
        """
        wall, excused = self.wall_s, self.excused_s()
        limits = self._limits
        if self.own_s() >= limits.wall_s or (wall >= limits.hard_wall_s and not excused):
            allowed = min(limits.wall_s, limits.hard_wall_s)
            return ErrorInfo(
                AGENT_TIMEOUT,
                Fault.AGENT,
                f"no answer in {allowed:g} s of its own time ({excused:.1f} s more were excused)",
            )
        if wall >= limits.hard_wall_s:
            return ErrorInfo(
                HOST_HARD_STOP,
                Fault.VALIDATOR,
                f"stopped after {limits.hard_wall_s:g} s, of which {excused:.1f} s were spent "
                "waiting for the validator or the model provider",
            )
        return None
