"""Agents in Docker containers: one fresh container a problem.

    python -m sandbox.isolation.docker build --base python:3.11-slim

May use the engine's socket, and nothing of the host but the gateway's socket, whose
owner it sets. A container holds the labels of its owner, so that what a killed process
left behind is found by the next one.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import stat
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import structlog
import typer

from sandbox import agent_kit
from sandbox.exceptions import IsolationError
from sandbox.isolation import docker_container as container
from sandbox.isolation import docker_image as sandbox_image
from sandbox.isolation.docker_checks import examine, has_mapped_users
from sandbox.isolation.docker_engine import Engine, EngineError, survey
from sandbox.isolation.docker_run import Bundle, DockerRun
from sandbox.isolation.interface import SandboxResult, SandboxSpec
from sandbox.terminal import console, one_line_errors, plain

T = TypeVar("T")

AGENT_ENV: Final = {
    "PATH": "/usr/local/bin:/usr/bin",
    "HOME": "/tmp",  # noqa: S108 - the sandbox's own
    "TMPDIR": "/tmp",  # noqa: S108
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "CHUTES_ACCESS_TOKEN": "sandbox",
}
"""The same as under bubblewrap; the token is a dummy that the gateway replaces."""

GATEWAY_SOCKET: Final = "/run/gateway.sock"
_KIT: Final = Path(agent_kit.__file__).parent
_GRACE_S: Final = 300.0
"""A container older than its hard stop by this has no living owner."""

_HOST_UIDS: Final = range(0x70000000, 0x78000000)
"""Above what distributions and systemd give out, below systemd's foreign range."""
_MAPPED_UIDS: Final = range(20_000, 60_000)
"""Inside the 65,536 that an engine with mapped users has."""

_log = structlog.get_logger(__name__)


