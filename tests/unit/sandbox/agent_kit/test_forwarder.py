"""The forwarder carries every byte, both ways, for many at once."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sandbox.agent_kit.forwarder import CHUNK, FALLBACK_PORT, Forwarder, listen


class Gateway:
    """Echoes what it reads, or, told to, first reads all and answers at the end."""

    def __init__(self) -> None:
        self.answer_at_the_end = False
        self.ended = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self.answer_at_the_end:
                writer.write(await reader.read())
            else:
                while data := await reader.read(1 << 16):
                    writer.write(data)
                    await writer.drain()
        except ConnectionError:
            pass
        finally:
            self.ended.set()
            writer.close()


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    made = Gateway()
    server = await asyncio.start_unix_server(made.serve, tmp_path / "g.sock")
    yield made
    server.close()


@pytest.fixture
def port(tmp_path: Path) -> int:
    """A forwarder on a port of its own; its thread ends with the tests' process."""
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen()
    server.setblocking(False)
    forwarder = Forwarder(server, str(tmp_path / "g.sock"))
    threading.Thread(target=forwarder.serve, daemon=True).start()
    return int(server.getsockname()[1])


async def exchange(port: int, data: bytes) -> bytes:
    """Send, say that this was all, and read to the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def send() -> None:
        writer.write(data)
        await writer.drain()
        writer.write_eof()

    sent = asyncio.create_task(send())
    answer = await reader.read()
    await sent
    writer.close()
    await writer.wait_closed()
    return answer


async def test_bytes_go_there_and_back(gateway: Gateway, port: int) -> None:
    assert await exchange(port, b"hello") == b"hello"


async def test_more_than_any_buffer_holds_goes_through_whole(gateway: Gateway, port: int) -> None:
    data = os.urandom(8 * CHUNK + 7)
    assert await exchange(port, data) == data


async def test_a_half_closed_connection_still_brings_the_answer(
    gateway: Gateway, port: int
) -> None:
    gateway.answer_at_the_end = True
    data = os.urandom(4 * CHUNK)
    assert await exchange(port, data) == data


async def test_many_at_once_do_not_mix(gateway: Gateway, port: int) -> None:
    payloads = [bytes([n]) * 10_000 for n in range(100)]
    assert await asyncio.gather(*(exchange(port, p) for p in payloads)) == payloads


async def test_a_client_that_goes_away_ends_the_gateways_side(gateway: Gateway, port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"half a request")
    await writer.drain()
    writer.transport.abort()
    await gateway.ended.wait()
    assert await exchange(port, b"next") == b"next"


async def test_without_a_gateway_the_connection_is_closed(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    assert await reader.read() == b""
    writer.close()


def test_it_listens_where_it_was_told() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = int(probe.getsockname()[1])
    server, port = listen(free)
    assert port == free
    assert port != FALLBACK_PORT
    server.close()
