"""The gateway of a validator: a Unix socket for every sandbox, all in one process."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

from sandbox.catalog.interface import Catalog
from sandbox.exceptions import IsolationError
from sandbox.gateway.http import HttpBounds, HttpServer
from sandbox.gateway.interface import GatewayLimits
from sandbox.gateway.session import Session
from sandbox.gateway.sockets import SocketDirectory
from sandbox.models.client import ModelClient

MAX_SOCKET_PATH = 107
"""Bytes of `sun_path` without its closing NUL, on Linux."""


class HttpGateway:
    """Opens sessions. Implements `Gateway`; holds a catalogue, a model client and limits.

    Sockets lie in a directory of their own that only this user can enter (what a killed
    gateway left of its own is removed when the next one opens a session); `socket_mode`
    and `socket_owner` (user id, group id) decide who may connect where a sandbox is given
    the socket itself. `search_threads` bounds how many searches run at once.
    """

    def __init__(
        self,
        catalog: Catalog,
        models: ModelClient | None = None,
        *,
        limits: GatewayLimits | None = None,
        bounds: HttpBounds | None = None,
        socket_dir: Path | None = None,
        socket_mode: int = 0o600,
        socket_owner: tuple[int, int] | None = None,
        search_threads: int | None = None,
    ) -> None:
        self._catalog = catalog
        self._models = models
        self._limits = limits or GatewayLimits()
        self._bounds = bounds or HttpBounds()
        self._socket_mode = socket_mode
        self._socket_owner = socket_owner
        self._parent = socket_dir
        self._directory: SocketDirectory | None = None
        self._numbers = itertools.count(1)
        self._executor = ThreadPoolExecutor(
            search_threads or min(4, os.cpu_count() or 1), thread_name_prefix="gateway-search"
        )

    @asynccontextmanager
    async def session(
        self, run_id: str, *, limits: GatewayLimits | None = None
    ) -> AsyncIterator[Session]:
        """A fresh socket and a fresh recorder; the socket is removed when the context ends.

        `run_id` is for logs of the caller; no path is made from it. Requests in flight at
        the end are cut and recorded as such. Raises IsolationError when no socket can be
        made.
        """
        socket = self._next_socket()
        session = Session(
            socket, self._catalog, self._models, limits or self._limits, executor=self._executor
        )
        server = HttpServer(session.handle, session.refuse, self._bounds)
        session.shut_door = server.shut_door
        try:
            await self._open(server, socket)
            yield session
        finally:
            await server.close()
            socket.unlink(missing_ok=True)

    async def _open(self, server: HttpServer, socket: Path) -> None:
        try:
            await server.open(socket)
            os.chmod(socket, self._socket_mode)
            if self._socket_owner is not None:
                os.chown(socket, *self._socket_owner)
        except OSError as error:
            raise _no_socket(error) from error

    def _next_socket(self) -> Path:
        if self._directory is None:
            try:
                self._directory = SocketDirectory(self._parent)
            except OSError as error:
                raise _no_socket(error) from error
        path = self._directory.path / f"{next(self._numbers)}.sock"
        if len(os.fsencode(path)) > MAX_SOCKET_PATH:
            raise IsolationError(
                f"the socket path {path} is longer than {MAX_SOCKET_PATH} bytes",
                code="gateway.no_socket",
                remedy="choose a shorter directory for sockets",
            )
        return path

    async def close(self) -> None:
        """Remove the socket directory and end the search threads. Sessions are closed before."""
        await asyncio.to_thread(self._executor.shutdown, wait=True, cancel_futures=True)
        if self._directory is not None:
            self._directory.remove()
            self._directory = None


def _no_socket(error: OSError) -> IsolationError:
    return IsolationError(
        f"cannot open a gateway socket: {error.strerror or error}", code="gateway.no_socket"
    )