class Docker:
    """Implements `Isolation` on a local Docker engine.

    Making one asks the engine what it can do. Raises IsolationError naming the first
    thing that is missing, and its remedy.
    """

    name = "docker"

    def __init__(self, socket: Path | None = None) -> None:
        found, self._image = examine(socket).usable()
        self._engine = Engine(found.socket, found.api)
        self._remapped = has_mapped_users(found.info)
        self._owner = container.Owner.current()
        self._instance = secrets.token_hex(8)
        self._running: dict[str, asyncio.Task[Any]] = {}
        self._left: set[str] = set()
        """Containers that an unreachable engine kept."""
        self._kit = kit_files()
        self._closed = False

    @classmethod
    async def open(cls, socket: Path | None = None) -> Docker:
        """Make one without holding up the event loop."""
        return await asyncio.to_thread(cls, socket)

    async def run(self, spec: SandboxSpec) -> SandboxResult:
        """Run one agent on one problem in a fresh container and remove it again.

        Raises IsolationError when there is no container to run in.
        """
        if self._closed:
            raise IsolationError("this isolation was closed")
        for left in tuple(self._left):
            await to_the_end(self._remove(left))
        uid = secrets.choice(_MAPPED_UIDS if self._remapped else _HOST_UIDS)
        self._lend(spec.gateway_socket, uid)
        name = f"sn15-arena-{secrets.token_hex(8)}"
        task = asyncio.current_task()
        assert task is not None
        self._running[name] = task
        try:
            # To the end: an engine goes on creating what nobody waits for any more.
            bundle = self._bundle(spec)
            body = self._configuration(spec, uid, bundle)
            created = await to_the_end(self._engine.create(name, body))
            return await DockerRun(self._engine, created, spec).result(bundle)
        finally:
            await to_the_end(self._remove(name))
            del self._running[name]

    async def reclaim(self) -> list[str]:
        """Remove the containers of processes that are gone; say which."""
        removed = []
        for found in await self._engine.containers(container.LABEL_OWNER):
            names, labels = found["Names"] or [found["Id"]], found["Labels"]
            name = str(names[0]).lstrip("/")
            if name in self._running or not self._abandoned(labels):
                continue
            await self._engine.remove(str(found["Id"]))
            owner = labels[container.LABEL_OWNER].partition(":")[0]
            removed.append(f"container {name} of process {owner}")
        return removed

    async def close(self) -> None:
        """Cancel what runs, remove its containers, and run nothing any more."""
        if self._closed:
            return
        self._closed = True
        tasks = set(self._running.values()) - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            mine = f"{container.LABEL_INSTANCE}={self._instance}"
            for found in await self._engine.containers(mine):
                await self._engine.remove(str(found["Id"]))
        except EngineError as error:
            _log.warning("containers left behind", error=error.message)
        finally:
            await self._engine.close()

    def environment(self) -> dict[str, str]:
        """What decides how agents run, for the record's environment hash."""
        return {
            "isolation": self.name,
            "python": self._image.python,
            "requests": self._image.requests,
            "image": self._image.id,
            "agent_kit": digest(self._kit),
        }

    def _abandoned(self, labels: dict[str, str]) -> bool:
        owner = container.Owner.parse(labels[container.LABEL_OWNER])
        alive = owner.alive() if owner else None
        if alive is None:
            # Of another PID namespace: only age tells.
            expires = labels.get(container.LABEL_EXPIRES, "")
            return expires.isdecimal() and int(expires) < time.time()
        # One of ours that is not running is what an unreachable engine kept.
        return not alive or labels.get(container.LABEL_INSTANCE) == self._instance

    def _lend(self, socket: Path, uid: int) -> None:
        """Let this sandbox's user, and no other sandbox's, connect to the socket."""
        try:
            if not stat.S_ISSOCK(socket.lstat().st_mode):
                raise IsolationError(f"the gateway's socket {socket} is not a socket")
            if os.geteuid() == 0 and not self._remapped:
                os.chown(socket, uid, uid, follow_symlinks=False)
                socket.chmod(0o600)
            else:
                # No other sandbox can see it, and the gateway's folder keeps others out.
                socket.chmod(0o666)
        except OSError as error:
            raise IsolationError(f"the gateway's socket cannot be lent: {error}") from error

    def _configuration(self, spec: SandboxSpec, uid: int, bundle: Bundle) -> dict[str, Any]:
        expires = int(time.time() + spec.limits.hard_wall_s + _GRACE_S)
        return container.configuration(
            image=self._image.id,
            command=[
                *("python3", "-I", "-S", "-B"),
                *(sandbox_image.UNPACK, container.UNPACKED),
            ],
            env={},
            uid=uid,
            mounts=[container.Mount(spec.gateway_socket.absolute(), GATEWAY_SOCKET)],
            unpacked_bytes=(1 << 20) + 2 * sum(len(data) for _, data in bundle),
            limits=spec.limits,
            labels={
                container.LABEL_OWNER: self._owner.label(),
                container.LABEL_INSTANCE: self._instance,
                container.LABEL_RUN: spec.run_id,
                container.LABEL_EXPIRES: str(expires),
            },
        )

    def _bundle(self, spec: SandboxSpec) -> Bundle:
        job = {
            "problem": spec.problem.to_json(),
            "env": AGENT_ENV | dict(spec.env),
            "answer_bytes": spec.limits.answer_bytes,
            "gateway_socket": GATEWAY_SOCKET,
            "await_go": True,
            "path": [sandbox_image.LIBRARIES_FOLDER],
        }
        return [
            *self._kit,
            ("job/agent.py", spec.agent_source),
            ("job/job.json", json.dumps(job).encode()),
        ]

    async def _remove(self, name: str) -> None:
        """Remove a container, whatever state it is in; one that stays is tried again."""
        try:
            await self._engine.remove(name)
            self._left.discard(name)
        except EngineError as error:
            self._left.add(name)
            _log.warning("a container could not be removed", name=name, error=error.message)


def kit_files() -> Bundle:
    """The agent kit, as it is unpacked inside."""
    paths = sorted(path for path in _KIT.rglob("*.py"))
    return tuple((f"kit/{path.relative_to(_KIT)}", path.read_bytes()) for path in paths)


def digest(files: Bundle) -> str:
    """SHA-256 over names and contents."""
    total = hashlib.sha256()
    for name, data in files:
        total.update(f"{name}\0{len(data)}\0".encode() + data)
    return total.hexdigest()


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` to its end even when cancelled, and only then pass the cancellation on."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()  # seen, and less urgent than the cancellation
        raise cancelled
    return task.result()


app = typer.Typer(help="The Docker sandbox.", rich_markup_mode=None)


@app.callback()
def _root() -> None:
    """The Docker sandbox."""


@app.command()
def build(
    base: Annotated[
        str, typer.Option(help="An image with a full python3 that the engine has or can pull.")
    ] = sandbox_image.DEFAULT_BASE,
) -> None:
    """Build the sandbox image.

    Example: python -m sandbox.isolation.docker build --base python:3.11-slim
    """

    async def work() -> None:
        found = survey(sandbox_image.reference())
        engine = Engine(found.socket, found.api)
        try:
            await sandbox_image.build(engine, base, lambda line: console.print(plain(line)))
        finally:
            await engine.close()

    with one_line_errors():
        asyncio.run(work())


if __name__ == "__main__":
    app()
