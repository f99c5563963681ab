"""What a race counts is what the sealed records say, whatever stands beside them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
import zstandard
from sqlalchemy import text

from arena.conducting import outcomes
from arena.db.engine import Database
from arena.exceptions import SealError
from arena.records.store import RecordStore
from arena.runs.record import EncodedRecord, RunRecord
from arena.season.commands import ProblemOutcome
from arena.work.types import EvaluationKind, Lease
from judge.verdict import Gate
from scoring.coefficient import coefficient
from tests.unit.arena import builders
from tests.unit.arena.conducting.world import World

pytestmark = pytest.mark.database

PASSED = coefficient(Gate.PASSED.quality)


async def _lease(world: World, *problems: str) -> Lease:
    opened = await world.queue.open_evaluation(
        uuid4(), EvaluationKind.QUALIFYING, None, problems, 1, world.now
    )
    entry = builders.race_entry(
        str(opened.evaluation_id),
        problems=tuple(replace(builders.problem(), problem_id=name) for name in problems),
    )
    await RecordStore(world.engine).register(entry)
    lease = await world.alice.claim()
    assert lease is not None
    return lease


def _record(lease: Lease, problem_id: str, **how: Any) -> RunRecord:
    made = builders.record(
        builders.problem(),
        race_id=str(lease.evaluation.evaluation_id),
        run_id=f"{lease.run_id}-{problem_id}",
        **how,
    )
    return replace(made, problem=replace(made.problem, problem_id=problem_id))


async def _count(world: World, lease: Lease, *records: RunRecord) -> None:
    encoded = [record.encode() for record in records]
    await RecordStore(world.engine).put([world.alice.seal(one) for one in encoded])
    for record, one in zip(records, encoded, strict=True):
        await world.queue.count_record(
            lease.run_id, world.alice.hotkey, record.problem.problem_id, one.hash, world.now
        )


async def _sheets(world: World, lease: Lease) -> int:
    which = lease.evaluation.evaluation_id
    return len(await outcomes.complete_sheets(world.engine, [which]))


async def _told(world: World, lease: Lease) -> dict[str, ProblemOutcome]:
    which = lease.evaluation.evaluation_id
    return await outcomes.outcomes(world.engine, which, world.alice.hotkey)


@pytest.mark.parametrize("ratio", ["x", [1], {}, True, -0.1, 5.0, 1e300])
async def test_a_ratio_that_is_none_counts_nothing_and_stops_nobody(
    world: World, ratio: object
) -> None:
    lease = await _lease(world, "p1")
    made = _record(lease, "p1", gate=Gate.PASSED)
    axis: Any = {"axis": "B", "reasons": [], "agentic_ratio": ratio}
    await _count(world, lease, replace(made, axis=axis))
    assert (await _told(world, lease))["p1"] == ProblemOutcome(True, PASSED, 0.0)


async def test_success_coefficient_and_ratio_are_the_records(world: World) -> None:
    lease = await _lease(world, "p1", "p2")
    solved = _record(lease, "p1", gate=Gate.PASSED)
    solved = replace(solved, axis={"axis": "B", "reasons": [], "agentic_ratio": 0.25})
    failed = _record(lease, "p2", recommended=None, gate=Gate.PASSED)
    await _count(world, lease, solved)
    assert await _sheets(world, lease) == 0
    await _count(world, lease, failed)
    assert await _sheets(world, lease) == 1
    told = await _told(world, lease)
    assert told == {
        "p1": ProblemOutcome(True, PASSED, 0.25),
        "p2": ProblemOutcome(False, PASSED, 0.0),
    }
    assert outcomes.mean_score(told, ("p1", "p2")) == pytest.approx(PASSED / 2)
    assert outcomes.mean_score(told, ("p1", "p2", "p3")) is None


async def test_a_success_waits_for_its_verdict_and_a_failure_does_not(world: World) -> None:
    lease = await _lease(world, "p1", "p2")
    solved, failed = _record(lease, "p1"), _record(lease, "p2", recommended=None)
    await _count(world, lease, solved, failed)
    assert await _sheets(world, lease) == 0
    assert list(await _told(world, lease)) == ["p2"]
    later = builders.verdict_record(solved, Gate.PASSED).encode()
    await RecordStore(world.engine).put([world.alice.seal(later)])
    assert await _sheets(world, lease) == 1
    assert (await _told(world, lease))["p1"] == ProblemOutcome(True, PASSED, 0.0)


async def test_bytes_that_are_not_those_that_were_counted_are_refused(
    database: Database, world: World
) -> None:
    lease = await _lease(world, "p1")
    record = _record(lease, "p1", recommended=None, gate=Gate.PASSED)
    await _count(world, lease, record)
    better: EncodedRecord = _record(lease, "p1", gate=Gate.PASSED).encode()
    assert json.loads(better.content)["outcome"]["success"]
    async with database.owner.begin() as connection:
        await connection.execute(text("ALTER TABLE records DISABLE TRIGGER ALL"))
        await connection.execute(
            text("UPDATE records SET content = :content"),
            {"content": zstandard.compress(better.content)},
        )
    with pytest.raises(SealError):
        await _told(world, lease)
