"""How many sandboxes a machine holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.isolation.capacity import available_memory, workers_that_fit
from sandbox.isolation.interface import SandboxLimits

GIB = 1 << 30


@pytest.mark.parametrize(
    ("memory", "cpus", "workers"),
    [
        (24 * GIB, 16, 5),
        (64 * GIB, 16, 15),
        (64 * GIB, 2, 8),
        (4 * GIB, 16, 1),
        (0, 1, 1),
    ],
)
def test_memory_and_cores_decide(memory: int, cpus: int, workers: int) -> None:
    assert workers_that_fit(SandboxLimits(), memory_bytes=memory, cpus=cpus) == workers


def test_a_control_groups_limit_counts_and_so_does_its_parents(tmp_path: Path) -> None:
    proc, groups = tmp_path / "proc", tmp_path / "groups"
    here = groups / "a/b"
    here.mkdir(parents=True)
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal: 99 kB\nMemAvailable: 8388608 kB\n")
    (proc / "self/cgroup").write_text("0::/a/b\n")
    (proc / "self/mountinfo").write_text(f"1 2 0:3 / {groups} rw - cgroup2 cgroup2 rw\n")
    (here / "cgroup.controllers").write_text("memory")
    (here / "memory.max").write_text("max")
    (here / "memory.current").write_text("5")
    assert available_memory(proc) == 8 * GIB
    (groups / "a/memory.max").write_text(str(3 * GIB))
    (groups / "a/memory.current").write_text(str(GIB))
    assert available_memory(proc) == 2 * GIB
