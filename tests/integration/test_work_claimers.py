"""Many claimers at once, in one process and in several, some of them killed: nothing is
claimed twice, nothing is lost, and every problem has exactly one record."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url

from arena.db.engine import Database
from arena.work.history import replay
from arena.work.types import Evaluation, EvaluationState, RunState
from tests.integration.work_claimer import work
from tests.unit.arena.work.desk import LEASE, Desk, application

pytestmark = pytest.mark.database

ROOT = Path(__file__).parents[2]


@pytest.fixture
def url(database: Database, database_url: str) -> str:
    """The migrated database's address for asyncpg."""
    address = make_url(database_url).set(drivername="postgresql+asyncpg")
    return address.render_as_string(hide_password=False)


@pytest.fixture
async def desk(url: str) -> AsyncIterator[Desk]:
    engine = application(url)
    yield Desk(engine, salt="claimers")
    await engine.dispose()


async def start(url: str, validator: str, mode: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.integration.work_claimer",
        url,
        validator,
        mode,
        cwd=ROOT,
        stdout=PIPE,
    )


async def read_line(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def kill(process: Process) -> None:
    process.send_signal(signal.SIGKILL)
    assert await process.wait() == -signal.SIGKILL


async def check_all_done(desk: Desk, evaluations: Sequence[Evaluation]) -> None:
    """Every evaluation is closed by as many validators as it needs, each with every problem."""
    for evaluation in evaluations:
        which = evaluation.evaluation_id
        results = await desk.queue.results(which)
        assert results.evaluation.state is EvaluationState.CLOSED
        assert len(results.finished) == len(results.validators) == evaluation.needed
        for result in results.finished:
            assert set(result.records) == set(evaluation.problems)
        told = replay(await desk.queue.history(which))
        assert told.state is EvaluationState.CLOSED
        assert len(set(told.finishers.values())) == len(told.finishers) == evaluation.needed
        stored = {run.run_id: run.state for run in await desk.queue.runs_of(evaluation.version)}
        assert told.runs == stored
    assert await desk.queue.running() == []


async def test_claimers_of_several_engines_share_the_work_without_a_double_claim(
    desk: Desk, url: str
) -> None:
    evaluations = [
        await desk.open(needed=1 + i % 3, race="race-1" if i % 2 else None) for i in range(18)
    ]
    engines = [application(url) for _ in range(3)]
    claimers = [Desk(engine, salt="claimers") for engine in engines for _ in range(4)]
    await asyncio.gather(*(work(claimer, f"val-{i}") for i, claimer in enumerate(claimers)))
    await check_all_done(desk, evaluations)
    for engine in engines:
        await engine.dispose()


async def test_of_claimers_at_the_last_seat_one_gets_it(desk: Desk, url: str) -> None:
    """All of them see the seat free before the first one has it."""
    engines = [application(url) for _ in range(2)]
    desks = [Desk(engine) for engine in engines for _ in range(6)]
    for _ in range(8):
        evaluation = await desk.open()
        leases = await asyncio.gather(*(d.claim(f"val-{i}") for i, d in enumerate(desks)))
        given = [lease for lease in leases if lease is not None]
        assert len(given) == 1
        await desk.queue.cancel(evaluation.version, "next", desk.now)
    for engine in engines:
        await engine.dispose()


async def test_one_validators_claims_at_once_come_one_by_one(desk: Desk) -> None:
    for _ in range(12):
        await desk.open()
    first = await desk.claimed("val")
    await desk.queue.heartbeat(first.run_id, "val", desk.now)
    # Connected before, so that nobody is late.
    await asyncio.gather(*(desk.queue.running() for _ in range(8)))
    given = await asyncio.gather(*(desk.claim("val", capacity=9) for _ in range(8)))
    # The second one is new, and given to all that follow: nothing was heard of it yet.
    assert len({lease.run_id for lease in given if lease}) == 1
    assert len(await desk.queue.running()) == 2


async def test_processes_share_the_work(desk: Desk, url: str) -> None:
    evaluations = [await desk.open(needed=2) for _ in range(8)]
    processes = [await start(url, f"val-{i}", "work") for i in range(3)]
    for process in processes:
        _, _ = await process.communicate()
        assert process.returncode == 0
    await check_all_done(desk, evaluations)


async def test_a_claim_that_was_killed_before_its_end_never_happened(desk: Desk, url: str) -> None:
    evaluation = await desk.open()
    process = await start(url, "val-a", "claim")
    assert await read_line(process) == "waiting"
    assert await desk.claim("val-b") is None  # nobody waits for it
    await kill(process)
    # The same validator's claim waits until the database has noticed.
    lease = await desk.claimed("val-a")
    assert (lease.evaluation, lease.resumed) == (evaluation, False)
    states = [change.state for change in await desk.queue.history(evaluation.evaluation_id)]
    assert states == ["OPEN", RunState.CLAIMED]


async def test_a_completion_that_was_killed_before_its_end_is_done_again(
    desk: Desk, url: str
) -> None:
    evaluation = await desk.open()
    process = await start(url, "val-a", "complete")
    assert await read_line(process) == "waiting"
    await kill(process)
    await _released(desk, evaluation)
    again = await desk.claim("val-a", working=())
    assert again is not None
    assert again.resumed
    assert not await desk.count(again, "p0")
    done = await desk.succeed(again)
    assert done.evaluation.state is EvaluationState.CLOSED
    await check_all_done(desk, [evaluation])


async def _released(desk: Desk, evaluation: Evaluation) -> None:
    """Wait until nobody has the evaluation locked."""
    query = text("SELECT 1 FROM evaluations WHERE evaluation_id = :id FOR NO KEY UPDATE")
    async with desk.engine.begin() as connection:
        await connection.execute(query, {"id": evaluation.evaluation_id})


async def test_validators_that_are_killed_anywhere_lose_nothing(desk: Desk, url: str) -> None:
    """Each is killed after a few steps, again and again, and started anew."""
    evaluations = [await desk.open(needed=2, problems=3) for _ in range(3)]

    async def stubborn(validator: str, deaths: Sequence[int]) -> None:
        for steps in deaths:
            process = await start(url, validator, "work")
            for _ in range(steps):
                if not await read_line(process):
                    break
            if process.returncode is None:
                process.send_signal(signal.SIGKILL)
            await process.wait()
        process = await start(url, validator, "work")
        await process.communicate()
        assert process.returncode == 0

    await asyncio.gather(stubborn("val-a", [1, 3]), stubborn("val-b", [4, 2]))
    await check_all_done(desk, evaluations)


async def test_a_validator_that_never_comes_back_blocks_nobody(desk: Desk, url: str) -> None:
    evaluation = await desk.open(problems=3)
    process = await start(url, "val-a", "work")
    for _ in range(3):
        await read_line(process)
    await kill(process)
    # What it was at when it died may be in the database or not; the run may have ended.
    view = await desk.queue.evaluation(evaluation.evaluation_id)
    desk.later(LEASE.total_seconds())
    await desk.queue.expire(desk.now)
    if view.state is EvaluationState.OPEN:
        await desk.succeed(await desk.claimed("val-b"))
    results = await desk.queue.results(evaluation.evaluation_id)
    assert results.evaluation.state is EvaluationState.CLOSED
    assert len(results.finished) == 1
