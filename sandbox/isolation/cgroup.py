"""Control groups: what a sandbox's processes may use together.

Both the old hierarchies (v1) and a unified one (v2), wherever this process may make
groups below its own: as root, or as a user with a delegated group. Without them there
is no limit that a fork does not escape, so there is no sandbox. Writes only below the
base that `find` returns. Kernel documentation: admin-guide/cgroup-v1, cgroup-v2.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from sandbox.exceptions import IsolationError
from sandbox.isolation.interface import SandboxLimits

PREFIX: Final = "sn15-arena-"
CONTROLLERS: Final = ("memory", "pids", "cpu")
PERIOD_US: Final = 100_000
REMEDY: Final = (
    "run it with sudo, under `systemd-run --user --scope -p Delegate=yes`, or use Docker"
)

_LARGEST_CHARGE: Final = 4 << 20
_LEAF: Final = f"{PREFIX}validator"
"""Where this process moves on v2, as a group with children may hold no processes."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a group used, and whether memory ended it.

    `killed`: the kernel killed something in it for want of memory; `at_limit`: because
    of its own limit, and not because the host had none left.
    """

    peak_memory_bytes: int | None
    cpu_s: float | None
    killed: bool
    at_limit: bool


class Group(Protocol):
    """One sandbox's group."""

    def join_files(self) -> list[Path]:
        """Files that a process writes its id to, to join with all it will start."""
        ...

    def folders(self) -> list[Path]:
        """What `remove_folders` takes."""
        ...

    def usage(self) -> Usage:
        """Read the counters."""
        ...


class Groups(Protocol):
    """Makes groups."""

    version: int

    def create(self, name: str, limits: SandboxLimits) -> Group:
        """Make a group with its limits set. Raises IsolationError."""
        ...


def find(proc: Path = Path("/proc")) -> Groups:
    """Find where this process may make groups. Raises IsolationError, naming the remedy."""
    own = _own_paths((proc / "self/cgroup").read_text())
    mounts = list(_mounts((proc / "self/mountinfo").read_text()))
    unified = _unified_base(own, mounts)
    if unified is not None:
        return GroupsV2(unified, proc)
    bases: dict[str, Path] = {}
    for mount in mounts:
        for controller in (*CONTROLLERS, "cpuacct"):
            if mount.kind == "cgroup" and controller in mount.options and controller in own:
                bases[controller] = mount.below(own[controller])
    missing = [name for name in CONTROLLERS if name not in bases]
    if missing:
        raise _refuse(f"this machine offers no cgroup controller for {', '.join(missing)}")
    for base in bases.values():
        if not os.access(base, os.W_OK):
            raise _refuse(f"{base} cannot be written")
    return GroupsV1(bases, proc)


def own_group(controller: str, proc: Path = Path("/proc")) -> tuple[Path, Path] | None:
    """This process's group under a controller, and its hierarchy's root; None without one."""
    own = _own_paths((proc / "self/cgroup").read_text())
    for mount in _mounts((proc / "self/mountinfo").read_text()):
        if mount.kind == "cgroup" and controller in mount.options and controller in own:
            return mount.below(own[controller]), mount.point
        if mount.kind == "cgroup2" and "" in own:
            here = mount.below(own[""])
            if controller in _words(here / "cgroup.controllers"):
                return here, mount.point
    return None


def _refuse(reason: str) -> IsolationError:
    return IsolationError(
        f"limits on memory, processes and CPU cannot be set: {reason}", remedy=REMEDY
    )


@dataclass(frozen=True, slots=True)
class _Mount:
    """A line of /proc/self/mountinfo (proc(5))."""

    root: str
    point: Path
    kind: str
    options: frozenset[str]

    def below(self, group: str) -> Path:
        """The folder of a group, given as in /proc/self/cgroup."""
        inside = os.path.relpath(group, self.root)
        return self.point if inside.startswith("..") else self.point / inside


def _mounts(text: str) -> Iterable[_Mount]:
    for line in text.splitlines():
        front, _, back = line.partition(" - ")
        fields, kind = front.split(), back.split()
        if kind[0] in {"cgroup", "cgroup2"}:
            yield _Mount(fields[3], Path(fields[4]), kind[0], frozenset(kind[-1].split(",")))


