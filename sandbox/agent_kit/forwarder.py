"""The only road out of a sandbox: TCP on loopback, handed on to the gateway's socket.

Runs inside a sandbox under the system's Python, so it uses the standard library
alone, and little of that: every import delays the start of every problem. One thread
and one epoll serve all connections, so that the agent's process limit stays the
agent's. It forwards bytes and understands none of them; what it forwards is recorded
on the other side, where the agent cannot reach.
"""

from __future__ import annotations

import errno
import select
from socket import (
    AF_INET,
    AF_UNIX,
    IPPROTO_TCP,
    SHUT_WR,
    SO_REUSEADDR,
    SOCK_STREAM,
    SOL_SOCKET,
    TCP_NODELAY,
    socket,
)

PORT = 80
FALLBACK_PORT = 8080
CHUNK = 256 << 10
"""Bytes read at once, and the most that waits for a slow reader on either side."""

BACKLOG = 512
BROKEN = select.EPOLLHUP | select.EPOLLERR


def listen(port: int = PORT) -> tuple[socket, int]:
    """Listen on loopback; return the socket and its port.

    Port 80 needs a privilege or a lowered `ip_unprivileged_port_start`; without
    either it is 8080. Raises OSError when neither can be had.
    """
    for candidate in (port, FALLBACK_PORT):
        server = socket(AF_INET, SOCK_STREAM)
        server.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        try:
            server.bind(("127.0.0.1", candidate))
        except PermissionError:
            server.close()
            continue
        server.listen(BACKLOG)
        server.setblocking(False)
        return server, candidate
    raise PermissionError(errno.EACCES, "no port of loopback can be had for the gateway")


class _Side:
    """One end of a connection: a socket, and the bytes that wait to be written to it."""

    __slots__ = ("end", "ended", "finished", "interest", "other", "waiting")

    def __init__(self, end: socket) -> None:
        self.end = end
        self.other: _Side = self
        self.waiting = b""
        self.ended = False  # nothing more will be read from here
        self.finished = False  # nothing more will be written to here
        self.interest = 0


class Forwarder:
    """Serves the connections of one listening socket until it is killed."""

    def __init__(self, server: socket, gateway: str) -> None:
        self._server = server
        self._gateway = gateway
        self._poll = select.epoll()
        self._sides: dict[int, _Side] = {}
        self._paused = False
        self._poll.register(server.fileno(), select.EPOLLIN)

    def serve(self) -> None:
        """Forward for ever."""
        while True:
            for fd, events in self._poll.poll():
                if fd == self._server.fileno():
                    self._accept()
                    continue
                side = self._sides.get(fd)
                if side is None:  # closed by an earlier event of this round
                    continue
                try:
                    self._move(side, events)
                except OSError:
                    self._drop(side)

    def _accept(self) -> None:
        try:
            accepted, _ = self._server.accept()
        except BlockingIOError:
            return
        except OSError:  # too many open files: wait until a connection ends
            self._pause()
            return
        client = _Side(accepted)
        try:
            upstream = _Side(socket(AF_UNIX, SOCK_STREAM))
        except OSError:
            client.end.close()
            self._pause()
            return
        try:
            client.end.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
            upstream.end.connect(self._gateway)
        except OSError:
            # The agent sees a closed connection, as with any server that is down.
            client.end.close()
            upstream.end.close()
            return
        client.other, upstream.other = upstream, client
        for side in (client, upstream):
            side.end.setblocking(False)
            side.interest = select.EPOLLIN
            self._sides[side.end.fileno()] = side
            self._poll.register(side.end.fileno(), side.interest)

    def _pause(self) -> None:
        """Take no more connections until one ends."""
        self._poll.modify(self._server.fileno(), 0)
        self._paused = True

    def _move(self, side: _Side, events: int) -> None:
        if events & (select.EPOLLOUT | BROKEN):
            self._write(side)
        if events & (select.EPOLLIN | BROKEN) and not side.ended:
            self._read(side)
        if side.ended and side.other.ended and not (side.waiting or side.other.waiting):
            self._drop(side)
            return
        self._watch(side)
        self._watch(side.other)

    def _read(self, side: _Side) -> None:
        if side.other.waiting:
            return
        try:
            chunk = side.end.recv(CHUNK)
        except BlockingIOError:
            return
        side.ended = not chunk
        side.other.waiting = chunk
        self._write(side.other)

    def _write(self, side: _Side) -> None:
        if side.waiting:
            try:
                sent = side.end.send(side.waiting)
            except BlockingIOError:
                return
            side.waiting = side.waiting[sent:]
        if not side.waiting and side.other.ended and not side.finished:
            side.finished = True
            side.end.shutdown(SHUT_WR)

    def _watch(self, side: _Side) -> None:
        """Ask for just the events that can be acted on.

        A side that waits for nothing is taken out, since a hang-up is reported for as
        long as it is in, and this loop would spin.
        """
        reads = not side.ended and not side.other.waiting
        interest = (select.EPOLLIN if reads else 0) | (select.EPOLLOUT if side.waiting else 0)
        if interest == side.interest:
            return
        if not interest:
            self._poll.unregister(side.end.fileno())
        elif not side.interest:
            self._poll.register(side.end.fileno(), interest)
        else:
            self._poll.modify(side.end.fileno(), interest)
        side.interest = interest

    def _drop(self, side: _Side) -> None:
        for one in (side, side.other):
            self._sides.pop(one.end.fileno(), None)
            one.end.close()
        if self._paused:
            self._paused = False
            self._poll.modify(self._server.fileno(), select.EPOLLIN)
