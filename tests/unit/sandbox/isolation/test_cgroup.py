"""Where control groups are made, on old and new hierarchies, and when they are refused.

The trees are plain folders: what the kernel does with them is tested where sandboxes run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.exceptions import IsolationError
from sandbox.isolation import cgroup
from sandbox.isolation.interface import SandboxLimits

LIMITS = SandboxLimits(memory_bytes=1 << 20, pids=7, cpus=0.5)


class Machine:
    """A /proc and control groups in a folder."""

    def __init__(self, folder: Path) -> None:
        self.proc = folder / "proc"
        self.top = folder / "cgroup"
        (self.proc / "self").mkdir(parents=True)
        self.top.mkdir()
        (self.proc / "swaps").write_text("Filename Type Size Used Priority\n")

    def version_1(self, own: str = "/job", root: str = "/") -> Machine:
        lines, mounts = [], []
        for number, names in enumerate(("memory", "pids", "cpu,cpuacct")):
            lines.append(f"{number}:{names}:{own}")
            point = self.top / names
            mounts.append(f"1 2 0:3 {root} {point} rw - cgroup cgroup rw,{names}")
            (point / os.path.relpath(own, root)).mkdir(parents=True, exist_ok=True)
        (self.proc / "self/cgroup").write_text("\n".join(lines) + "\n0::/\n")
        (self.proc / "self/mountinfo").write_text("\n".join(mounts) + "\n")
        return self

    def version_2(self, own: str, controllers: str = "cpuset cpu io memory pids") -> Path:
        (self.proc / "self/cgroup").write_text(f"0::{own}\n")
        mount = f"1 2 0:3 / {self.top} rw - cgroup2 cgroup2 rw\n"
        (self.proc / "self/mountinfo").write_text(mount)
        here = self.top / own[1:]
        here.mkdir(parents=True, exist_ok=True)
        for folder in {here, self.top}:
            (folder / "cgroup.controllers").write_text(controllers)
            (folder / "cgroup.subtree_control").write_text("")
            (folder / "cgroup.procs").write_text("")
        return here


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_version_1_limits_memory_with_swap_processes_and_cpu(machine: Machine) -> None:
    groups = cgroup.find(machine.version_1().proc)
    for name in ("memory.memsw.limit_in_bytes",):
        (machine.top / "memory/job" / name).touch()
    group = groups.create("sn15-arena-0-ab", LIMITS)
    assert groups.version == 1
    memory, pids, cpu = group.folders()
    assert memory == machine.top / "memory/job/sn15-arena-0-ab"
    assert (memory / "memory.limit_in_bytes").read_text() == str(1 << 20)
    assert (memory / "memory.memsw.limit_in_bytes").read_text() == str(1 << 20)
    assert (pids / "pids.max").read_text() == "7"
    assert (cpu / "cpu.cfs_quota_us").read_text() == "50000"
    assert (cpu / "cpu.cfs_period_us").read_text() == "100000"
    assert [file.parent for file in group.join_files()] == [memory, pids, cpu]


def test_version_1_in_a_container_lies_below_what_it_sees(machine: Machine) -> None:
    groups = cgroup.find(machine.version_1("/docker/x/job", "/docker/x").proc)
    folder = groups.create("sn15-arena-0-ab", LIMITS).folders()[0]
    assert folder == machine.top / "memory/job/sn15-arena-0-ab"


def test_swap_that_is_not_counted_is_refused(machine: Machine) -> None:
    groups = cgroup.find(machine.version_1().proc)
    (machine.proc / "swaps").write_text("Filename\n/swap file 1 0 -2\n")
    with pytest.raises(IsolationError, match="swap") as caught:
        groups.create("sn15-arena-0-ab", LIMITS)
    assert "swapoff" in str(caught.value.remedy)


def test_version_2_limits_the_same(machine: Machine) -> None:
    machine.version_2("/arena.service")
    (machine.top / "cgroup.type").touch()  # not the hierarchy's true root
    groups = cgroup.find(machine.proc)
    assert groups.version == 2
    control = machine.top / "arena.service/cgroup.subtree_control"
    assert control.read_text() == "+memory +pids +cpu"
    (folder,) = groups.create("sn15-arena-0-ab", LIMITS).folders()
    assert folder == machine.top / "arena.service/sn15-arena-0-ab"
    values = {file.name: file.read_text() for file in folder.iterdir()}
    assert values["memory.max"] == str(1 << 20)
    assert values["memory.oom.group"] == "1"
    assert values["pids.max"] == "7"
    assert values["cpu.max"] == "50000 100000"


def test_version_2_uses_the_true_root_where_it_may(machine: Machine) -> None:
    machine.version_2("/user.slice/session")
    (folder,) = cgroup.find(machine.proc).create("sn15-arena-0-ab", LIMITS).folders()
    assert folder.parent == machine.top


def test_a_validator_that_moved_aside_makes_groups_beside_itself(machine: Machine) -> None:
    machine.version_2("/scope/sn15-arena-validator")
    (machine.top / "cgroup.type").touch()
    (machine.top / "scope/cgroup.controllers").write_text("memory pids cpu")
    (machine.top / "scope/cgroup.subtree_control").write_text("memory pids cpu")
    (folder,) = cgroup.find(machine.proc).create("sn15-arena-0-ab", LIMITS).folders()
    assert folder.parent == machine.top / "scope"


def test_a_group_that_was_not_handed_the_controllers_is_refused(machine: Machine) -> None:
    here = machine.version_2("/scope")
    (machine.top / "cgroup.type").touch()
    (here / "cgroup.controllers").write_text("memory")
    with pytest.raises(IsolationError, match="was not given cpu, pids") as caught:
        cgroup.find(machine.proc)
    assert "sudo" in str(caught.value.remedy)
    assert "Docker" in str(caught.value.remedy)


def test_a_machine_without_controllers_is_refused(machine: Machine) -> None:
    (machine.proc / "self/cgroup").write_text("0::/\n")
    (machine.proc / "self/mountinfo").write_text("1 2 0:3 / / rw - ext4 /dev/vda rw\n")
    with pytest.raises(IsolationError, match="memory, pids, cpu"):
        cgroup.find(machine.proc)


def test_the_hosts_want_of_memory_is_told_apart_from_the_agents(machine: Machine) -> None:
    group = cgroup.find(machine.version_1().proc).create("sn15-arena-0-ab", LIMITS)
    memory, _, cpu = group.folders()
    (memory / "memory.limit_in_bytes").write_text(str(1 << 30))
    (memory / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    (memory / "memory.max_usage_in_bytes").write_text(str(1 << 29))
    (cpu / "cpuacct.usage").write_text("1500000000")
    usage = group.usage()
    assert (usage.killed, usage.at_limit, usage.cpu_s) == (True, False, 1.5)
    (memory / "memory.max_usage_in_bytes").write_text(str(1 << 30))
    assert group.usage().at_limit


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def test_a_process_that_is_in_the_group_no_more_is_not_killed(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    """Its id stands in a list that is old: it belongs to somebody else by now."""
    group = tmp_path / "sn15-arena-0-ab"
    group.mkdir(mode=0o500)
    (tmp_path / "listed").write_text(f"{sleeper.pid}\n0\n")
    (group / "cgroup.kill").mkdir(parents=True, exist_ok=True)  # as if the kernel had none
    (group / "cgroup.procs").symlink_to(tmp_path / "listed")
    assert not cgroup.kill([group])
    assert sleeper.poll() is None


def test_removing_says_whether_all_are_gone(tmp_path: Path) -> None:
    full, empty = tmp_path / "full", tmp_path / "empty"
    (full / "member").mkdir(parents=True)
    empty.mkdir()
    assert not cgroup.remove_folders([full, empty, tmp_path / "missing"])
    assert not empty.exists()
    (full / "member").rmdir()
    assert cgroup.remove_folders([full])
