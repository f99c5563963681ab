"""What a container has used, read from its control groups on the host.

The engine tells it only once a second, and not after the end; the counters themselves
stay readable until the container is torn down. Where they cannot be seen (a validator
that runs in a container itself), nothing is known and nothing is wrong. Reads /proc
and /sys/fs/cgroup.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Meter:
    """The folders that hold one container's counters. Any of them may be missing."""

    memory: Path | None = None
    cpu: Path | None = None
    unified: Path | None = None

    @classmethod
    def of_process(cls, pid: int, proc: Path = _PROC, cgroups: Path = _CGROUPS) -> Meter:
        """The counters of the groups that a process is in (cgroups(7), /proc/PID/cgroup)."""
        try:
            lines = (proc / str(pid) / "cgroup").read_text(encoding="utf-8").splitlines()
        except OSError:
            return cls()
        folders: dict[str, Path] = {}
        for line in lines:
            _, names, path = line.split(":", 2)
            if path.startswith("/.."):  # another root of the hierarchy: not ours to see
                continue
            for name in names.split(","):
                folders[name] = cgroups / name / path[1:]
        return cls(folders.get("memory"), folders.get("cpuacct"), folders.get(""))

    def peak_memory_bytes(self) -> int | None:
        """The most memory in use at once, page cache included."""
        if self.memory is not None:
            return _number(self.memory / "memory.max_usage_in_bytes")
        return _number(self.unified / "memory.peak") if self.unified else None

    def cpu_s(self) -> float | None:
        """Processor time of all processes so far."""
        if self.cpu is not None:
            used_ns = _number(self.cpu / "cpuacct.usage")
            return None if used_ns is None else used_ns / 1e9
        used_us = _counter(self.unified / "cpu.stat", "usage_usec") if self.unified else None
        return None if used_us is None else used_us / 1e6


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _counter(file: Path, key: str) -> int | None:
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    values = (line.partition(" ") for line in lines)
    return next((int(value) for name, _, value in values if name == key), None)
