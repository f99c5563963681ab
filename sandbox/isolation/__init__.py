"""Confining agents: one interface, Docker and bubblewrap behind it, never neither.

What each needs is imported only when it is asked for.
"""

from __future__ import annotations

from typing import Final

from sandbox.exceptions import Fault, IsolationError
from sandbox.isolation.capacity import workers_that_fit
from sandbox.isolation.interface import Check, Isolation, SandboxLimits, SandboxResult, SandboxSpec

__all__ = [
    "KINDS",
    "Check",
    "Isolation",
    "SandboxLimits",
    "SandboxResult",
    "SandboxSpec",
    "checks",
    "open_isolation",
    "workers_that_fit",
]

KINDS: Final = ("docker", "bubblewrap")


async def open_isolation(kind: str | None = None) -> Isolation:
    """Open "docker" or "bubblewrap"; None takes Docker when an engine and the image are there.

    Raises IsolationError, with the remedy, when it cannot confine: there is no third way.
    """
    if kind not in (None, *KINDS):
        raise IsolationError(
            f"there is no isolation {kind!r}",
            remedy=f"use {' or '.join(KINDS)}",
            fault=Fault.CALLER,
        )
    if kind != "bubblewrap":
        from sandbox.isolation.docker import Docker

        try:
            return await Docker.open()
        except IsolationError:
            if kind == "docker":
                raise
    from sandbox.isolation.bubblewrap import Bubblewrap

    return await Bubblewrap.open()


def checks() -> list[Check]:
    """What this machine has and lacks for each isolation, for `arena doctor`. Blocks briefly."""
    from sandbox.isolation.bubblewrap_checks import bubblewrap_checks
    from sandbox.isolation.docker_checks import examine

    return [*examine().checks, *bubblewrap_checks()]
