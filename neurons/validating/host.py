"""How loaded this machine is, as Linux says it; what cannot be read is left out."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from arena.client.validator import HostLoad

MEMINFO: Final = Path("/proc/meminfo")


def host_load(data_dir: Path, *, meminfo: Path = MEMINFO) -> HostLoad:
    """Load of the last minute against all cores, memory in use, and the data directory's disk,
    in per cent."""
    return HostLoad(cpu_pct=_cpu(), ram_pct=_ram(meminfo), disk_pct=_disk(data_dir))


def _cpu() -> float | None:
    try:
        return min(100.0, 100.0 * os.getloadavg()[0] / (os.cpu_count() or 1))
    except OSError:
        return None


def _ram(meminfo: Path) -> float | None:
    try:
        lines = (line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
        sizes = {name: int(rest.split()[0]) for name, rest in lines if rest.split()}
        return 100.0 * (1.0 - sizes["MemAvailable"] / sizes["MemTotal"])
    except (OSError, ValueError, KeyError, ZeroDivisionError):
        return None


def _disk(directory: Path) -> float | None:
    try:
        usage = shutil.disk_usage(directory)
        return 100.0 * usage.used / usage.total
    except (OSError, ZeroDivisionError):
        return None
