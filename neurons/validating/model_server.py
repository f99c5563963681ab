"""The operator's model server as a child process: a clean environment, limits, a sure end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import structlog

from arena.exceptions import ArtefactError, Fault
from neurons.validating.model_guard import NO_SUCH_COMMAND

_log = structlog.get_logger(__name__)

GUARD = Path(__file__).with_name("model_guard.py")
CANNOT_LOAD = "artefact.cannot_load"
TOO_MUCH_MEMORY = "artefact.too_much_memory"
LOAD_TIMEOUT = "artefact.load_timeout"
NO_SERVER = "artefact.no_server"
_POLL_S = 0.2
_STOP_S = 10.0
_TAIL_LINES = 40
_MAX_LINE = 400
_MAX_TOLD = 600


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def clean_environment(home: Path, pass_env: Sequence[str]) -> dict[str, str]:
    """What a model server is told: where programs are, and to fetch nothing. No key of ours."""
    own = Path(sys.executable).parent
    return {
        "PATH": f"{own}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
        "PYTHONNOUSERSITE": "1",
        **{name: os.environ[name] for name in pass_env if name in os.environ},
    }


class ModelServer:
    """One running server."""

    def __init__(self, process: asyncio.subprocess.Process, base_url: str) -> None:
        self._process = process
        self.base_url = base_url
        self.tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self.over_memory = False

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.returncode is None

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.returncode

    @property
    def last_words(self) -> str:
        """The end of what it printed, in one printable line."""
        line = " ".join(" ".join(self.tail).split())
        return "".join(c if c.isprintable() else "�" for c in line)[-_MAX_TOLD:]

    async def read_log(self) -> None:
        """Take what it prints, and keep the end of it."""
        assert self._process.stdout is not None
        while chunk := await self._process.stdout.read(4_096):
            for line in chunk.decode("utf-8", "replace").splitlines():
                self.tail.append(line[:_MAX_LINE])

    async def watch_memory(self, most: int) -> None:
        """Kill the group when all its processes together have more memory than that."""
        while self.alive:
            used = await asyncio.to_thread(group_memory, self._process.pid)
            if used > most:
                self.over_memory = True
                _log.warning("the model server has too much memory", used=used, most=most)
                self.kill()
                return
            await asyncio.sleep(1.0)

    async def wait(self) -> int:
        """Its exit code, once it has ended."""
        return await self._process.wait()

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Signal the whole group."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, how)


@asynccontextmanager
async def running_server(
    argv: Sequence[str],
    *,
    port: int,
    environment: Mapping[str, str],
    directory: Path,
    health_path: str,
    load_s: float,
    memory_bytes: int,
) -> AsyncIterator[ModelServer]:
    """A model server that answers, while the context lasts; its whole group is killed after.

    Raises ArtefactError: the agent's fault when the server ended instead of answering, the
    validator's when there is no such command or it took too long.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(GUARD),
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=dict(environment),
        cwd=directory,
        start_new_session=True,
    )
    server = ModelServer(process, f"http://127.0.0.1:{port}")
    tasks = [
        asyncio.create_task(server.read_log(), name="model server log"),
        asyncio.create_task(server.watch_memory(memory_bytes), name="model server memory"),
    ]
    try:
        await _wait_for(server, health_path, load_s, tasks[0])
        yield server
        if not server.alive:
            _log.warning("the model server died", code=server.exit_code, said=server.last_words)
    finally:
        await _stop(server, process, tasks)


async def _wait_for(
    server: ModelServer, health_path: str, load_s: float, log: asyncio.Task[None]
) -> None:
    deadline = time.monotonic() + load_s
    async with httpx.AsyncClient(base_url=server.base_url, timeout=5.0, trust_env=False) as client:
        while True:
            if not server.alive:
                await asyncio.wait((log,), timeout=_STOP_S)
                raise _ended(server)
            if time.monotonic() > deadline:
                raise ArtefactError(
                    f"the model did not answer within {load_s:g} s: {server.last_words}",
                    code=LOAD_TIMEOUT,
                    fault=Fault.VALIDATOR,
                    remedy="raise ARENA_ARTEFACT_LOAD_SECONDS",
                )
            with suppress(httpx.HTTPError):
                if (await client.get(health_path)).status_code == 200:
                    return
            with suppress(TimeoutError):
                await asyncio.wait_for(server.wait(), _POLL_S)


def _ended(server: ModelServer) -> ArtefactError:
    if server.exit_code == NO_SUCH_COMMAND:
        return ArtefactError(
            f"the command of the model server cannot be started: {server.last_words}",
            code=NO_SERVER,
            fault=Fault.VALIDATOR,
            remedy="check ARENA_ARTEFACT_COMMAND",
        )
    if server.over_memory:
        return ArtefactError("the model needs more memory than it may have", code=TOO_MUCH_MEMORY)
    return ArtefactError(
        f"the model cannot be loaded (exit code {server.exit_code}): {server.last_words}",
        code=CANNOT_LOAD,
    )


async def _stop(
    server: ModelServer, process: asyncio.subprocess.Process, tasks: list[asyncio.Task[None]]
) -> None:
    server.kill(signal.SIGTERM)
    with suppress(TimeoutError):
        await asyncio.wait_for(server.wait(), _STOP_S)
    # Whatever became of the first process: nothing of its group stays.
    server.kill()
    await server.wait()
    if process.stdin is not None:
        process.stdin.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def group_memory(group: int, proc: Path = Path("/proc")) -> int:
    """Resident memory of all processes of a process group, in bytes."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = 0
    for entry in proc.iterdir():
        if not entry.name.isdecimal():
            continue
        with suppress(OSError, ValueError, IndexError):
            # After the name in parentheses: state, parent, group, … and field 24 is rss.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                total += int(fields[21]) * page
    return total
