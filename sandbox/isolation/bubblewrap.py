"""Sandboxes by bubblewrap: namespaces, a host user of its own, seccomp, cgroups.

As root: `bwrap` makes the namespaces and the root, `entry.py` inside drops to host
users that are nobody else's. As another user: a user namespace, and the cgroups that
were delegated. Nothing of a sandbox lies on the disk; on the host there is a process,
a cgroup and a lock, and the next start finds and removes what a killed one left.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import structlog

from sandbox.exceptions import IsolationError
from sandbox.isolation import cgroup, root
from sandbox.isolation.interface import SandboxResult, SandboxSpec
from sandbox.isolation.settings import IsolationSettings
from sandbox.isolation.slots import Slot, Slots, require_free_uids
from sandbox.isolation.supervisor import Supervisor

REMEDY: Final = "apt-get install bubblewrap"
NO_NAMESPACES: Final = "run it with sudo and outside of a container, or use Docker"
REMOVAL_S: Final = 15.0
USER_INSIDE: Final = 1000
"""The user inside a user namespace, where host users are not to be had."""

_JOIN: Final = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 125; shift; done; shift; exec "$@"'
"""Enters the cgroups before anything else, so that nothing runs outside of them."""

_ENTRY: Final = ("/usr/bin/python3", "-I", "-S", "-B", root.ENTRY)
_NAMESPACES: Final = ("net", "pid", "ipc", "uts", "cgroup")
_CAPABILITIES: Final = ("SYS_ADMIN", "SETUID", "SETGID", "SETPCAP", "NET_BIND_SERVICE")
"""What entry.py needs before it gives them up."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Host:
    """What every sandbox of this process shares."""

    bwrap: str
    version: str
    root: root.Root
    groups: cgroup.Groups


class Bubblewrap:
    """Implements `Isolation`. Made by `open`."""

    name = "bubblewrap"

    def __init__(self, host: _Host, settings: IsolationSettings) -> None:
        self._host = host
        self._slots = Slots(settings.run_dir / "slots", settings.uid_base, settings.uid_slots)
        self._running: set[asyncio.Task[SandboxResult]] = set()
        self._closed = False

    @classmethod
    async def open(cls, settings: IsolationSettings | None = None) -> Bubblewrap:
        """Check this machine and stage the sandboxes' root.

        Raises IsolationError naming the first thing that is missing, and its remedy.
        """
        chosen = settings or IsolationSettings()
        return cls(await asyncio.to_thread(_prepare, chosen), chosen)

    async def run(self, spec: SandboxSpec) -> SandboxResult:
        """See Isolation."""
        if self._closed:
            raise IsolationError("this isolation is closed")
        _check_socket(spec.gateway_socket)
        work = asyncio.create_task(self._run(spec))
        self._running.add(work)
        try:
            await asyncio.wait({work})
        finally:
            work.cancel()  # changes nothing when it is done
            await _ended(work)
            self._running.discard(work)
        if work.cancelled():
            raise IsolationError("this isolation was closed during the run")
        try:
            return work.result()
        except OSError as error:  # no memory to fork, no descriptor left, a read-only /run
            raise IsolationError(f"a sandbox could not be made: {error}") from error

    async def reclaim(self) -> list[str]:
        """See Isolation."""
        removed = []
        for slot in self._slots.abandoned():
            try:
                if await _remove_leftover(slot):
                    removed.append(f"bubblewrap sandbox {slot.number} of a process that is gone")
            finally:
                slot.release()
        return removed

    async def close(self) -> None:
        """See Isolation."""
        self._closed = True
        for work in list(self._running):
            work.cancel()
            await _ended(work)

    def environment(self) -> dict[str, str]:
        """See Isolation."""
        return {
            "isolation": self.name,
            "bubblewrap": self._host.version,
            **root.manifest_of(self._host.root),
        }

    async def _run(self, spec: SandboxSpec) -> SandboxResult:
        slot = await self._take_slot()
        try:
            name = f"{cgroup.PREFIX}{slot.number}-{secrets.token_hex(6)}"
            group = self._host.groups.create(name, spec.limits)
            slot.note = json.dumps([str(folder) for folder in group.folders()])
            try:
                return await self._supervise(spec, slot, group)
            finally:
                await _remove_leftover(slot)
        finally:
            slot.release()

    async def _take_slot(self) -> Slot:
        """A slot whose users own no process any more."""
        tried: list[Slot] = []
        try:
            while True:
                tried.append(self._slots.take())
                if await _remove_leftover(tried[-1]):
                    return tried.pop()
        finally:
            for slot in tried:
                slot.release()

    async def _supervise(self, spec: SandboxSpec, slot: Slot, group: cgroup.Group) -> SandboxResult:
        as_root = os.geteuid() == 0
        if as_root:
            # Only this sandbox's forwarder may connect, though others were to see the path.
            os.chown(spec.gateway_socket, slot.forwarder_uid, slot.forwarder_uid)
            spec.gateway_socket.chmod(0o600)
        with _command(self._host, spec, slot, group, as_root=as_root) as (command, descriptors):
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=descriptors,
                env={},
                cwd="/",
                # An interrupt at the keyboard is for the validator, which then cleans up.
                start_new_session=True,
            )
        supervisor = Supervisor(spec, process, group)
        try:
            return await supervisor.run()
        finally:
            await _ended(asyncio.create_task(_kill(process, group)))


