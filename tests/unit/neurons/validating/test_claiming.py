"""Looking for work: when, how often, and what is said of it."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any, cast

import httpx
from structlog.testing import capture_logs

from arena.runs.attempts import RetryPolicy
from neurons.validating.claiming import Claimed, Claiming
from neurons.validating.evaluation import Workshop
from neurons.validating.gates import Gates
from neurons.validating.heartbeat import Heart
from neurons.validating.metrics import Metrics
from neurons.validating.spending import Spending
from tests.unit.neurons.validating.wire import Time, Wire, client_of, refused


class World:
    """A validator that never gets work: what a run needs is not opened."""

    def __init__(self, directory: Path, wire: Wire) -> None:
        self.time = Time()
        self.wire = wire
        self.reason: str | None = None
        self.most = 10
        shop = Workshop(
            client=client_of(wire, self.time),
            opened=cast("Any", None),
            ledger=cast("Any", None),
            heart=Heart(),
            spending=Spending(directory, None, self.time),
            metrics=Metrics(),
            root=directory,
            policy=RetryPolicy(),
            workers=1,
        )
        self.claiming = Claiming(
            shop,
            Gates({"a": lambda: self.reason}, lambda name, shut: None),
            evaluations=1,
            poll_s=30.0,
            sleep=self._sleep,
            rng=random.Random(7),
        )

    async def _sleep(self, seconds: float) -> None:
        await self.time.sleep(seconds)
        if len(self.time.slept) >= self.most:
            self.claiming.drain()


async def test_without_work_it_asks_every_30_seconds_or_so(tmp_path: Path) -> None:
    world = World(tmp_path, Wire(claim=httpx.Response(204)))
    await world.claiming.run()
    assert len(world.wire.asked) == 10
    assert all(24 <= pause <= 36 for pause in world.time.slept)
    assert len(set(world.time.slept)) > 5


async def test_a_shut_gate_asks_nobody_and_opens_again(tmp_path: Path) -> None:
    world = World(tmp_path, Wire(claim=httpx.Response(204)))
    world.reason = "the disk is full"
    assert await world.claiming.claim() is Claimed.SHUT
    assert world.wire.asked == []
    assert world.claiming.shut == {"a": "the disk is full"}
    world.reason = None
    assert await world.claiming.claim() is Claimed.NOTHING
    assert len(world.wire.asked) == 1


async def test_an_arena_that_is_away_is_asked_less_and_less_and_told_of_once(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, Wire(claim=httpx.ConnectError("x")))
    world.most = 8
    with capture_logs() as logs:
        await world.claiming.run()
        world.wire.answers["claim"] = httpx.Response(204)
        await world.claiming.claim()
    middle = [5, 10, 20, 40, 80, 160, 300, 300]
    assert all(
        0.8 * m <= pause <= 1.2 * m for m, pause in zip(middle, world.time.slept, strict=True)
    )
    assert [line["event"] for line in logs] == ["the arena is away", "the arena answers again"]


async def test_a_refusal_is_told_with_its_remedy_and_waited_out(tmp_path: Path) -> None:
    world = World(tmp_path, Wire(claim=refused(403, "NOT_REGISTERED_AS_VALIDATOR")))
    with capture_logs() as logs:
        await world.claiming.run()
    assert [line["event"] for line in logs] == ["claim refused"]
    assert logs[0]["code"] == "api.not_registered_as_validator"
    assert "stake" in logs[0]["error"]


async def test_being_at_capacity_is_no_failure(tmp_path: Path) -> None:
    world = World(tmp_path, Wire(claim=refused(409, "AT_CAPACITY")))
    assert await world.claiming.claim() is Claimed.NOTHING


async def test_drained_it_does_not_wait_for_the_pause(tmp_path: Path) -> None:
    world = World(tmp_path, Wire(claim=httpx.Response(204)))
    pausing = asyncio.Event()

    async def for_ever(seconds: float) -> None:
        pausing.set()
        await asyncio.Event().wait()

    world.claiming._sleep = for_ever
    running = asyncio.create_task(world.claiming.run())
    await pausing.wait()
    world.claiming.drain()
    await running
