"""What bubblewrap sandboxes need of this machine, looked at one by one.

For `arena doctor`; the isolation itself looks at the same things when it opens.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sandbox.exceptions import IsolationError
from sandbox.isolation import cgroup, root, seccomp
from sandbox.isolation.bubblewrap import find_bwrap, try_namespaces
from sandbox.isolation.interface import Check
from sandbox.isolation.settings import IsolationSettings
from sandbox.isolation.slots import require_free_uids

OLDEST_KERNEL: Final = (5, 8)
"""Since then /proc can be mounted with `subset=pid`."""


def bubblewrap_checks(settings: IsolationSettings | None = None) -> list[Check]:
    """Every line, whatever the ones before it say."""
    chosen = settings or IsolationSettings()
    return [
        _check("program", _program),
        _check("namespaces", _namespaces),
        _check("cgroups", lambda: f"version {cgroup.find().version}"),
        _check("seccomp", lambda: f"{len(seccomp.agent_filter()) // 8} instructions"),
        _check("python3", _python),
        _check("users", lambda: _users(chosen)),
        _check("kernel", _kernel),
    ]


def _check(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(f"bubblewrap: {name}", True, look())
    except IsolationError as error:
        return Check(f"bubblewrap: {name}", False, error.message, error.remedy)
    except OSError as error:
        return Check(f"bubblewrap: {name}", False, str(error))


def _program() -> str:
    path, version = find_bwrap()
    return f"{version} at {path}"


def _namespaces() -> str:
    path, _ = find_bwrap()
    try_namespaces(path)
    return "as root, without a user namespace" if os.geteuid() == 0 else "in a user namespace"


def _python() -> str:
    interpreter = root.find_interpreter()
    return f"{'.'.join(map(str, interpreter.version))} at {interpreter.executable}"


def _users(settings: IsolationSettings) -> str:
    if os.geteuid() != 0:
        return "your own, in a user namespace"
    require_free_uids(settings.uid_base, settings.uid_slots)
    return f"{settings.uid_slots} sandboxes at once, ids from {settings.uid_base}"


def _kernel(release: Path = Path("/proc/sys/kernel/osrelease")) -> str:
    text = release.read_text(encoding="ascii").strip()
    numbers = tuple(int(part) for part in text.split("-")[0].split(".")[:2])
    if numbers < OLDEST_KERNEL:
        raise IsolationError(f"{text} is older than 5.8", remedy="use Docker (make image)")
    return text