def _prepare(settings: IsolationSettings) -> _Host:
    bwrap, version = find_bwrap()
    try_namespaces(bwrap)
    groups = cgroup.find()
    if os.geteuid() == 0:
        require_free_uids(settings.uid_base, settings.uid_slots)
    return _Host(bwrap, version, root.stage(settings.cache_dir), groups)


def find_bwrap() -> tuple[str, str]:
    """The program and its version. Raises IsolationError."""
    path = shutil.which("bwrap")
    if path is None:
        raise IsolationError("bubblewrap is not installed", remedy=REMEDY)
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return path, said.stdout.strip().removeprefix("bubblewrap ")


def try_namespaces(bwrap: str) -> None:
    """Make every namespace once, around a program that does nothing.

    Raises IsolationError where the kernel, a container or AppArmor forbids it.
    """
    own = [f"--unshare-{namespace}" for namespace in _NAMESPACES]
    if os.geteuid() != 0:
        own.append("--unshare-user")
    command = [bwrap, *own, "--ro-bind", "/", "/", "--", "/bin/true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        reason = said[-1] if said else f"bwrap ended with {done.returncode}"
        raise IsolationError(f"bubblewrap cannot confine here: {reason}", remedy=NO_NAMESPACES)


def _check_socket(path: Path) -> None:
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except OSError as error:
        raise IsolationError(f"the gateway's socket {path}: {error.strerror}") from None
    if not is_socket:
        raise IsolationError(f"{path} is not a socket")


@contextmanager
def _command(
    host: _Host, spec: SandboxSpec, slot: Slot, group: cgroup.Group, *, as_root: bool
) -> Iterator[tuple[list[str], list[int]]]:
    """The command line, and the descriptors it names, which are closed afterwards.

    The arguments travel in a file without a name: /proc would show them to the agent.
    """
    with ExitStack() as files:
        agent = files.enter_context(_memory_file(spec.agent_source))
        job = files.enter_context(_memory_file(json.dumps(_job(spec, slot, as_root)).encode()))
        arguments = _arguments(host, spec, agent, job, as_root=as_root)
        packed = files.enter_context(_memory_file("\0".join(arguments).encode() + b"\0"))
        join = [str(file) for file in group.join_files()]
        bwrap = [host.bwrap, "--args", str(packed), "--", *_ENTRY]
        command = ["/bin/sh", "-c", _JOIN, "sh", *join, "--", *bwrap]
        yield command, [agent, job, packed]


@contextmanager
def _memory_file(content: bytes) -> Iterator[int]:
    fd = os.memfd_create("sn15-arena", os.MFD_CLOEXEC)
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(content)
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)


