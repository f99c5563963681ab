"""How many sandboxes this machine can run at once.

Fifteen workers of 4 GiB do not fit into 24 GiB; the number follows from the memory
that is there, within the limits of this process's own control groups. Reads /proc and
/sys.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from sandbox.isolation.cgroup import own_group
from sandbox.isolation.interface import SandboxLimits

RESERVED_BYTES: Final = 1 << 30
"""For the validator itself: catalogue, gateway, database."""

SANDBOXES_A_CPU: Final = 4.0
"""Agents wait for models most of their time."""


def workers_that_fit(
    limits: SandboxLimits,
    *,
    reserved_bytes: int = RESERVED_BYTES,
    memory_bytes: int | None = None,
    cpus: int | None = None,
) -> int:
    """How many sandboxes may run at once, at least 1.

    By memory each may use all of its limit; by CPU several share a core, as
    `SANDBOXES_A_CPU` says. `memory_bytes` and `cpus` are what is available, read from
    the machine when None. One runs even where its limit exceeds the memory, since most
    agents stay far below; what the host then lacks is the validator's fault.
    """
    memory = available_memory() if memory_bytes is None else memory_bytes
    cores = available_cpus() if cpus is None else cpus
    by_memory = (memory - reserved_bytes) // limits.memory_bytes
    by_cpu = int(cores * SANDBOXES_A_CPU / max(limits.cpus, 0.01))
    return max(1, min(by_memory, by_cpu))


def available_cpus() -> int:
    """The cores this process may run on."""
    return len(os.sched_getaffinity(0))


def available_memory(proc: Path = Path("/proc")) -> int:
    """Bytes that new processes could use: the host's, or less by a control group's limit."""
    available = [_host_available(proc)]
    group = own_group("memory", proc)
    if group is not None:
        available += _group_headroom(*group)
    return max(0, min(available))


def _host_available(proc: Path) -> int:
    for line in (proc / "meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) << 10
    raise RuntimeError("/proc/meminfo has no MemAvailable")


def _group_headroom(group: Path, top: Path) -> Iterator[int]:
    """What each group from here up to the hierarchy's root still allows."""
    while True:
        for limit, used in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            # A file that is missing, or that says "max", is no limit.
            with suppress(OSError, ValueError):
                yield int((group / limit).read_text()) - int((group / used).read_text())
        if group == top or group == group.parent:
            return
        group = group.parent
