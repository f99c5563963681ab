"""A sandbox's container, as the engine is asked for it, and whose it is.

Pure but for `Owner`, which reads `/proc`. Everything a container may and may not do
stands in `configuration`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sandbox.isolation.docker_seccomp import profile
from sandbox.isolation.interface import SandboxLimits

LABEL_OWNER: Final = "io.sn15-arena.owner"
LABEL_INSTANCE: Final = "io.sn15-arena.instance"
LABEL_RUN: Final = "io.sn15-arena.run"
LABEL_EXPIRES: Final = "io.sn15-arena.expires"
"""Unix time after which no living owner would still let this sandbox run."""

UNPACKED: Final = "/sandbox"
"""Where the agent and the kit are unpacked, the same as under bubblewrap."""

_PROC = Path("/proc")
_TMPFS: Final = "rw,noexec,nosuid,nodev,mode=0700,nr_inodes=65536"

MASKED_PATHS: Final = (
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys",
)
"""Docker's own list, and all of /sys: an agent has no use for the host's devices."""

READ_ONLY_PATHS: Final = (
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
)


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, named so that a later one of the same id is not taken for it.

    `space` is its PID namespace: ids of another one say nothing here.
    """

    pid: int
    started: int
    boot: str
    space: int

    @classmethod
    def current(cls) -> Owner:
        """This process."""
        pid = os.getpid()
        return cls(pid, _started(pid) or 0, _boot(), _space())

    def label(self) -> str:
        """As text, for a container's label."""
        return f"{self.pid}:{self.started}:{self.boot}:{self.space}"

    @classmethod
    def parse(cls, label: str) -> Owner | None:
        """Read what `label` wrote; None for anything else."""
        parts = label.split(":")
        if len(parts) != 4 or not all(parts[i].isdecimal() for i in (0, 1, 3)):
            return None
        return cls(int(parts[0]), int(parts[1]), parts[2], int(parts[3]))

    def alive(self) -> bool | None:
        """Whether it still runs; None when that cannot be told from this PID namespace."""
        if self.boot != _boot():
            return False
        if self.space != _space():
            return None
        return _started(self.pid) == self.started


def _started(pid: int) -> int | None:
    """When a process started, in clock ticks since boot (proc(5), stat, field 22)."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the command in parentheses and may hold anything.
    fields = text.rpartition(")")[2].split()
    state, started = fields[0], int(fields[19])
    return None if state in {"Z", "X"} else started


def _boot() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _space() -> int:
    return (_PROC / "self/ns/pid").stat().st_ino


@dataclass(frozen=True, slots=True)
class Mount:
    """A host path shown read-only inside a sandbox."""

    source: Path
    target: str

    def to_json(self) -> dict[str, Any]:
        """As the engine takes it."""
        return {
            "Type": "bind",
            "Source": str(self.source),
            "Target": self.target,
            "ReadOnly": True,
            "BindOptions": {"Propagation": "rprivate"},
        }


def configuration(
    *,
    image: str,
    command: Sequence[str],
    env: Mapping[str, str],
    uid: int,
    mounts: Sequence[Mount],
    unpacked_bytes: int,
    limits: SandboxLimits,
    labels: Mapping[str, str],
) -> dict[str, Any]:
    """The body of `POST /containers/create` for one sandbox.

    `unpacked_bytes` is the room for the agent's file and the agent kit.
    """
    return {
        "Image": image,
        "Cmd": list(command),
        "Entrypoint": [],
        "Env": [f"{name}={value}" for name, value in env.items()],
        "User": f"{uid}:{uid}",
        "WorkingDir": "/tmp",  # noqa: S108 - inside the sandbox, a tmpfs of its own
        "Hostname": "sandbox",
        "Labels": dict(labels),
        # Standard input ends for good with the owner's connection: with the owner.
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "Tty": False,
        "NetworkDisabled": False,  # it would take the loopback away too
        "HostConfig": _host_configuration(uid, mounts, unpacked_bytes, limits),
    }


def _host_configuration(
    uid: int, mounts: Sequence[Mount], unpacked_bytes: int, limits: SandboxLimits
) -> dict[str, Any]:
    return {
        "Init": True,
        "AutoRemove": False,
        "RestartPolicy": {"Name": "no"},
        # Output is streamed and capped: the engine must keep no copy on the disk.
        "LogConfig": {"Type": "none"},
        # No network; of the host, neither name servers nor search domains.
        "NetworkMode": "none",
        "Dns": ["127.0.0.1"],
        "DnsSearch": ["."],
        "ExtraHosts": ["proxy:127.0.0.1"],
        "Sysctls": {"net.ipv4.ip_unprivileged_port_start": "0"},
        # No privileges.
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges:true", f"seccomp={profile()}"],
        "IpcMode": "private",
        "CgroupnsMode": "private",
        "MaskedPaths": list(MASKED_PATHS),
        "ReadonlyPaths": list(READ_ONLY_PATHS),
        # Nothing to write to but memory of its own.
        "ReadonlyRootfs": True,
        "Tmpfs": {
            "/tmp": f"{_TMPFS},uid={uid},gid={uid},size={limits.tmp_bytes}",  # noqa: S108
            UNPACKED: f"{_TMPFS},uid={uid},gid={uid},size={unpacked_bytes}",
        },
        "ShmSize": 64 << 20,
        "Mounts": [mount.to_json() for mount in mounts],
        # Limits.
        "Memory": limits.memory_bytes,
        "MemorySwap": limits.memory_bytes,
        "NanoCpus": int(limits.cpus * 1e9),
        "PidsLimit": limits.pids,
        # When the host itself runs short, agents go before validators.
        "OomScoreAdj": 500,
        "Ulimits": [
            _ulimit("nofile", limits.open_files),
            _ulimit("fsize", limits.file_bytes),
            _ulimit("core", 0),
            _ulimit("memlock", 64 << 10),
            _ulimit("msgqueue", 0),
        ],
    }


def _ulimit(name: str, value: int) -> dict[str, Any]:
    return {"Name": name, "Soft": value, "Hard": value}
