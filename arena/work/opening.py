"""Evaluations are opened once, and may be cancelled."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID, uuid5

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from arena.db import schema
from arena.exceptions import Fault
from arena.work import history, rows
from arena.work.exceptions import OtherEvaluationError, WorkError
from arena.work.types import Evaluation, EvaluationKind, EvaluationState, RunState
from scoring.exceptions import ErrorInfo

_NAMESPACE = UUID("6b4f7a9e-53f0-5c0e-9d57-7a1f0c1d6e15")
"""Of the ids of evaluations; never changed."""


def evaluation_id(version: UUID, kind: EvaluationKind, season_race: str | None) -> UUID:
    """The id of an evaluation: always the same for the same thing, so that a calendar that was
    killed and one that was not open the same."""
    return uuid5(_NAMESPACE, f"{version}\n{kind}\n{season_race or ''}")


def checked(
    version: UUID,
    kind: EvaluationKind,
    season_race: str | None,
    problems: Sequence[str],
    needed: int,
) -> Evaluation:
    """An evaluation that can be opened. Raises WorkError (`work.bad_value`)."""
    if season_race is not None:
        rows.check_name("race", season_race)
    elif kind is EvaluationKind.RACE:
        raise WorkError("an evaluation for a race needs the race", code="work.bad_value")
    for problem in problems:
        rows.check_name("problem", problem)
    if not problems or len(set(problems)) != len(problems):
        raise WorkError("an evaluation needs problems, each once", code="work.bad_value")
    if needed < 1:
        raise WorkError("an evaluation needs at least one validator", code="work.bad_value")
    return Evaluation(
        evaluation_id(version, kind, season_race),
        version,
        kind,
        season_race,
        tuple(problems),
        needed,
    )


async def open_evaluation(connection: AsyncConnection, wanted: Evaluation, at: datetime) -> None:
    """Open it, unless it was opened before, whatever became of it.

    Raises OtherEvaluationError when it was opened with other problems or for other numbers.
    """
    values = {
        "evaluation_id": wanted.evaluation_id,
        "version": wanted.version,
        "kind": wanted.kind,
        "season_race": wanted.season_race,
        "problems": list(wanted.problems),
        "needed": wanted.needed,
        "state": EvaluationState.OPEN,
        "taken": 0,
        "finished": 0,
        "opened_at": at,
    }
    table = schema.evaluations
    statement = (
        insert(table).values(values).on_conflict_do_nothing().returning(table.c.evaluation_id)
    )
    if await connection.scalar(statement) is not None:
        change = history.Change(wanted.evaluation_id, EvaluationState.OPEN, at)
        await history.write(connection, [change])
        return
    query = select(table).where(table.c.evaluation_id == wanted.evaluation_id)
    if rows.evaluation((await connection.execute(query)).one()) != wanted:
        raise OtherEvaluationError(
            f"evaluation {wanted.evaluation_id} was opened with other problems or for another"
            " number of validators"
        )


async def cancel(
    connection: AsyncConnection, version: UUID, reason: str, now: datetime
) -> list[UUID]:
    """End what is open of a version, and the runs that are held; the evaluations' ids."""
    table, runs = schema.evaluations, schema.evaluation_runs
    query = (
        select(table.c.evaluation_id)
        .where(table.c.version == version, table.c.state == EvaluationState.OPEN)
        .order_by(table.c.evaluation_id)
        .with_for_update(key_share=True)
    )
    ids = list(await connection.scalars(query))
    why = rows.storable(ErrorInfo("work.cancelled", Fault.PLATFORM, reason))
    assert why is not None
    ended = await connection.execute(
        update(runs)
        .where(runs.c.evaluation_id.in_(ids), rows.HELD)
        .values(
            state=RunState.CANCELLED,
            ended_at=now,
            failure_code=why.code,
            failure_fault=why.fault,
            failure_message=why.message,
        )
        .returning(runs)
    )
    changes = [history.of_run(rows.run_view(row), now, actor=None) for row in ended]
    changes += [history.Change(i, EvaluationState.CANCELLED, now, why=why) for i in ids]
    await connection.execute(
        update(table)
        .where(table.c.evaluation_id.in_(ids))
        .values(state=EvaluationState.CANCELLED, taken=table.c.finished, ended_at=now)
    )
    await history.write(connection, changes)
    return ids


async def lock(connection: AsyncConnection, ids: Sequence[UUID], *, wait: bool) -> list[UUID]:
    """Lock evaluations, in the one order; without `wait`, those that nobody has locked.

    Who changes how many validators have an evaluation locks it first, and its runs after it.
    The lock lets rows that refer to it be added.
    """
    table = schema.evaluations.c
    query = (
        select(table.evaluation_id)
        .where(table.evaluation_id.in_(ids))
        .order_by(table.evaluation_id)
        .with_for_update(key_share=True, skip_locked=not wait)
    )
    return list(await connection.scalars(query))
