"""A checkpoint served by a child process, which dies with this one however that ends."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from training.exceptions import EvaluationError

START_S = 600.0
"""A model of some billions of parameters is read from a slow disk."""
STOP_S = 70.0
"""The server lets answers under way end."""


@asynccontextmanager
async def running_model(
    directory: Path, name: str, *, threads: int | None = None
) -> AsyncIterator[str]:
    """`arena model serve` on a free loopback port while the context lasts; its base URL.

    `threads` of the processor: by default all, which several servers side by side would spend
    on waiting for one another. Raises EvaluationError when it does not come up; what it said
    stands on standard error.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "training.evaluation.served",
        "serve",
        str(directory),
        "--name",
        name,
        "--port",
        "0",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | ({"OMP_NUM_THREADS": str(threads)} if threads else {}),
    )
    try:
        yield await _url(process, directory)
    finally:
        await _stop(process)


async def _url(process: asyncio.subprocess.Process, directory: Path) -> str:
    assert process.stdout is not None
    line = b""
    with suppress(TimeoutError):
        line = await asyncio.wait_for(process.stdout.readline(), START_S)
    url = line.decode("utf-8", "replace").strip()
    if not url.startswith("http://"):
        raise EvaluationError(
            f"{directory} could not be served",
            code="evaluation.not_served",
            remedy=f"run `arena model serve {directory}` and read what it says",
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


def _end_with_stdin() -> None:
    # The write end lies in the parent alone: the kernel closes it however that one ends.
    # Not through `sys.stdin`: its lock, still held, would abort the interpreter's end.
    while os.read(0, 1):
        pass
    os._exit(0)


if __name__ == "__main__":
    from sandbox.terminal import one_line_errors
    from training.serving.cli import app

    threading.Thread(target=_end_with_stdin, daemon=True).start()
    with one_line_errors():
        app()
