"""An arena at the other end of a wire that a test can cut, and a clock that sleeping moves."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from arena.api.app import create_app
from arena.client.backoff import Backoff
from arena.client.session import ArenaSession
from arena.client.validator import ValidatorClient
from arena.runs.signing import KeypairSigner
from tests.unit.arena.api.world import World

Answer = Callable[[httpx.Request], httpx.Response]
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Time:
    """A clock that stands still but for those who sleep."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now
        self.slept: list[float] = []

    def __call__(self) -> datetime:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += timedelta(seconds=seconds)


class Wire(httpx.AsyncBaseTransport):
    """Answers by path (its last part), and keeps what was asked."""

    def __init__(self, **answers: Answer | httpx.Response | Exception) -> None:
        self.answers: dict[str, Any] = dict(answers)
        self.asked: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.asked.append(request)
        answer = self.answers[request.url.path.rsplit("/", 1)[-1]]
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, Exception):
            raise answer
        body = httpx.ByteStream(answer.content)
        return httpx.Response(answer.status_code, headers=answer.headers, stream=body)


def refused(status: int, code: str, **more: object) -> httpx.Response:
    return httpx.Response(status, json={"detail": "no", "error_code": code, **more})


def client_of(
    transport: httpx.AsyncBaseTransport,
    time: Time | None = None,
    *,
    signer: KeypairSigner | None = None,
    backoff: Backoff | None = None,
) -> ValidatorClient:
    time = time or Time()
    session = ArenaSession(
        "http://arena.test",
        signer or KeypairSigner("//Alice"),
        backoff=backoff,
        clock=time,
        sleep=time.sleep,
        rng=random.Random(7),
        transport=transport,
    )
    return ValidatorClient(session)


class Cut(httpx.AsyncBaseTransport):
    """The real API, but while `down` says so."""

    def __init__(self, inner: httpx.AsyncBaseTransport, down: Callable[[], bool]) -> None:
        self._inner = inner
        self._down = down
        self.tries = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.tries += 1
        if self._down():
            raise httpx.ConnectError("connection refused")
        return await self._inner.handle_async_request(request)


@asynccontextmanager
async def arena(
    world: World, who: KeypairSigner, time: Time, down: Callable[[], bool] = lambda: False
) -> AsyncIterator[ValidatorClient]:
    """A client of the real API in this process, whose clock is `time` as well."""
    app = create_app(world.services())
    async with app.router.lifespan_context(app):
        yield client_of(Cut(httpx.ASGITransport(app), down), time, signer=who)
