"""The server around the app: its socket, its line on standard output, its end.

SIGTERM and SIGINT let what runs end: no new requests are taken, answers under way are sent,
up to a bound.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn
from fastapi import FastAPI

from training.exceptions import ServingError
from training.serving.vllm import Address

GRACE_S: Final = 60
"""For answers under way when the server is told to end."""


def listen(address: Address) -> socket.socket:
    """A listening socket, bound before a model is loaded for nothing. Raises ServingError."""
    try:
        return socket.create_server((address.host, address.port), backlog=1024)
    except OSError as error:
        raise ServingError(
            f"cannot listen on {address.host}:{address.port}: {error.strerror or error}",
            remedy="choose another --port; 0 takes any free one",
        ) from error


def url_of(bound: socket.socket) -> str:
    """The base address of the OpenAI wire."""
    host, port = bound.getsockname()[:2]
    return f"http://{host}:{port}/v1"


async def serve(app: FastAPI, bound: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until a signal ends it; `ready` is called when requests are taken."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=GRACE_S,
    )
    await _AnnouncingServer(config, ready).serve(sockets=[bound])


class _AnnouncingServer(uvicorn.Server):
    """Says when it takes requests."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as uvicorn does, then tell."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take signals while it lasts. uvicorn would raise them again at the end: a server
        that was told to end and has done so did what was asked."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
