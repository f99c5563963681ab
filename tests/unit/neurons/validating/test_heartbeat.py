"""Runs in hand are spoken for, whatever the work does; only the arena's word loses them."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import httpx
import pytest

from arena.client.exceptions import RefusedError
from arena.client.validator import ValidatorClient
from neurons.validating.heartbeat import Heart, HeartThread
from tests.unit.neurons.validating.wire import NOW, Wire, client_of, refused

ALIVE = httpx.Response(200, json={"lease_expires_at": NOW.isoformat()})


async def test_each_run_in_hand_is_spoken_for_until_it_is_released() -> None:
    beaten: list[UUID] = []
    heart = Heart(beaten=lambda run, until: beaten.append(run))
    one, two = uuid4(), uuid4()
    for run in (one, two):
        heart.hold(run, lambda error: None)
    client = client_of(Wire(heartbeat=ALIVE))
    await heart.beat(client)
    heart.release(one)
    heart.release(one)
    await heart.beat(client)
    assert beaten == [one, two, two]


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (409, "LEASE_EXPIRED"),
        (409, "NOT_RUN_OWNER"),
        (404, "EVAL_RUN_NOT_FOUND"),
        (409, "RUN_ALREADY_COMPLETE"),
    ],
)
async def test_the_arenas_word_loses_a_run_once(status: int, code: str) -> None:
    lost: list[RefusedError] = []
    heart = Heart()
    heart.hold(uuid4(), lost.append)
    client = client_of(Wire(heartbeat=refused(status, code)))
    await heart.beat(client)
    await heart.beat(client)
    assert [error.error_code for error in lost] == [code]
    assert heart.held == []


@pytest.mark.parametrize(
    "answer",
    [
        httpx.ConnectError("x"),
        httpx.ReadTimeout("x"),
        httpx.Response(500),
        httpx.Response(200, json={}),
        refused(429, "RATE_LIMIT_EXCEEDED"),
        refused(403, "NOT_REGISTERED_AS_VALIDATOR"),
        refused(401, "TIMESTAMP_SKEW"),
    ],
)
async def test_silence_and_refusals_of_the_caller_lose_nothing(
    answer: httpx.Response | Exception,
) -> None:
    lost: list[RefusedError] = []
    heart = Heart()
    heart.hold(run := uuid4(), lost.append)
    await heart.beat(client_of(Wire(heartbeat=answer)))
    assert (lost, heart.held) == ([], [run])


def test_the_heart_beats_while_the_main_thread_is_blocked() -> None:
    beats = threading.Semaphore(0)
    heart = Heart(beaten=lambda run, until: beats.release())
    heart.hold(uuid4(), lambda error: None)

    @asynccontextmanager
    async def opened() -> AsyncIterator[ValidatorClient]:
        yield client_of(Wire(heartbeat=ALIVE))

    with HeartThread(heart, opened, 0.001) as thread:
        # This thread does nothing but wait: no event loop of its own comes round.
        assert all(beats.acquire(timeout=30) for _ in range(3))
        assert thread.alive
    assert not thread.alive


def test_a_broken_beat_stops_nothing() -> None:
    beats = threading.Semaphore(0)
    calls = 0

    def breaks(run: UUID, until: object) -> None:
        nonlocal calls
        calls += 1
        beats.release()
        if calls == 1:
            raise RuntimeError("a bug")

    heart = Heart(beaten=breaks)
    heart.hold(uuid4(), lambda error: None)

    @asynccontextmanager
    async def opened() -> AsyncIterator[ValidatorClient]:
        yield client_of(Wire(heartbeat=ALIVE))

    with HeartThread(heart, opened, 0.001):
        assert all(beats.acquire(timeout=30) for _ in range(3))
