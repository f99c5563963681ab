"""What a hostile client can do to its socket: nothing that another one feels."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import pytest

from sandbox.gateway import GatewayLimits
from sandbox.gateway.http import HttpBounds
from sandbox.gateway.session import MAX_UNRECORDED, Session
from sandbox.trace import HttpEvent
from tests.unit.sandbox.door import Door, door

HEALTH = b"GET /health HTTP/1.1\r\nhost: proxy\r\n\r\n"


@dataclass(slots=True)
class Wire:
    """A bare connection to a session's socket."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self) -> str:
        """The status line and headers of the next answer; its body is read and left."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            int(line.split(":")[1])
            for line in head.lower().splitlines()
            if line.startswith("content-length")
        )
        await self.reader.readexactly(length)
        return head

    async def rest(self) -> bytes:
        """Everything until the server closes."""
        return await self.reader.read()


@asynccontextmanager
async def wire(session: Session) -> AsyncIterator[Wire]:
    reader, writer = await asyncio.open_unix_connection(str(session.socket))
    try:
        async with asyncio.timeout(20):  # a test that would hang fails instead
            yield Wire(reader, writer)
    finally:
        writer.transport.abort()


async def still_well(d: Door) -> bool:
    return (await d.http.get("/health")).status_code == 200


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x00\x01\x02\xff\r\n\r\n", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\n\r\n", 400),  # no Host
        (b"GET /\xc3\xa9 HTTP/1.1\r\nhost: x\r\n\r\n", 400),
        (b"GET /a\x00b HTTP/1.1\r\nhost: x\r\n\r\n", 400),
        (b"POST /tools/terminate HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n", 400),
        (b"POST /tools/terminate HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n"
         b"content-length: 2\r\n\r\n", 400),
        (b"POST /tools/terminate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n", 501),
        (b"POST /tools/terminate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
         400),
        (b"GET /" + b"a" * 70_000, 431),
        (b"GET /health HTTP/1.1\r\nhost: x\r\n" + b"x-y: " + b"z" * 70_000, 431),
    ],
)  # fmt: skip
async def test_what_is_not_http_is_answered_recorded_and_cut(data: bytes, status: int) -> None:
    async with door() as d:
        async with wire(d.session) as w:
            await w.send(data)
            answer = await w.rest()
        assert await still_well(d)
    codes = {400, 431, 505, 501}
    assert int(answer.split(b" ")[1]) in codes
    event = d.session.trace().events[0]
    assert isinstance(event, HttpEvent)
    assert event.status == int(answer.split(b" ")[1])
    assert event.status in (status, 400)


async def test_a_client_that_trickles_its_headers_is_cut() -> None:
    async with door(bounds=HttpBounds(header_s=0.02)) as d:
        async with wire(d.session) as w:
            await w.send(b"GET /health HT")
            assert (await w.rest()).startswith(b"HTTP/1.1 408")
        assert await still_well(d)


async def test_a_client_that_trickles_its_body_is_cut() -> None:
    async with door(bounds=HttpBounds(body_s=0.02, drain_s=0.02)) as d:
        async with wire(d.session) as w:
            await w.send(b"POST /tools/terminate HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{")
            assert (await w.rest()).startswith(b"HTTP/1.1 408")
        assert await still_well(d)
    assert d.session.trace().events[0].status == 408


async def test_a_client_that_leaves_in_the_middle_harms_nobody() -> None:
    async with door() as d:
        for data in (b"", b"GET /hea", b"POST /tools/terminate HTTP/1.1\r\nhost: x\r\n"
                     b"content-length: 100\r\n\r\n{", HEALTH[:-2]):  # fmt: skip
            async with wire(d.session) as w:
                await w.send(data)
        assert await still_well(d)
    # A request whose headers came is in the trace, also when its body never did.
    events = d.session.trace().events
    assert [(e.status, e.error and e.error.code) for e in events] == [
        (499, "gateway.never_sent"),
        (200, None),
    ]


async def test_a_body_declared_too_large_is_refused_unread() -> None:
    async with door(limits=GatewayLimits(body_bytes=1000)) as d, wire(d.session) as w:
        await w.send(
            b"POST /tools/terminate HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n"
        )
        assert (await w.head()).startswith("HTTP/1.1 429")
    event = d.session.trace().events[0]
    assert isinstance(event, HttpEvent)
    assert event.error is not None
    assert event.error.code == "gateway.limit.body_bytes"
    assert event.body_bytes == 99999999999
    assert d.session.trace().limits_hit == ("body_bytes",)


async def test_a_chunked_body_is_read_no_further_than_allowed() -> None:
    limits = GatewayLimits(body_bytes=1000)
    async with door(limits=limits, bounds=HttpBounds(drain_s=0.02)) as d, wire(d.session) as w:
        await w.send(
            b"POST /tools/terminate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
            + (b"1f4\r\n" + b"x" * 500 + b"\r\n") * 3
        )
        assert (await w.head()).startswith("HTTP/1.1 429")
    assert d.session.trace().limits_hit == ("body_bytes",)


async def test_a_client_that_sends_all_before_it_reads_still_sees_why() -> None:
    head = b"POST /tools/find_product HTTP/1.1\r\nhost: x\r\ncontent-length: 2000000\r\n\r\n"
    async with door(limits=GatewayLimits(body_bytes=1000)) as d:
        async with wire(d.session) as w:
            await w.send(head)
            assert (await w.head()).startswith("HTTP/1.1 429")
            # Without the server taking these off the socket, this meets a broken pipe.
            await w.send(b"x" * 1_000_000)
            await w.send(b"x" * 1_000_000)
        assert await still_well(d)


async def test_bodies_are_limited_in_all() -> None:
    async with door(limits=GatewayLimits(total_body_bytes=5000)) as d:
        statuses = [
            (await d.http.post("/tools/terminate", content=b" " * 2000)).status_code
            for _ in range(3)
        ]
    assert statuses == [400, 400, 429]
    assert d.session.trace().limits_hit == ("total_body_bytes",)


async def test_a_client_that_waits_for_100_gets_it_or_the_refusal() -> None:
    head = b"POST /tools/terminate HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: "
    async with door(limits=GatewayLimits(body_bytes=1000)) as d:
        async with wire(d.session) as w:
            await w.send(head + b"2\r\n\r\n")
            assert (await w.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
            await w.send(b"{}")
            assert (await w.head()).startswith("HTTP/1.1 200")
        async with wire(d.session) as w:
            await w.send(head + b"2000\r\n\r\n")
            assert (await w.rest()).startswith(b"HTTP/1.1 429")


async def test_requests_sent_at_once_are_answered_in_order() -> None:
    async with door() as d, wire(d.session) as w:
        await w.send(HEALTH * 3 + b"GET /no HTTP/1.1\r\nhost: x\r\n\r\n" + HEALTH)
        lines = [(await w.head()).split("\r\n")[0] for _ in range(5)]
    assert [int(line.split()[1]) for line in lines] == [200, 200, 200, 403, 200]


async def test_a_head_request_is_answered_without_a_body() -> None:
    async with door() as d, wire(d.session) as w:
        await w.send(b"HEAD /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        answer = await w.rest()
    assert answer.startswith(b"HTTP/1.1 405")
    assert answer.endswith(b"\r\n\r\n")


async def test_idle_connections_make_room_for_new_ones() -> None:
    async with door(bounds=HttpBounds(connections=2)) as d, AsyncExitStack() as stack:
        wires = []
        for _ in range(3):
            wires.append(await stack.enter_async_context(wire(d.session)))
            await wires[-1].send(HEALTH)
            assert (await wires[-1].head()).startswith("HTTP/1.1 200")
        assert await wires[0].rest() == b""


async def test_a_flood_beyond_the_limit_is_refused_and_the_door_is_shut() -> None:
    limits = GatewayLimits(requests=3, requests_per_second=1e9)
    async with door(limits=limits) as d:
        statuses = [(await d.http.get("/health")).status_code for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        for _ in range(MAX_UNRECORDED):
            try:
                async with wire(d.session) as w:
                    await w.send(HEALTH)
                    await w.rest()
            except ConnectionError:
                break
        else:
            pytest.fail("the door is still open")
    trace = d.session.trace()
    assert len(trace.events) == 3
    assert trace.limits_hit == ("requests",)
    assert trace.unrecorded >= MAX_UNRECORDED


async def test_a_flood_of_what_is_not_http_is_bounded_as_well() -> None:
    async with door(limits=GatewayLimits(requests=3, requests_per_second=1e9)) as d:
        for _ in range(6):
            async with wire(d.session) as w:
                await w.send(b"\x00\r\n\r\n")
                await w.rest()
    assert len(d.session.trace().events) == 3
    assert d.session.trace().unrecorded == 3


async def test_a_burst_beyond_the_rate_is_told_when_to_come_again() -> None:
    limits = GatewayLimits(requests_per_second=0.001, burst=2)
    async with door(limits=limits) as d:
        answers = [await d.http.get("/health") for _ in range(3)]
    assert [a.status_code for a in answers] == [200, 200, 429]
    assert int(answers[2].headers["retry-after"]) > 1
    assert d.session.trace().limits_hit == ("requests_per_second",)


async def test_answers_are_limited_in_all() -> None:
    async with door(limits=GatewayLimits(answer_bytes=100)) as d:
        statuses = [
            (await d.http.post("/tools/find_product", json={"q": "mug"})).status_code
            for _ in range(2)
        ]
    assert statuses == [200, 429]
    assert d.session.trace().limits_hit == ("answer_bytes",)
