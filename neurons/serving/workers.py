"""Further processes that answer on the same socket; one that dies is started anew."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from socket import socket

import structlog

from neurons.serving.options import ServeOptions

_log = structlog.get_logger(__name__)

PAUSE_S = 1.0
"""Before a process that died is started anew."""
STOP_S = 45.0
"""How long one may take to end; longer than its requests may."""


async def supervise(
    options: ServeOptions, listening: socket, count: int, stopping: asyncio.Event
) -> None:
    """Keep so many processes up until `stopping`; then end them."""
    command = worker_command(options, listening.fileno())
    await asyncio.gather(
        *(_keep_up(command, listening.fileno(), number, stopping) for number in range(count))
    )


def worker_command(options: ServeOptions, fd: int) -> list[str]:
    """The command line of a process that only answers."""
    command = [sys.executable, "-m", "neurons", "serve", "--no-conductor", "--fd", str(fd)]
    command += ["--host", options.host, "--port", str(options.port)]
    command += ["--subtensor.network", options.network, "--netuid", str(options.netuid)]
    command += ["--trusted-proxies", options.trusted_proxies]
    command += ["--log-format", "json" if options.log_json else "text"]
    if options.tls_certificate is not None and options.tls_key is not None:
        command += ["--tls-certificate", str(options.tls_certificate)]
        command += ["--tls-key", str(options.tls_key)]
    return command


async def _keep_up(command: Sequence[str], fd: int, number: int, stopping: asyncio.Event) -> None:
    while not stopping.is_set():
        process = await asyncio.create_subprocess_exec(*command, pass_fds=(fd,))
        ended = asyncio.create_task(process.wait())
        stopped = asyncio.create_task(stopping.wait())
        await asyncio.wait((ended, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not ended.done():
            await _end(process, ended)
            return
        if stopping.is_set():
            return
        _log.error("a process that answers has ended", number=number, status=ended.result())
        await asyncio.sleep(PAUSE_S)


async def _end(process: asyncio.subprocess.Process, ended: asyncio.Task[int]) -> None:
    process.terminate()
    try:
        async with asyncio.timeout(STOP_S):
            await asyncio.shield(ended)
    except TimeoutError:
        process.kill()
        await ended
