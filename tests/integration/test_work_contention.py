"""Everything at once: no two calls ever wait for each other in a circle, and the state stays
what the history tells."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from arena.db.engine import Database
from arena.exceptions import DatabaseUnreachableError
from arena.work.exceptions import WorkError
from arena.work.history import replay
from arena.work.queue import WorkQueue
from arena.work.types import EvaluationKind, Lease
from arena.work.views import ProblemState
from tests.unit.arena.work.desk import LEASE, NOON, SUCCESS, Desk, application, failed

pytestmark = pytest.mark.database


@pytest.fixture
async def desks(database: Database, database_url: str) -> AsyncIterator[list[Desk]]:
    """One of each of three processes."""
    url = make_url(database_url).set(drivername="postgresql+asyncpg")
    engines = [application(url.render_as_string(hide_password=False)) for _ in range(3)]
    yield [Desk(engine, salt="contention") for engine in engines]
    for engine in engines:
        await engine.dispose()


async def one_of_everything(desk: Desk, chance: random.Random, runs: list[Lease]) -> None:
    """One call, of any kind, with the clock anywhere in an hour."""
    desk.now = NOON
    desk.later(chance.choice([0, 0, 0, 30, 60, 3_600]))
    lease = chance.choice(runs) if runs else None
    kind = chance.randrange(9)
    if kind < 2 or lease is None:
        given = await desk.claim(f"val-{chance.randrange(4)}", capacity=3)
        if given is not None:
            runs.append(given)
    elif kind == 2:
        await desk.queue.expire(desk.now)
    elif kind == 3:
        await desk.queue.heartbeat(lease.run_id, lease.validator, desk.now)
    elif kind == 4:
        said = dict.fromkeys(lease.evaluation.problems, ProblemState.RUNNING)
        await desk.queue.progress(lease.run_id, lease.validator, said, desk.now)
    elif kind == 5:
        await desk.count(lease, chance.choice(lease.evaluation.problems))
    elif kind == 6:
        await desk.end(lease, chance.choice([SUCCESS, failed()]))
    elif kind == 7:
        await desk.count_all(lease)
    elif chance.random() < 0.1:
        await desk.queue.cancel(lease.evaluation.version, "a reason", desk.now)


async def test_calls_of_all_kinds_at_once_neither_deadlock_nor_break_the_history(
    desks: list[Desk],
) -> None:
    first = desks[0]
    opened = [await first.open(needed=2, race="r" if i % 2 else None) for i in range(8)]
    for evaluation in opened[:4]:  # a second one of the same version, to be cancelled with it
        await first.queue.open_evaluation(
            evaluation.version, EvaluationKind.RACE, "r-2", ["p0"], 1, first.now
        )
    runs: list[Lease] = []

    async def caller(desk: Desk, seed: int) -> None:
        chance = random.Random(seed)
        own = Desk(desk.engine, salt="contention")
        for _ in range(40):
            # Refusals are expected; an error of the database is not.
            with suppress(WorkError):
                await one_of_everything(own, chance, runs)

    await asyncio.gather(*(caller(desks[i % 3], i) for i in range(12)))
    assert runs
    for version in {evaluation.version for evaluation in opened}:
        for view in await first.queue.evaluations_of(version):
            told = replay(await first.queue.history(view.evaluation.evaluation_id))
            assert told.state is view.state
            assert len(told.holders) == view.held
            assert len(set(told.finishers.values())) == view.finished
            assert len({*told.holders.values(), *told.finishers.values()}) == view.taken
            assert view.taken <= view.evaluation.needed


async def test_a_database_that_is_gone_is_said_to_be() -> None:
    queue = WorkQueue(create_async_engine("postgresql+asyncpg://a:hunter2@127.0.0.1:1/arena"))
    with pytest.raises(DatabaseUnreachableError) as caught:
        await queue.claim("val", capacity=1, now=NOON, lease=LEASE)
    assert "hunter2" not in str(caught.value)
