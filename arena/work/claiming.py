"""A validator claims work: its own unfinished first, then the oldest that is wanted."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    ColumnElement,
    Row,
    ScalarSelect,
    and_,
    func,
    insert,
    literal,
    select,
    true,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from arena.db import schema
from arena.work import history, rows
from arena.work.exceptions import AtCapacityError
from arena.work.holding import problems_of, take_back
from arena.work.policy import WorkPolicy, in_hand
from arena.work.types import Evaluation, EvaluationKind, EvaluationState, Lease, RunState
from arena.work.views import RunView

_runs = schema.evaluation_runs
_evaluations = schema.evaluations
_LOCKS = 0x57_4F_52_4B
"""Class of the advisory locks by which a validator's claims take turns; "WORK"."""


async def claim(
    connection: AsyncConnection,
    validator: str,
    *,
    capacity: int,
    now: datetime,
    lease: timedelta,
    policy: WorkPolicy,
    working: Collection[UUID] | None,
) -> Lease | None:
    """As `WorkQueue.claim`, in a transaction of its own."""
    # Counting what it holds and adding to it is one step: its claims come one by one.
    key = func.pg_advisory_xact_lock(_LOCKS, func.hashtext(validator))
    await connection.execute(select(key))
    await take_back(connection, now, policy, validator)
    held = await _held(connection, validator, now)
    for run in held:
        if not _at_work(run, working, now):
            again = await _resume(connection, run, now, lease)
            if again is not None:
                return again
    if len(held) >= capacity:
        raise AtCapacityError(f"{validator} holds {len(held)} runs of {capacity}")
    row = await _take_seat(connection, validator, now, policy)
    return None if row is None else await _begin(connection, row, validator, now, lease)


async def _held(connection: AsyncConnection, validator: str, now: datetime) -> list[RunView]:
    """The runs that it holds, oldest first."""
    query = (
        select(_runs)
        .where(rows.HELD, _runs.c.validator == validator, _runs.c.expires_at > now)
        .order_by(_runs.c.claimed_at, _runs.c.run_id)
    )
    return [rows.run_view(row) for row in await connection.execute(query)]


def _at_work(run: RunView, working: Collection[UUID] | None, now: datetime) -> bool:
    if working is not None:
        return run.run_id in working
    return in_hand(run.state is RunState.RUNNING, run.heard_at, run.lease, now)


async def _resume(
    connection: AsyncConnection, run: RunView, now: datetime, lease: timedelta
) -> Lease | None:
    """The same run once more; None when it was taken back this moment."""
    statement = (
        update(_runs)
        .where(_runs.c.run_id == run.run_id, rows.HELD)
        .values(lease=lease, heard_at=now, expires_at=now + lease)
        .returning(_runs.c.run_id)
    )
    if await connection.scalar(statement) is None:
        return None
    evaluation = rows.evaluation(await problems_of(connection, run.evaluation_id))
    return Lease(run.run_id, evaluation, run.validator, rows.utc(now + lease), resumed=True)


async def _take_seat(
    connection: AsyncConnection, validator: str, now: datetime, policy: WorkPolicy
) -> Row[Any] | None:
    """Take a seat in the evaluation that is this validator's next; None without one.

    The row that is locked is the row that is counted in, so of two who saw the same free
    seat the second one sees that it is gone (READ COMMITTED checks the condition again),
    and who finds a row locked looks further instead of waiting.
    """
    statement = (
        update(_evaluations)
        .where(_evaluations.c.evaluation_id == _next(validator, now, policy))
        .values(taken=_evaluations.c.taken + 1)
        .returning(_evaluations)
    )
    taken: Row[Any] | None = (await connection.execute(statement)).one_or_none()
    return taken


def _next(validator: str, now: datetime, policy: WorkPolicy) -> ScalarSelect[Any]:
    wanted = _evaluations.alias("wanted")
    stale = _runs.c.state == RunState.STALE
    # A clock that went back since a failure cannot tell how long ago it was: no wait then.
    waits = and_(_runs.c.ended_at <= now, _runs.c.retry_at > now)
    own = (
        select(
            _any(rows.SEATED).label("seated"),
            _any(waits).label("waits"),
            func.count().filter(rows.BARREN).label("barren"),
            func.coalesce(
                func.max(_runs.c.attempt).filter(stale) == func.max(_runs.c.attempt), False
            ).label("stale"),
        )
        .where(_runs.c.evaluation_id == wanted.c.evaluation_id, _runs.c.validator == validator)
        .lateral("own")
    )
    return (
        select(wanted.c.evaluation_id)
        .join(own, true())
        .where(
            wanted.c.state == EvaluationState.OPEN,
            wanted.c.taken < wanted.c.needed,
            ~own.c.seated,
            ~own.c.waits,
            own.c.barren < policy.tries,
        )
        .order_by(
            own.c.stale.desc(),
            (wanted.c.kind == EvaluationKind.RACE).desc(),
            wanted.c.opened_at,
            wanted.c.evaluation_id,
        )
        .limit(1)
        .with_for_update(of=wanted, key_share=True, skip_locked=True)
        .scalar_subquery()
    )


def _any(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    return func.coalesce(func.bool_or(condition), False)


async def _begin(
    connection: AsyncConnection,
    row: Row[Any],
    validator: str,
    now: datetime,
    lease: timedelta,
) -> Lease:
    """Write down the turn of a validator that has its seat."""
    evaluation: Evaluation = rows.evaluation(row)
    turns = (
        select(func.count())
        .where(_runs.c.evaluation_id == evaluation.evaluation_id, _runs.c.validator == validator)
        .scalar_subquery()
    )
    statement = (
        insert(_runs)
        .values(
            run_id=uuid4(),
            evaluation_id=evaluation.evaluation_id,
            validator=validator,
            attempt=turns + literal(1),
            state=RunState.CLAIMED,
            lease=lease,
            claimed_at=now,
            heard_at=now,
            expires_at=now + lease,
            counted=0,
        )
        .returning(_runs)
    )
    run = rows.run_view((await connection.execute(statement)).one())
    await history.write(connection, [history.of_run(run, now, actor=validator)])
    return Lease(run.run_id, evaluation, validator, run.expires_at, resumed=run.attempt > 1)