def _arguments(host: _Host, spec: SandboxSpec, agent: int, job: int, *, as_root: bool) -> list[str]:
    arguments = [f"--unshare-{namespace}" for namespace in _NAMESPACES]
    arguments += ["--die-with-parent", "--new-session", "--hostname", "sandbox", "--clearenv"]
    if not as_root:
        user = str(USER_INSIDE)
        arguments += ["--unshare-user", "--uid", user, "--gid", user]
    arguments += ["--ro-bind", str(host.root.path), "/"]
    if not as_root:
        # The kernel lets a user namespace mount a /proc only where it sees one already.
        arguments += ["--proc", "/proc"]
    for device in root.DEVICES:
        arguments += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    arguments += ["--ro-bind", str(spec.gateway_socket), root.SOCKET]
    for fd, name in ((agent, "agent.py"), (job, "job.json")):
        arguments += ["--perms", "0444", "--ro-bind-data", str(fd), f"{root.JOB}/{name}"]
    arguments += ["--cap-drop", "ALL"]
    for capability in _CAPABILITIES:
        arguments += ["--cap-add", f"CAP_{capability}"]
    return arguments


def _job(spec: SandboxSpec, slot: Slot, as_root: bool) -> dict[str, Any]:
    """What runner.read_job describes, and what entry.py confines by."""
    limits = spec.limits
    return {
        "problem": spec.problem.to_json(),
        "env": {**_ENVIRONMENT, **spec.env},
        "path": [root.SITE],
        "answer_bytes": limits.answer_bytes,
        "gateway_socket": root.SOCKET,
        "await_go": True,
        "confine": {
            "same_user": not as_root,
            "uid": slot.uid if as_root else USER_INSIDE,
            "forwarder_uid": slot.forwarder_uid if as_root else USER_INSIDE,
            "tmp_bytes": limits.tmp_bytes,
            "rlimits": {
                "NOFILE": limits.open_files,
                "FSIZE": limits.file_bytes,
                "NPROC": limits.pids,
                "CORE": 0,
                "MEMLOCK": 64 << 10,
                "MSGQUEUE": 0,
                "NICE": 0,
                "RTPRIO": 0,
            },
        },
    }


_ENVIRONMENT: Final = {
    "PATH": "/usr/bin",
    "HOME": "/tmp",  # noqa: S108 - the sandbox's own
    "TMPDIR": "/tmp",  # noqa: S108
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "CHUTES_ACCESS_TOKEN": "sandbox",
}


async def _kill(process: asyncio.subprocess.Process, group: cgroup.Group) -> None:
    """Kill a sandbox whole, and wait for its first process."""
    cgroup.kill(group.folders())
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGKILL)
    await process.wait()


async def _ended(task: asyncio.Task[Any]) -> None:
    """Wait for a task's end even when cancelled meanwhile, and pass that on afterwards."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled


async def _remove_leftover(slot: Slot) -> bool:
    """Kill and remove what a slot's note names; False when something would not go.

    The note stays then, for the next one to try. Goes on to the end when cancelled.
    """
    if not slot.note:
        return True
    folders = [Path(text) for text in _noted(slot.note)]
    work = asyncio.create_task(asyncio.to_thread(cgroup.destroy, folders, REMOVAL_S))
    try:
        await _ended(work)
    finally:
        if work.result():
            slot.note = ""
        else:
            _log.error("cgroups of a sandbox could not be removed", folders=_noted(slot.note))
    return work.result()


def _noted(note: str) -> list[str]:
    """Only cgroups of this project, whatever the note says."""
    try:
        names = json.loads(note)
    except ValueError:
        return []
    pattern = re.compile(rf"/.*/{re.escape(cgroup.PREFIX)}\d+-[0-9a-f]+")
    return [name for name in names if isinstance(name, str) and pattern.fullmatch(name)]
