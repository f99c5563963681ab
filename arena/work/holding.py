"""A run is held as long as its validator is heard of, and taken back when it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Row,
    Text,
    Uuid,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, distinct_on, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from arena.db import schema
from arena.exceptions import Fault
from arena.work import history, rows
from arena.work.exceptions import (
    InvalidProblemError,
    LeaseExpiredError,
    NotRunOwnerError,
    RunAlreadyCompleteError,
    RunNotFoundError,
)
from arena.work.opening import lock
from arena.work.policy import WorkPolicy
from arena.work.types import RunState
from arena.work.views import ProblemState, RunView

_runs = schema.evaluation_runs
_evaluations = schema.evaluations

SILENT = "nothing was heard of it for its whole lease"
IDLE = "it brought no record for too long"
LONG = "it was at it for too long"

_asked = (
    func.unnest(
        bindparam("evaluations", type_=ARRAY(Uuid)), bindparam("validators", type_=ARRAY(Text))
    )
    .table_valued("evaluation_id", "validator", name="asked")
    .render_derived()
)
_LAST = (
    select(_runs.c.run_id)
    .join(
        _asked,
        and_(
            _runs.c.evaluation_id == _asked.c.evaluation_id,
            _runs.c.validator == _asked.c.validator,
        ),
    )
    .ext(distinct_on(_runs.c.evaluation_id, _runs.c.validator))
    .order_by(_runs.c.evaluation_id, _runs.c.validator, _runs.c.attempt.desc())
)


async def own_run(connection: AsyncConnection, run: UUID, validator: str) -> RunView:
    """A validator's run, locked.

    Raises RunNotFoundError, and NotRunOwnerError when it is another's.
    """
    query = select(_runs).where(_runs.c.run_id == run).with_for_update(key_share=True)
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        raise RunNotFoundError(f"there is no run {run}")
    if row.validator != validator:
        raise NotRunOwnerError(f"run {run} is another validator's")
    return rows.run_view(row)


async def last_runs(
    connection: AsyncConnection, wanted: Collection[tuple[UUID, str]]
) -> dict[tuple[UUID, str], RunView]:
    """The last turns at evaluations by validators, locked in one order for everybody; of who
    never had one there is none."""
    pairs = sorted(set(wanted))
    values = {"evaluations": [pair[0] for pair in pairs], "validators": [pair[1] for pair in pairs]}
    last = select(_runs).where(_runs.c.run_id.in_(_LAST)).order_by(_runs.c.run_id)
    rows_ = await connection.execute(last.with_for_update(key_share=True), values)
    found = [rows.run_view(row) for row in rows_]
    return {(run.evaluation_id, run.validator): run for run in found}


def is_held(run: RunView, now: datetime) -> bool:
    """Whether a lease holds it. One that ran out holds nothing, also before it is taken back."""
    return run.state.held and now < run.expires_at


def check_held(run: RunView, now: datetime) -> None:
    """Raises LeaseExpiredError and RunAlreadyCompleteError unless it is held."""
    if is_held(run, now):
        return
    if run.state is RunState.STALE or run.state.held:
        ended = min(run.expires_at, run.ended_at or run.expires_at)
        raise LeaseExpiredError(
            f"the lease of run {run.run_id} ran out at {ended:%F %T} UTC",
            remedy="claim again: what is stored of it counts on",
        )
    raise RunAlreadyCompleteError(f"run {run.run_id} has ended as {run.state}")


async def hear(connection: AsyncConnection, run: UUID, validator: str, now: datetime) -> RunView:
    """A sign of life of a held run. Raises as `own_run` and `check_held`."""
    before = await own_run(connection, run, validator)
    check_held(before, now)
    return await lives(connection, before, now)


async def lives(connection: AsyncConnection, before: RunView, now: datetime) -> RunView:
    """The run, locked and held, is RUNNING from its first sign of life on, and held for a
    lease from now. `counting.count_all` says the same of many."""
    row = (
        await connection.execute(
            update(_runs)
            .where(_runs.c.run_id == before.run_id)
            .values(
                state=RunState.RUNNING,
                started_at=before.started_at or now,
                heard_at=now,
                expires_at=now + before.lease,
            )
            .returning(_runs)
        )
    ).one()
    held = rows.run_view(row)
    if before.state is RunState.CLAIMED:
        await history.write(connection, [history.of_run(held, now, actor=held.validator)])
    return held


async def problems_of(connection: AsyncConnection, evaluation: UUID) -> Row[Any]:
    """The row of an evaluation, not locked: what it is about never changes."""
    query = select(_evaluations).where(_evaluations.c.evaluation_id == evaluation)
    return (await connection.execute(query)).one()


async def progress(
    connection: AsyncConnection,
    run: UUID,
    validator: str,
    problems: Mapping[str, ProblemState],
    now: datetime,
) -> None:
    """What a validator says of its problems; the last word stands. Also a sign of life.

    Raises as `hear`, and InvalidProblemError.
    """
    held = await hear(connection, run, validator, now)
    check_problems(await problems_of(connection, held.evaluation_id), *problems)
    if not problems:
        return
    table = schema.run_problems
    statement = insert(table)
    said = {name: statement.excluded[name] for name in ("state", "updated_at")}
    await connection.execute(
        statement.on_conflict_do_update(index_elements=["run_id", "problem_id"], set_=said),
        [
            {"run_id": run, "problem_id": problem, "state": state, "updated_at": now}
            for problem, state in sorted(problems.items())
        ],
    )


def check_problems(evaluation: Row[Any], *problems: str) -> None:
    """Raises InvalidProblemError for one that is not the evaluation's."""
    for problem in sorted(set(problems) - set(evaluation.problems)):
        raise InvalidProblemError(
            f"evaluation {evaluation.evaluation_id} has no problem {problem[:80]!r}"
        )


