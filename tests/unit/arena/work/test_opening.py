"""An evaluation is opened once; what is read of the queue is what happened."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from arena.work.exceptions import EvaluationNotFoundError, OtherEvaluationError, WorkError
from arena.work.opening import evaluation_id
from arena.work.types import EvaluationKind, EvaluationState, RunState
from tests.unit.arena.work.desk import LEASE, A, B, Desk, failed

pytestmark = pytest.mark.database

QUALIFYING, RACE = EvaluationKind.QUALIFYING, EvaluationKind.RACE


async def test_opening_again_changes_nothing_at_any_time(desk: Desk) -> None:
    first = await desk.open(race="race-1")
    lease = await desk.claimed(A)
    await desk.succeed(lease)
    desk.later(60)
    assert await desk.open(race="race-1", version=first.version) == first
    view = await desk.queue.evaluation(first.evaluation_id)
    assert view.state is EvaluationState.CLOSED
    assert view.opened_at < desk.now
    assert len(await desk.queue.evaluations_of(first.version)) == 1


async def test_opened_at_once_it_is_opened_once(desk: Desk) -> None:
    version = uuid4()
    opened = await asyncio.gather(*(desk.open(version=version) for _ in range(6)))
    assert len(set(opened)) == 1
    history = await desk.queue.history(opened[0].evaluation_id)
    assert [change.state for change in history] == [EvaluationState.OPEN]


async def test_version_kind_and_race_make_it_another(desk: Desk) -> None:
    version = uuid4()
    opened = {
        (await desk.open(version=version)).evaluation_id,
        (await desk.open(version=version, race="race-1")).evaluation_id,
        (await desk.open(version=version, race="race-2")).evaluation_id,
        (await desk.open(version=uuid4())).evaluation_id,
    }
    assert len(opened) == 4
    assert len(await desk.queue.evaluations_of(version)) == 3


async def test_the_id_of_an_evaluation_never_changes() -> None:
    """Records hold it: a change of how it is made would lose them."""
    version = UUID("00000000-0000-4000-8000-000000000001")
    assert (
        str(evaluation_id(version, RACE, "race-2026-01-02"))
        == "6b8e6188-7dc6-585d-9a12-f01b35ab7438"
    )


@pytest.mark.parametrize(("problems", "needed"), [(3, 1), (2, 2)])
async def test_other_problems_or_numbers_are_refused(
    desk: Desk, problems: int, needed: int
) -> None:
    first = await desk.open(problems=2, needed=1)
    with pytest.raises(OtherEvaluationError):
        await desk.open(version=first.version, problems=problems, needed=needed)


@pytest.mark.parametrize(
    ("kind", "race", "problems", "needed"),
    [
        (RACE, None, ["p"], 1),
        (RACE, "a\0b", ["p"], 1),
        (QUALIFYING, None, [], 1),
        (QUALIFYING, None, ["p", "p"], 1),
        (QUALIFYING, None, ["p\0"], 1),
        (QUALIFYING, None, [""], 1),
        (QUALIFYING, None, ["p"], 0),
    ],
)
async def test_what_cannot_be_evaluated_is_refused(
    desk: Desk, kind: EvaluationKind, race: str | None, problems: Sequence[str], needed: int
) -> None:
    with pytest.raises(WorkError) as caught:
        await desk.queue.open_evaluation(uuid4(), kind, race, problems, needed, desk.now)
    assert caught.value.code == "work.bad_value"
    assert await desk.queue.open_evaluations() == []


async def test_pages_see_what_is_open_and_running_in_the_order_of_claims(desk: Desk) -> None:
    qualifying = await desk.open(needed=2)
    race = await desk.open(race="race-1", version=qualifying.version)
    first = await desk.claimed(A)
    desk.later(1)
    second = await desk.claimed(B)
    views = await desk.queue.open_evaluations()
    assert [view.evaluation for view in views] == [race, qualifying]
    assert [(view.held, view.wanted) for view in views] == [(1, 0), (1, 1)]
    assert [run.run_id for run in await desk.queue.running()] == [first.run_id, second.run_id]
    await desk.end(first, failed())
    runs = await desk.queue.runs_of(qualifying.version)
    assert [run.state for run in runs] == [RunState.FAILED, RunState.CLAIMED]
    assert await desk.queue.runs_of(uuid4()) == []


async def test_what_is_not_there_is_said_not_to_be(desk: Desk) -> None:
    for read in (desk.queue.evaluation, desk.queue.results):
        with pytest.raises(EvaluationNotFoundError):
            await read(uuid4())
    assert await desk.queue.history(uuid4()) == []


async def test_history_says_who_when_why_and_by_whose_fault(desk: Desk) -> None:
    evaluation = await desk.open()
    lease = await desk.claimed(A)
    await desk.queue.heartbeat(lease.run_id, A, desk.later(1))
    await desk.end(lease, failed())
    await desk.claimed(B)
    desk.later(LEASE.total_seconds())
    await desk.queue.expire(desk.now)
    await desk.succeed(await desk.claimed(B))
    told = [
        (c.state, c.validator, c.actor, c.why and (c.why.code, c.why.fault))
        for c in await desk.queue.history(evaluation.evaluation_id)
    ]
    assert told == [
        ("OPEN", None, None, None),
        ("CLAIMED", A, A, None),
        ("RUNNING", A, A, None),
        ("FAILED", A, A, ("model.unreachable", "validator")),
        ("CLAIMED", B, B, None),
        ("STALE", B, None, ("work.lease_expired", "validator")),
        ("CLAIMED", B, B, None),
        ("RUNNING", B, B, None),
        ("SUCCESS", B, B, None),
        ("CLOSED", None, None, None),
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE evaluations SET needed = 9 WHERE {this}",
        "UPDATE evaluations SET taken = 2 WHERE {this}",
        "UPDATE evaluations SET finished = 2 WHERE {this}",
        "UPDATE evaluations SET taken = -1 WHERE {this}",
        "UPDATE evaluation_runs SET validator = 'val-b' WHERE {this} AND attempt = 2",
        "UPDATE evaluation_runs SET state = 'SUCCESS' WHERE {this} AND attempt = 1",
        "UPDATE evaluation_runs SET state = 'DONE' WHERE {this} AND attempt = 2",
        "DELETE FROM evaluation_runs WHERE {this}",
        "DELETE FROM evaluations WHERE {this}",
        "TRUNCATE run_problems",
        "INSERT INTO evaluation_runs (run_id, evaluation_id, validator, attempt, state, lease,"
        " claimed_at, heard_at, expires_at, counted) SELECT gen_random_uuid(), evaluation_id,"
        " validator, 9, 'CLAIMED', lease, now(), now(), now(), 0 FROM evaluation_runs"
        " WHERE {this} AND attempt = 2",
    ],
)
async def test_the_database_itself_keeps_what_is_settled_also_from_the_owner(
    desk: Desk, work_url: str, statement: str
) -> None:
    evaluation = await desk.open()
    await desk.claimed(A)
    desk.later(LEASE.total_seconds())
    await desk.claimed(A)
    this = f"evaluation_id = '{evaluation.evaluation_id}'"
    owner = create_async_engine(work_url)
    async with owner.connect() as connection:
        with pytest.raises(DBAPIError, match=r"settled|check constraint|unique constraint"):
            await connection.execute(text(statement.format(this=this)))
    await owner.dispose()