def _own_paths(text: str) -> dict[str, str]:
    """Controller to path, after /proc/self/cgroup; "" is the unified hierarchy."""
    paths = {}
    for line in text.splitlines():
        _, names, path = line.split(":", 2)
        paths.update(dict.fromkeys(names.split(","), path))
    return paths


def _unified_base(own: dict[str, str], mounts: Iterable[_Mount]) -> Path | None:
    """The v2 group to make children in, with its controllers handed down; None for v1."""
    mount = next((m for m in mounts if m.kind == "cgroup2"), None)
    if mount is None or "" not in own:
        return None
    here = mount.below(own[""])
    if not set(CONTROLLERS) <= _words(mount.point / "cgroup.controllers"):
        return None
    if here.name == _LEAF:
        here = here.parent
    true_root = not (mount.point / "cgroup.type").exists()
    if true_root and os.access(mount.point / "cgroup.subtree_control", os.W_OK):
        here = mount.point
    try:
        _hand_down(here)
    except OSError as error:
        raise _refuse(f"{here}: {error.strerror}") from None
    return here


def _hand_down(base: Path) -> None:
    """Enable the controllers for children of `base`, moving its own processes aside."""
    missing = set(CONTROLLERS) - _words(base / "cgroup.controllers")
    if missing:
        raise _refuse(f"{base} was not given {', '.join(sorted(missing))}")
    if not os.access(base, os.W_OK):
        raise _refuse(f"{base} was not delegated to this user")
    if set(CONTROLLERS) <= _words(base / "cgroup.subtree_control"):
        return
    order = " ".join(f"+{name}" for name in CONTROLLERS)
    try:
        (base / "cgroup.subtree_control").write_text(order)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        leaf = base / _LEAF
        leaf.mkdir(exist_ok=True)
        for pid in (base / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                (leaf / "cgroup.procs").write_text(pid)
        (base / "cgroup.subtree_control").write_text(order)


def _words(file: Path) -> set[str]:
    return set(file.read_text().split())


def _counter(file: Path, key: str) -> int:
    """A counter of a file of `key value` lines; 0 where it does not exist."""
    with suppress(OSError):
        for line in file.read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == key:
                return int(value)
    return 0


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _create(folder: Path, values: dict[str, str]) -> None:
    """Make a group's folder and set its limits. Raises IsolationError."""
    try:
        folder.mkdir()
        for name, value in values.items():
            (folder / name).write_text(value)
    except OSError as error:
        with suppress(OSError):
            folder.rmdir()
        raise _refuse(f"{error.filename or folder}: {error.strerror}") from None


class GroupsV1:
    """Below this process's own group in each hierarchy, so that its limits hold too."""

    version = 1

    def __init__(self, bases: dict[str, Path], proc: Path = Path("/proc")) -> None:
        self._bases = bases
        self._proc = proc

    def create(self, name: str, limits: SandboxLimits) -> Group:
        """See Groups."""
        folders = {controller: base / name for controller, base in self._bases.items()}
        quota = str(round(limits.cpus * PERIOD_US))
        values: dict[Path, dict[str, str]] = {folder: {} for folder in folders.values()}
        memory = values[folders["memory"]]
        memory["memory.limit_in_bytes"] = str(limits.memory_bytes)
        if (self._bases["memory"] / "memory.memsw.limit_in_bytes").exists():
            memory["memory.memsw.limit_in_bytes"] = str(limits.memory_bytes)
        elif _has_swap(self._proc):
            raise IsolationError(
                "this kernel does not count swap, and swap is on",
                remedy="swapoff -a, or boot with swapaccount=1",
            )
        values[folders["pids"]]["pids.max"] = str(limits.pids)
        values[folders["cpu"]] |= {
            "cpu.cfs_period_us": str(PERIOD_US),
            "cpu.cfs_quota_us": quota,
        }
        made: list[Path] = []
        try:
            for folder, settings in values.items():
                _create(folder, settings)
                made.append(folder)
        except IsolationError:
            remove_folders(made)
            raise
        return _GroupV1(folders)


class _GroupV1:
    def __init__(self, folders: dict[str, Path]) -> None:
        self._by_controller = folders

    def join_files(self) -> list[Path]:
        return [folder / "cgroup.procs" for folder in self.folders()]

    def folders(self) -> list[Path]:
        return list(dict.fromkeys(self._by_controller.values()))

    def usage(self) -> Usage:
        memory = self._by_controller["memory"]
        used_ns = None
        if "cpuacct" in self._by_controller:
            used_ns = _number(self._by_controller["cpuacct"] / "cpuacct.usage")
        peak, limit = (
            _number(memory / name) or 0
            for name in ("memory.max_usage_in_bytes", "memory.limit_in_bytes")
        )
        return Usage(
            peak_memory_bytes=peak,
            cpu_s=None if used_ns is None else used_ns / 1e9,
            killed=_counter(memory / "memory.oom_control", "oom_kill") > 0,
            # Not memory.failcnt: recent kernels leave it at 0. A charge that fails is not
            # in the peak, and may be that of a huge page.
            at_limit=peak + _LARGEST_CHARGE >= limit,
        )


class GroupsV2:
    """Below a delegated group, or the root of the hierarchy."""

    version = 2

    def __init__(self, base: Path, proc: Path = Path("/proc")) -> None:
        self._base = base
        self._proc = proc

    def create(self, name: str, limits: SandboxLimits) -> Group:
        """See Groups."""
        folder = self._base / name
        values = {
            "memory.max": str(limits.memory_bytes),
            "memory.oom.group": "1",
            "pids.max": str(limits.pids),
            "cpu.max": f"{round(limits.cpus * PERIOD_US)} {PERIOD_US}",
        }
        _create(folder, values)
        swap = folder / "memory.swap.max"
        if swap.exists():
            swap.write_text("0")
        elif _has_swap(self._proc):
            remove_folders([folder])
            raise IsolationError(
                "this kernel does not count swap, and swap is on", remedy="swapoff -a"
            )
        return _GroupV2(folder)


class _GroupV2:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def join_files(self) -> list[Path]:
        return [self._folder / "cgroup.procs"]

    def folders(self) -> list[Path]:
        return [self._folder]

    def usage(self) -> Usage:
        used_us = _counter(self._folder / "cpu.stat", "usage_usec")
        return Usage(
            peak_memory_bytes=_number(self._folder / "memory.peak"),
            cpu_s=used_us / 1e6,
            killed=_counter(self._folder / "memory.events", "oom_kill") > 0,
            at_limit=_counter(self._folder / "memory.events", "oom") > 0,
        )


def _has_swap(proc: Path) -> bool:
    return len((proc / "swaps").read_text().splitlines()) > 1


def kill(folders: Iterable[Path]) -> bool:
    """Kill every process in the groups; True when none is left."""
    left = False
    for folder in folders:
        try:
            (folder / "cgroup.kill").write_text("1")
        except OSError:
            for pid in _processes(folder):
                _kill_member(pid, folder.name)
        left = left or bool(_processes(folder))
    return not left


def _kill_member(pid: int, group: str, proc: Path = Path("/proc")) -> None:
    """Kill a process if it is in the group now.

    A list of processes is old when it is read (v1 even keeps it for a second), and a
    fork bomb uses up the ids so fast that one may be another process's by then. The
    descriptor is opened first: what is found out after that cannot be of a later one
    and still lead to its death.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        paths = _own_paths((proc / str(pid) / "cgroup").read_text()).values()
        if any(path.rpartition("/")[2] == group for path in paths):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except OSError:
        return
    finally:
        os.close(descriptor)


def _processes(folder: Path) -> list[int]:
    """Ids of the members; 0 stands for one that this PID namespace cannot name."""
    try:
        listed = (folder / "cgroup.procs").read_text().split()
    except OSError:
        return []
    return [int(pid) for pid in listed if int(pid) > 0]


def remove_folders(folders: Iterable[Path]) -> bool:
    """Remove empty groups; True when all are gone."""
    gone = True
    for folder in folders:
        try:
            folder.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            gone = False
    return gone


def destroy(folders: list[Path], timeout_s: float) -> bool:
    """Kill what is in the groups and remove them, waiting while processes die.

    Blocks. True when all are gone.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        if kill(folders) and remove_folders(folders):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
