"""What pages, the API and the calendar read of the queue."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from arena.db import schema
from arena.work import rows
from arena.work.exceptions import EvaluationNotFoundError, RunNotFoundError
from arena.work.policy import WorkPolicy
from arena.work.types import EvaluationKind, EvaluationState
from arena.work.views import (
    EvaluationResults,
    EvaluationView,
    ProblemProgress,
    RunView,
    ValidatorResult,
)

_runs = schema.evaluation_runs
_evaluations = schema.evaluations


async def evaluation(connection: AsyncConnection, which: UUID) -> EvaluationView:
    """One evaluation. Raises EvaluationNotFoundError."""
    query = select(_evaluations).where(_evaluations.c.evaluation_id == which)
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        raise EvaluationNotFoundError(f"there is no evaluation {which}")
    return rows.evaluation_view(row)


async def open_evaluations(connection: AsyncConnection) -> list[EvaluationView]:
    """What validators are wanted for or at work on, in the order in which it is claimed."""
    query = (
        select(_evaluations)
        .where(_evaluations.c.state == EvaluationState.OPEN)
        .order_by(
            (_evaluations.c.kind == EvaluationKind.RACE).desc(),
            _evaluations.c.opened_at,
            _evaluations.c.evaluation_id,
        )
    )
    return [rows.evaluation_view(row) for row in await connection.execute(query)]


async def evaluations_of(connection: AsyncConnection, version: UUID) -> list[EvaluationView]:
    """All evaluations of an agent version, oldest first."""
    query = (
        select(_evaluations)
        .where(_evaluations.c.version == version)
        .order_by(_evaluations.c.opened_at, _evaluations.c.evaluation_id)
    )
    return [rows.evaluation_view(row) for row in await connection.execute(query)]


async def run(connection: AsyncConnection, which: UUID) -> RunView:
    """One run, whoever's it is. Raises RunNotFoundError."""
    found = await _run_views(connection, select(_runs).where(_runs.c.run_id == which))
    if not found:
        raise RunNotFoundError(f"there is no run {which}")
    return found[0]


async def running(connection: AsyncConnection) -> list[RunView]:
    """The runs that are held, oldest first; also those whose lease ran out unnoticed yet."""
    query = select(_runs).where(rows.HELD)
    return await _run_views(connection, query)


async def runs_of(connection: AsyncConnection, version: UUID) -> list[RunView]:
    """All runs of an agent version, oldest first."""
    query = (
        select(_runs)
        .join(_evaluations, _evaluations.c.evaluation_id == _runs.c.evaluation_id)
        .where(_evaluations.c.version == version)
    )
    return await _run_views(connection, query)


async def _run_views(connection: AsyncConnection, query: Select[Any]) -> list[RunView]:
    ordered = query.order_by(_runs.c.claimed_at, _runs.c.attempt, _runs.c.run_id)
    return [rows.run_view(row) for row in await connection.execute(ordered)]


async def progress_of(connection: AsyncConnection, which: UUID) -> list[ProblemProgress]:
    """What a run's validator said of its problems, in the evaluation's order."""
    table = schema.run_problems
    place = func.array_position(_evaluations.c.problems, table.c.problem_id)
    query = (
        select(table)
        .join(_runs, _runs.c.run_id == table.c.run_id)
        .join(_evaluations, _evaluations.c.evaluation_id == _runs.c.evaluation_id)
        .where(table.c.run_id == which)
        .order_by(place)
    )
    return [rows.progress(row) for row in await connection.execute(query)]


async def results(connection: AsyncConnection, which: UUID) -> EvaluationResults:
    """Which records count, by validator. Raises EvaluationNotFoundError."""
    view = await evaluation(connection, which)
    counted = schema.counted_records
    query = (
        select(counted.c.validator, counted.c.problem_id, counted.c.record_hash)
        .where(counted.c.evaluation_id == which)
        .order_by(counted.c.validator, counted.c.problem_id)
    )
    records: dict[str, dict[str, str]] = {}
    for row in await connection.execute(query):
        records.setdefault(row.validator, {})[row.problem_id] = row.record_hash.hex()
    done = select(_runs.c.validator).where(_runs.c.evaluation_id == which, rows.FINISHED)
    finished = set(await connection.scalars(done))
    return EvaluationResults(
        view,
        tuple(
            ValidatorResult(validator, said, validator in finished)
            for validator, said in sorted(records.items())
        ),
    )


async def out_of_tries(
    connection: AsyncConnection, which: UUID, policy: WorkPolicy
) -> frozenset[str]:
    """The validators that get this evaluation no more, since their turns brought nothing."""
    query = (
        select(_runs.c.validator)
        .where(_runs.c.evaluation_id == which, rows.BARREN)
        .group_by(_runs.c.validator)
        .having(func.count() >= policy.tries)
    )
    return frozenset(await connection.scalars(query))
