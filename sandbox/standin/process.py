"""Starts the stand-in server as its own process and ends it again."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from sandbox.exceptions import ModelError

START_S = 60.0
STOP_S = 5.0


@asynccontextmanager
async def running_standin(*, load: Sequence[str] = ()) -> AsyncIterator[str]:
    """A stand-in server on a free loopback port while the context lasts; its base URL.

    `load` names modules that register further models. The server dies with this process
    however that ends: it reads a pipe that only this process holds. Raises ModelError
    `model.standin_failed` when it does not come up.
    """
    options = [part for module in load for part in ("--load", module)]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "sandbox.standin",
        "--port",
        "0",
        "--die-with-stdin",
        *options,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield await _url(process)
    finally:
        await _stop(process)


async def _url(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), START_S)
    except TimeoutError:
        line = b""
    url = line.decode("utf-8", "replace").strip()
    if not url.startswith("http://"):
        raise ModelError(
            f"the stand-in model server did not start within {START_S:g} s",
            code="model.standin_failed",
            remedy="run `python -m sandbox.standin` and read what it says",
        )
    return url


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_S)
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.stdin is not None:
        process.stdin.close()
