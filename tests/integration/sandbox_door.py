"""A gateway's socket for tests of the sandboxes alone: it answers, and counts who comes."""

from __future__ import annotations

import asyncio
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from sandbox.isolation.interface import Isolation, SandboxLimits, SandboxSpec
from scoring.types import AgentProblem

QUICK = SandboxLimits(wall_s=20, memory_bytes=256 << 20, pids=64, tmp_bytes=8 << 20)


class SandboxDoor:
    """Answers every request with its own path, as JSON text.

    `visited` is set by the first request, and `paths` holds all of them in order.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.paths: list[str] = []
        self.visited = asyncio.Event()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> SandboxDoor:
        self._server = await asyncio.start_unix_server(self._serve, self.path)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            writer.close()
            return
        path = head.split()[1].decode()
        self.paths.append(path)
        self.visited.set()
        body = f'"{path}"'.encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        await writer.drain()
        writer.close()


def spec(door: SandboxDoor, source: str, **limits: Any) -> SandboxSpec:
    """One run of `source` with small limits."""
    return SandboxSpec(
        run_id="run-1",
        agent_source=textwrap.dedent(source).encode(),
        problem=AgentProblem("p-1", "a leather belt", "Product"),
        gateway_socket=door.path,
        limits=replace(QUICK, **limits),
    )


async def told(isolation: Isolation, door: SandboxDoor, body: str, **limits: Any) -> dict[str, Any]:
    """Run `body`, which fills the dictionary `say`, and return what it said."""
    source = "def agent_main(problem):\n    say = {}\n"
    source += textwrap.indent(textwrap.dedent(body), "    ") + "\n    return [say]\n"
    result = await isolation.run(spec(door, source, **limits))
    assert result.error is None, (result.error, result.log)
    assert result.dialogue is not None
    return cast("dict[str, Any]", result.dialogue[0])
