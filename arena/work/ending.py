"""A run ends: as whole, and it counts; or by a fault of a validator or of the platform, and
the evaluation is somebody else's."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from arena.db import schema
from arena.work import history, rows
from arena.work.exceptions import (
    IncompleteRunError,
    RunAlreadyCompleteError,
    RunNotFoundError,
    WorkError,
)
from arena.work.holding import check_held, own_run
from arena.work.policy import WorkPolicy
from arena.work.types import Ended, EvaluationState, RunState
from arena.work.views import Completion, RunView, finishes

_runs = schema.evaluation_runs
_evaluations = schema.evaluations


def checked(ended: Ended) -> Ended:
    """An ending as it is stored. Raises WorkError (`work.bad_value`) for one that is none."""
    if ended.state not in (RunState.SUCCESS, RunState.FAILED, RunState.TIMED_OUT):
        raise WorkError(f"a validator cannot end a run as {ended.state}", code="work.bad_value")
    if (ended.state is RunState.SUCCESS) != (ended.failure is None):
        raise WorkError("a run ends in success or for a reason", code="work.bad_value")
    return Ended(ended.state, rows.storable(ended.failure))


async def complete(
    connection: AsyncConnection,
    run: UUID,
    validator: str,
    ended: Ended,
    now: datetime,
    policy: WorkPolicy,
) -> Completion:
    """As `WorkQueue.complete`, in a transaction of its own; `ended` is checked."""
    evaluation = await _lock_evaluation(connection, run)
    before = await own_run(connection, run, validator)
    if Ended(before.state, before.failure) == ended:
        return Completion(before, rows.evaluation_view(evaluation))
    if before.state in (RunState.SUCCESS, RunState.FAILED, RunState.TIMED_OUT):
        raise RunAlreadyCompleteError(f"run {run} has ended as {before.state} already")
    check_held(before, now)
    whole = finishes(ended.state, ended.failure)
    if whole:
        await _check_whole(connection, evaluation, validator)
    wait = None if whole else policy.wait(await _barren(connection, before))
    after = await _end(connection, before, ended, now, None if wait is None else now + wait)
    changes = [history.of_run(after, now, actor=validator)]
    seats: dict[str, object] = {"taken": _evaluations.c.taken - 1}
    if whole:
        seats = {"finished": _evaluations.c.finished + 1}
    if whole and evaluation.finished + 1 == evaluation.needed:
        seats |= {"state": EvaluationState.CLOSED, "ended_at": now}
        changes.append(history.Change(evaluation.evaluation_id, EvaluationState.CLOSED, now))
    statement = (
        update(_evaluations)
        .where(_evaluations.c.evaluation_id == evaluation.evaluation_id)
        .values(seats)
        .returning(_evaluations)
    )
    row = (await connection.execute(statement)).one()
    await history.write(connection, changes)
    return Completion(after, rows.evaluation_view(row))


async def _lock_evaluation(connection: AsyncConnection, run: UUID) -> Row[Any]:
    """The run's evaluation, locked before the run as everybody does."""
    of_run = select(_runs.c.evaluation_id).where(_runs.c.run_id == run).scalar_subquery()
    query = (
        select(_evaluations)
        .where(_evaluations.c.evaluation_id == of_run)
        .with_for_update(key_share=True)
    )
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        raise RunNotFoundError(f"there is no run {run}")
    return row


async def _check_whole(connection: AsyncConnection, evaluation: Row[Any], validator: str) -> None:
    """A validator's word that it is done, or that the agent failed, is not enough."""
    table = schema.counted_records.c
    query = select(func.count()).where(
        table.evaluation_id == evaluation.evaluation_id, table.validator == validator
    )
    counted = await connection.scalar(query) or 0
    if counted < len(evaluation.problems):
        raise IncompleteRunError(
            f"{counted} of {len(evaluation.problems)} problems have a record that counts",
            remedy="upload the others first, or end the run as failed",
        )


async def _barren(connection: AsyncConnection, run: RunView) -> int:
    """How many of its turns brought nothing, with this one."""
    query = select(func.count()).where(
        _runs.c.evaluation_id == run.evaluation_id,
        _runs.c.validator == run.validator,
        rows.BARREN,
    )
    return (await connection.scalar(query) or 0) + (run.counted == 0)


async def _end(
    connection: AsyncConnection,
    run: RunView,
    ended: Ended,
    now: datetime,
    retry_at: datetime | None,
) -> RunView:
    why = ended.failure
    statement = (
        update(_runs)
        .where(_runs.c.run_id == run.run_id)
        .values(
            state=ended.state,
            ended_at=now,
            retry_at=retry_at,
            failure_code=why and why.code,
            failure_fault=why and why.fault,
            failure_message=why and why.message,
        )
        .returning(_runs)
    )
    return rows.run_view((await connection.execute(statement)).one())
