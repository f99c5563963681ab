"""A beacon's value comes from whoever has it, and is believed for its signature alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from arena.conducting.beacons import Beacons
from arena.exceptions import BeaconError
from arena.season.beacon import QUICKNET_CHAIN, Source, Ticket, quicknet_time, standin_value
from tests.unit.arena.season.test_verifying import ROUND, SIGNATURE

TICKET = Ticket(Source.DRAND, ROUND)
MADE = quicknet_time(ROUND)
CLOSES = MADE - timedelta(seconds=60)
GOOD = json.dumps({"round": ROUND, "randomness": "00", "signature": SIGNATURE}).encode()


@asynccontextmanager
async def server(body: bytes, status: str = "200 OK") -> AsyncIterator[tuple[str, list[str]]]:
    """A server on loopback that gives every request this answer; its address, and what it was
    asked for."""
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.split()[1].decode())
        length = f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        writer.write(f"HTTP/1.1 {status}\r\n{length}".encode() + body)
        await writer.drain()
        writer.close()

    running = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with running:
        yield f"http://127.0.0.1:{running.sockets[0].getsockname()[1]}", asked


async def test_a_round_is_asked_for_once_it_is_made() -> None:
    async with server(GOOD) as (address, asked):
        beacons = Beacons([address], "seed")
        assert await beacons.value(TICKET, CLOSES, MADE - timedelta(seconds=1)) is None
        assert asked == []
        value = await beacons.value(TICKET, CLOSES, MADE)
    assert value is not None
    assert (value.number, value.signature) == (ROUND, SIGNATURE)
    assert asked == [f"/{QUICKNET_CHAIN}/public/{ROUND}"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", "500 Oops"),
        (b"not json", "200 OK"),
        (b"[]", "200 OK"),
        (b'{"round": 1, "signature": ""}', "200 OK"),
        (json.dumps({"round": ROUND, "signature": "00" * 48}).encode(), "200 OK"),
        (json.dumps({"round": ROUND, "signature": None}).encode(), "200 OK"),
        (GOOD + b" " * 10_000, "200 OK"),
        (b"", "302 Found"),
    ],
)
async def test_a_server_that_lies_or_fails_is_passed_over(body: bytes, status: str) -> None:
    async with server(body, status) as (bad, _), server(GOOD) as (good, _):
        value = await Beacons([bad, good], "seed").value(TICKET, CLOSES, MADE)
        assert value is not None
        with pytest.raises(BeaconError, match=str(ROUND)):
            await Beacons([bad], "seed").value(TICKET, CLOSES, MADE)


async def test_nobody_to_ask_is_an_error_that_passes() -> None:
    for servers in ([], ["http://127.0.0.1:9"], ["no address"]):
        with pytest.raises(BeaconError):
            await Beacons(servers, "seed").value(TICKET, CLOSES, MADE)


async def test_the_standin_makes_its_own() -> None:
    ticket = Ticket(Source.STANDIN, ROUND)
    beacons = Beacons([], "seed")
    assert await beacons.value(ticket, CLOSES, MADE - timedelta(seconds=1)) is None
    assert await beacons.value(ticket, CLOSES, MADE) == standin_value(ROUND, "seed")


async def test_a_block_needs_a_chain() -> None:
    with pytest.raises(BeaconError):
        await Beacons([], "seed").value(Ticket(Source.CHAIN, 5, 1), CLOSES, MADE)