async def take_back(
    connection: AsyncConnection, now: datetime, policy: WorkPolicy, validator: str | None = None
) -> list[RunView]:
    """End the runs whose lease has run out, or that have brought nothing for too long, of one
    validator or of all: they are STALE, and their seats free. What somebody else works on this
    moment is left for the next time."""
    silent = _runs.c.expires_at <= now
    long = _runs.c.claimed_at <= now - policy.turn
    expired = [rows.HELD, or_(silent, long, _idle(now - policy.patience))]
    if validator is not None:
        expired.append(_runs.c.validator == validator)
    query = select(_runs.c.evaluation_id).where(*expired).distinct()
    ids = list(await connection.scalars(query))
    if not ids:
        return []
    statement = (
        update(_runs)
        .where(*expired, _runs.c.evaluation_id.in_(await lock(connection, ids, wait=False)))
        .values(
            state=RunState.STALE,
            ended_at=now,
            failure_code=LeaseExpiredError.code,
            failure_fault=Fault.VALIDATOR,
            failure_message=case((silent, SILENT), (long, LONG), else_=IDLE),
        )
        .returning(_runs)
    )
    runs = [rows.run_view(row) for row in await connection.execute(statement)]
    seats = Counter(run.evaluation_id for run in runs)
    if seats:
        await connection.execute(
            update(_evaluations)
            .where(_evaluations.c.evaluation_id == bindparam("which"))
            .values(taken=_evaluations.c.taken - bindparam("seats")),
            [{"which": which, "seats": number} for which, number in sorted(seats.items())],
        )
        await history.write(connection, [history.of_run(r, now, actor=None) for r in runs])
    return runs


def _idle(since: datetime) -> ColumnElement[bool]:
    """A turn that has lasted since then without a new record."""
    counted = schema.counted_records.c
    brought = exists().where(
        counted.evaluation_id == _runs.c.evaluation_id,
        counted.validator == _runs.c.validator,
        counted.counted_at > since,
    )
    return and_(_runs.c.claimed_at <= since, ~brought)


async def mend_clock(connection: AsyncConnection, now: datetime) -> None:
    """After the clock went back, no lease is longer than one from now.

    Otherwise a run that was claimed under a clock a day ahead would be held for a day.
    """
    moment = literal(now, _runs.c.expires_at.type)
    # Nobody is waited for, since this holds many runs at once.
    ahead = (
        select(_runs.c.run_id)
        .where(rows.HELD, _runs.c.expires_at > moment + _runs.c.lease)
        .with_for_update(key_share=True, skip_locked=True)
    )
    ids = list(await connection.scalars(ahead))
    if not ids:
        return
    await connection.execute(
        update(_runs)
        .where(_runs.c.run_id.in_(ids))
        .values(heard_at=now, expires_at=moment + _runs.c.lease)
    )
