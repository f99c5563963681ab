"""`arena serve` as people start it: a process that answers, looks at the calendar, and ends."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.database

START_S = 120.0


@pytest.fixture
def directory() -> Iterator[Path]:
    """Short, since a socket's path must fit."""
    made = Path(tempfile.mkdtemp(prefix="arena-test-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


class Process:
    """A serving process and what it logged."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.logged: list[dict[str, Any]] = []

    async def until(self, event: str, **having: object) -> dict[str, Any]:
        """Read on in its log until an event."""
        assert self.process.stderr is not None
        async with asyncio.timeout(START_S):
            async for line in self.process.stderr:
                entry: dict[str, Any] = json.loads(line)
                self.logged.append(entry)
                if entry["event"] == event and having.items() <= entry.items():
                    return entry
        raise AssertionError(f"it ended without {event!r}: {self.logged[-5:]}")

    async def end(self) -> int:
        """SIGTERM, and how it ended."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.stderr is not None
        async with asyncio.timeout(START_S):
            async for line in self.process.stderr:
                self.logged.append(json.loads(line))
            return await self.process.wait()


def environment(directory: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ARENA_")}
    return kept | {
        "ARENA_DATA_DIR": str(directory),
        "ARENA_API_DATA_DIR": str(directory / "api"),
        "ARENA_CONDUCTOR_EVERY": "0.5",
    }


@asynccontextmanager
async def serving(directory: Path, *options: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "neurons", "serve", "--port", "0", "--log-format", "json",
        "--subtensor.network", f"local-chain:{directory / 'chain.sqlite'}", *options,
        env=environment(directory), stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield Process(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_it_answers_looks_at_the_calendar_and_ends_on_sigterm(directory: Path) -> None:
    async with serving(directory, "--workers", "2") as served:
        address = (await served.until("serving"))["address"]
        await served.until("rules.set")
        async with httpx.AsyncClient(base_url=address, timeout=30) as client:
            assert (await client.get("/health")).json() == {"status": "ok"}
            deep = (await client.get("/health/deep")).json()
            assert deep["database"]["ok"]
            assert deep["conductor"]["ok"] or deep["conductor"]["detail"] == "has not run yet"
        # Both processes answer: the second says when it is ready.
        await served.until("Application startup complete.")
        assert await served.end() == 0
        assert served.logged[-1]["event"] == "stopped"
    key = directory / "secret.key"
    assert key.stat().st_mode & 0o777 == 0o600
    told = json.dumps(served.logged)
    assert key.read_text().strip() not in told


async def test_the_calendar_alone_answers_nothing_but_metrics(directory: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with serving(directory, "--conductor-only", "--metrics-port", str(port)) as served:
        await served.until("rules.set")
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            assert (
                'arena_conductor_done_total{what="rules.set"}'
                in (await client.get("/metrics")).text
            )
        assert await served.end() == 0


async def test_a_port_that_is_taken_is_one_line(directory: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "neurons", "serve", "--port", str(port), "--no-conductor",
            "--subtensor.network", f"local-chain:{directory / 'chain.sqlite'}",
            env=environment(directory), stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        _, said = await process.communicate()
    assert process.returncode == 1
    assert f"127.0.0.1:{port} cannot be listened on" in said.decode()
    assert not (directory / "postgres").exists()  # nothing was begun
    assert b"Traceback" not in said
