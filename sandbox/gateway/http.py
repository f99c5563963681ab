"""A small HTTP/1.1 server for one hostile client: bounded in every direction.

h11 reads and writes the protocol; this module owns time and memory. It knows nothing
of tools or models: it hands a `Request` to a handler and sends the `Response` back.

Why not a framework: the body of a request that is refused must not be read, a request
line and a header block must stay small, a client that sends a byte a minute must not
hold anything, and opening a server a problem must cost about a millisecond.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import h11

_READ_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class HttpBounds:
    """What one client may cost."""

    header_bytes: int = 65_536
    """Request line and headers together; the longest real search has 3 KB."""
    header_s: float = 15.0
    """From the first byte of a request to the end of its headers."""
    body_s: float = 60.0
    """From the end of the headers to the end of the body."""
    write_s: float = 60.0
    """For a client to take its answer."""
    connections: int = 64
    """Open at once; the oldest idle one makes room."""
    drain_bytes: int = 16 << 20
    """Of a refused body, thrown away unread by us so that the client sees the answer."""
    drain_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Request:
    """One request whose headers have arrived. The body is read only on demand."""

    method: str
    path: str
    query: str
    declared_bytes: int | None
    """Content-Length; None when the body is chunked."""
    head_bytes: int
    body: Callable[[int], Awaitable[bytes]]
    """Read the body, at most so many bytes. Raises BodyTooLarge, BodyTimeout, BodyBroken,
    ClientGone."""


@dataclass(frozen=True, slots=True)
class Response:
    """What to send. `close` ends the connection after it."""

    status: int
    body: bytes
    close: bool = False
    headers: tuple[tuple[str, str], ...] = field(default=())


class BodyTooLarge(Exception):  # noqa: N818 - a signal inside this module's protocol
    """The body has more bytes than were allowed."""


class BodyTimeout(Exception):  # noqa: N818
    """The body did not arrive in time."""


class BodyBroken(Exception):  # noqa: N818
    """The body is no HTTP."""


class ClientGone(Exception):  # noqa: N818
    """The client closed the connection in the middle of a request."""


Handler = Callable[[Request], Awaitable[Response]]
Refusal = Callable[[int, str], Response]
"""Makes (and records) the answer to what is not HTTP: status, reason."""


class HttpServer:
    """Serves one Unix socket until it is closed."""

    def __init__(self, handler: Handler, refuse: Refusal, bounds: HttpBounds) -> None:
        self._handler = handler
        self._refuse = refuse
        self._bounds = bounds
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], _Connection] = {}
        self._closed = False

    async def open(self, socket: Path) -> None:
        """Listen on `socket`."""
        self._server = await asyncio.start_unix_server(
            self._serve, str(socket), limit=_READ_BYTES, backlog=self._bounds.connections
        )

    def shut_door(self) -> None:
        """Take no more connections; those that are open go on."""
        if self._server is not None:
            self._server.close()

    async def close(self) -> None:
        """Stop listening, cut every connection, and wait until its handler has ended."""
        self.shut_door()
        self._closed = True  # also for a connection whose task has yet to start
        tasks = list(self._connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._closed:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        connection = _Connection(reader, writer, self._handler, self._refuse, self._bounds)
        if len(self._connections) >= self._bounds.connections:
            self._make_room()
        self._connections[task] = connection
        try:
            await connection.run()
        except asyncio.CancelledError:
            # Asked for by `close` or `_make_room`; asyncio would log it as an error.
            pass
        finally:
            del self._connections[task]
            writer.transport.abort()

    def _make_room(self) -> None:
        for task, connection in self._connections.items():
            if connection.idle:
                task.cancel()
                return
        # All are busy: the oldest goes, so that a client cannot lock itself out.
        next(iter(self._connections)).cancel()


class _Connection:
    """One client connection: requests one after the other."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        handler: Handler,
        refuse: Refusal,
        bounds: HttpBounds,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._handler = handler
        self._refuse = refuse
        self._bounds = bounds
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=bounds.header_bytes)
        self._head_only = False
        self.idle = True

    async def run(self) -> None:
        """Serve until either side ends the connection."""
        # LocalProtocolError: h11 does not let us answer a client that is broken already.
        with contextlib.suppress(ClientGone, ConnectionError, h11.LocalProtocolError):
            while await self._one():
                self._http.start_next_cycle()

    async def _one(self) -> bool:
        """Answer one request. True when another may follow on this connection."""
        try:
            event = await self._head()
        except h11.RemoteProtocolError as error:
            await self._send(self._refuse(error.error_status_hint, str(error)))
            return False
        except TimeoutError:
            await self._send(self._refuse(408, "the headers did not arrive in time"))
            return False
        if event is None:
            return False
        self.idle = False
        self._head_only = event.method == b"HEAD"
        response = await self._handler(self._request(event))
        unread = self._http.their_state is not h11.DONE and not await self._finish_body()
        await self._send(response, close=response.close or unread)
        if unread:
            await self._drain()
        self.idle = True
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    async def _head(self) -> h11.Request | None:
        """The next request line and headers; None when the client is done."""
        event = self._http.next_event()
        if event is h11.NEED_DATA:
            # Between requests a client may be silent as long as its run lasts.
            data = await self._reader.read(_READ_BYTES)
            async with asyncio.timeout(self._bounds.header_s):
                while data:
                    self._http.receive_data(data)
                    event = self._http.next_event()
                    if event is not h11.NEED_DATA:
                        break
                    data = await self._reader.read(_READ_BYTES)
        return event if isinstance(event, h11.Request) else None

    def _request(self, event: h11.Request) -> Request:
        target = event.target.decode("ascii")
        if target.startswith("http://"):  # absolute form, RFC 9112 section 3.2.2
            target = "/" + target[7:].partition("/")[2]
        path, _, query = target.partition("?")
        declared: int | None = 0
        head = len(event.target)
        for name, value in event.headers:
            head += len(name) + len(value)
            if name == b"content-length":
                declared = int(value)
            elif name == b"transfer-encoding":
                declared = None
        method = event.method.decode("ascii")
        return Request(method, path, query, declared, head, self._body)

    async def _body(self, limit: int) -> bytes:
        body = bytearray()
        if self._http.they_are_waiting_for_100_continue:
            self._write(h11.InformationalResponse(status_code=100, headers=[]))
        try:
            async with asyncio.timeout(self._bounds.body_s):
                while not isinstance(event := await self._event(), h11.EndOfMessage):
                    assert isinstance(event, h11.Data)
                    body += event.data
                    if len(body) > limit:
                        raise BodyTooLarge
        except TimeoutError:
            raise BodyTimeout from None
        except h11.RemoteProtocolError as error:
            raise BodyBroken(str(error)) from None
        return bytes(body)

    async def _event(self) -> h11.Event:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            data = await self._reader.read(_READ_BYTES)
            if not data:
                raise ClientGone
            self._http.receive_data(data)
        if not isinstance(event, h11.Data | h11.EndOfMessage):
            raise ClientGone
        return event

    async def _finish_body(self) -> bool:
        """Take what is left of the body if it is there already; False when it is not."""
        if self._http.they_are_waiting_for_100_continue:
            return False
        with contextlib.suppress(h11.RemoteProtocolError):
            while isinstance(event := self._http.next_event(), h11.Data):
                pass
            return isinstance(event, h11.EndOfMessage)
        return False

    def _write(self, *events: h11.Event) -> None:
        data = b"".join(self._http.send(event) or b"" for event in events)
        if data:
            self._writer.write(data)

    async def _send(self, response: Response, *, close: bool = True) -> None:
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(response.body))),
            *response.headers,
        ]
        if close:
            headers.append(("connection", "close"))
        events: list[h11.Event] = [h11.Response(status_code=response.status, headers=headers)]
        if not self._head_only:
            events.append(h11.Data(data=response.body))
        self._write(*events, h11.EndOfMessage())
        try:
            async with asyncio.timeout(self._bounds.write_s):
                await self._writer.drain()
        except TimeoutError:
            raise ClientGone from None

    async def _drain(self) -> None:
        """Throw away what a refused client is still sending, for a moment.

        A client that writes its whole body before it reads would otherwise meet a
        broken pipe and never see why it was refused.
        """
        left = self._bounds.drain_bytes
        with contextlib.suppress(TimeoutError, OSError):
            if self._writer.can_write_eof():
                self._writer.write_eof()
            async with asyncio.timeout(self._bounds.drain_s):
                while left > 0 and (data := await self._reader.read(_READ_BYTES)):
                    left -= len(data)
