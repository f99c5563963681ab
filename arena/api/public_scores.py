"""What counts of evaluations, read from stored records: by problem, by validator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Integer, Select, and_, cast, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from arena.db import schema


@dataclass(frozen=True, slots=True)
class ProblemResult:
    """A record that counts. Holds nothing of the problem but its id and category."""

    evaluation_id: UUID
    eval_run_id: UUID
    validator: str
    problem_id: str
    bucket: str
    success: bool
    failure: str | None
    wall_s: float
    """Whole seconds: an agent could write what it read into their fractions."""
    record_hash: str
    record_run: str
    quality: float | None
    score: float | None
    counted_at: datetime


@dataclass(frozen=True, slots=True)
class ValidatorScore:
    """One validator's whole evaluation. `score` is the mean over all problems of success
    times coefficient, `quality` that of the reasoning; None until all have a verdict."""

    evaluation_id: UUID
    validator: str
    version: UUID
    score: float | None
    quality: float | None


_counted, _runs, _verdicts = schema.counted_records, schema.runs, schema.verdicts


def _results(evaluations: Sequence[UUID]) -> Select[Any]:
    drawn = schema.race_problems
    return (
        select(
            _counted.c.evaluation_id,
            _counted.c.run_id.label("eval_run_id"),
            _counted.c.validator,
            _counted.c.problem_id,
            _counted.c.counted_at,
            _counted.c.record_hash,
            drawn.c.bucket,
            _runs.c.run_id,
            _runs.c.success,
            _runs.c.failure_code,
            _runs.c.wall_s,
            _verdicts.c.quality,
            _verdicts.c.final_score,
        )
        .join(_runs, _runs.c.record_hash == _counted.c.record_hash)
        .join(
            drawn,
            and_(drawn.c.race_id == _runs.c.race_id, drawn.c.problem_id == _counted.c.problem_id),
        )
        .outerjoin(_verdicts, _verdicts.c.run_id == _runs.c.run_id)
        .where(_counted.c.evaluation_id.in_(list(evaluations)))
        .order_by(_counted.c.evaluation_id, drawn.c.position, _counted.c.validator)
    )


async def problem_results(
    engine: AsyncEngine, evaluations: Sequence[UUID], *, run: UUID | None = None
) -> list[ProblemResult]:
    """The records that count of these evaluations, in the order of their problems; of one
    validator's turn when `run` is given."""
    if not evaluations:
        return []
    query = _results(evaluations)
    if run is not None:
        query = query.where(_counted.c.run_id == run)
    async with engine.connect() as connection:
        rows = (await connection.execute(query)).all()
    return [
        ProblemResult(
            row.evaluation_id,
            row.eval_run_id,
            row.validator,
            row.problem_id,
            row.bucket,
            bool(row.success),
            row.failure_code,
            float(round(row.wall_s)),
            row.record_hash.hex(),
            row.run_id,
            row.quality,
            row.final_score,
            row.counted_at.astimezone(UTC),
        )
        for row in rows
    ]


async def validator_scores(
    engine: AsyncEngine, evaluations: Sequence[UUID]
) -> list[ValidatorScore]:
    """Each validator's score of each of these evaluations."""
    if not evaluations:
        return []
    table = schema.evaluations
    drawn = func.cardinality(table.c.problems)
    query = (
        select(
            _counted.c.evaluation_id,
            _counted.c.validator,
            table.c.version,
            drawn.label("drawn"),
            func.count(_verdicts.c.run_id).label("judged"),
            func.sum(_verdicts.c.final_score).label("total"),
            func.avg(_verdicts.c.quality).label("quality"),
        )
        .join(table, table.c.evaluation_id == _counted.c.evaluation_id)
        .join(_runs, _runs.c.record_hash == _counted.c.record_hash)
        .outerjoin(_verdicts, _verdicts.c.run_id == _runs.c.run_id)
        .where(_counted.c.evaluation_id.in_(list(evaluations)))
        .group_by(_counted.c.evaluation_id, _counted.c.validator, table.c.version, drawn)
        .order_by(_counted.c.evaluation_id, _counted.c.validator)
    )
    async with engine.connect() as connection:
        rows = (await connection.execute(query)).all()
    return [
        ValidatorScore(
            row.evaluation_id,
            row.validator,
            row.version,
            row.total / row.drawn if row.judged == row.drawn else None,
            row.quality if row.judged == row.drawn else None,
        )
        for row in rows
    ]


async def suites_of(engine: AsyncEngine, evaluations: Sequence[UUID]) -> Mapping[UUID, int]:
    """The number of the problem set of each of these evaluations."""
    if not evaluations:
        return {}
    races = schema.races.c
    query = select(races.race_id, cast(races.inputs["suite"].astext, Integer).label("suite"))
    query = query.where(races.race_id.in_([str(one) for one in evaluations]))
    async with engine.connect() as connection:
        rows = (await connection.execute(query)).all()
    return {UUID(row.race_id): row.suite for row in rows}
