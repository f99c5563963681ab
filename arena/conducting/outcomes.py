"""What validators' counted records say, read from the sealed bytes that are stored.

Nothing here trusts a validator's summary, nor a column: strict success, coefficient and
agentic ratio stand in the record whose hash was counted, or in the later verdict that links
to it. A problem has an outcome when its record has one and, if it succeeded, a verdict.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean
from typing import Any, cast
from uuid import UUID

import zstandard
from sqlalchemy import and_, func, or_, select
from sqlalchemy.ext.asyncio import AsyncEngine

from arena.db import schema
from arena.exceptions import SealError
from arena.runs.record import EncodedRecord, RunSummary
from arena.runs.verdicts import VerdictSummary
from arena.season.commands import ProblemOutcome
from arena.work import rows
from arena.work.views import EvaluationView
from scoring.types import JsonObject

_counted = schema.counted_records.c
_evaluations = schema.evaluations.c


@dataclass(frozen=True, slots=True)
class CompleteSheet:
    """A validator that has an outcome of every problem of an evaluation, and since when."""

    evaluation_id: UUID
    validator: str
    at: datetime


async def evaluations(engine: AsyncEngine, ids: Collection[UUID]) -> dict[UUID, EvaluationView]:
    """Those of these evaluations that were opened. Driver errors pass through, as in all here."""
    query = select(schema.evaluations).where(_evaluations.evaluation_id.in_(ids))
    async with engine.connect() as connection:
        found = [rows.evaluation_view(row) for row in await connection.execute(query)]
    return {view.evaluation.evaluation_id: view for view in found}


async def complete_sheets(engine: AsyncEngine, ids: Collection[UUID]) -> list[CompleteSheet]:
    """Who has an outcome of every problem of these evaluations, the earliest first."""
    runs, verdicts = schema.runs.c, schema.verdicts.c
    settled = and_(runs.closed, or_(~runs.success, verdicts.run_id.is_not(None)))
    query = (
        select(
            _counted.evaluation_id,
            _counted.validator,
            func.max(_counted.counted_at).label("at"),
        )
        .join(schema.evaluations, _evaluations.evaluation_id == _counted.evaluation_id)
        .join(schema.runs, runs.record_hash == _counted.record_hash)
        .outerjoin(schema.verdicts, verdicts.run_id == runs.run_id)
        .where(_counted.evaluation_id.in_(ids), settled)
        .group_by(_counted.evaluation_id, _counted.validator, _evaluations.problems)
        .having(
            func.count(_counted.problem_id.distinct()) == func.cardinality(_evaluations.problems)
        )
    )
    async with engine.connect() as connection:
        found = [
            CompleteSheet(row.evaluation_id, row.validator, row.at.astimezone(UTC))
            for row in await connection.execute(query)
        ]
    return sorted(found, key=lambda one: (one.at, one.validator, one.evaluation_id))


async def outcomes(
    engine: AsyncEngine, evaluation_id: UUID, validator: str
) -> dict[str, ProblemOutcome]:
    """What a validator's counted records say, by problem id; problems without outcome are left
    out. Raises SealError for stored bytes that are not those that were counted."""
    own, later = schema.records.alias("own"), schema.records.alias("later")
    runs, verdicts = schema.runs.c, schema.verdicts.c
    query = (
        select(
            _counted.problem_id,
            _counted.record_hash,
            own.c.content.label("record"),
            verdicts.record_hash.label("verdict_hash"),
            later.c.content.label("verdict"),
        )
        .join(schema.runs, runs.record_hash == _counted.record_hash)
        .join(own, own.c.record_hash == _counted.record_hash)
        .outerjoin(schema.verdicts, and_(verdicts.run_id == runs.run_id, verdicts.later))
        .outerjoin(later, later.c.record_hash == verdicts.record_hash)
        .where(_counted.evaluation_id == evaluation_id, _counted.validator == validator)
        .order_by(_counted.problem_id)
    )
    async with engine.connect() as connection:
        found: Sequence[Any] = (await connection.execute(query)).all()
    # In a thread: a race's records are megabytes of JSON.
    return await asyncio.to_thread(_read, found)


def mean_score(outcomes: Mapping[str, ProblemOutcome], problems: Collection[str]) -> float | None:
    """The mean over all problems of success times coefficient; None while one is open."""
    if not problems or any(problem_id not in outcomes for problem_id in problems):
        return None
    told = (outcomes[problem_id] for problem_id in problems)
    return fmean(o.coefficient if o.success else 0.0 for o in told)


def _read(found: Sequence[Any]) -> dict[str, ProblemOutcome]:
    read = ((row.problem_id, _outcome(row)) for row in found)
    return {problem_id: outcome for problem_id, outcome in read if outcome is not None}


def _outcome(row: Any) -> ProblemOutcome | None:
    value = _bytes(row.record, row.record_hash).value
    run = RunSummary.of(value)
    coefficient = run.coefficient if run.judged else None
    if coefficient is None and row.verdict is not None:
        verdict = VerdictSummary.of(_bytes(row.verdict, row.verdict_hash).value)
        coefficient = verdict.coefficient if verdict.run_id == run.run_id else None
    if not run.closed or (run.success and coefficient is None):
        return None
    axis = cast("JsonObject | None", value["axis"]) or {}
    return ProblemOutcome(run.success, coefficient or 0.0, _share(axis.get("agentic_ratio")))


def _share(value: object) -> float:
    """A share, or 0 for what is none: a validator's record must not stop the calendar."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(cast("float", value)) if number and 0 <= cast("float", value) <= 1 else 0.0


def _bytes(packed: bytes, digest: bytes) -> EncodedRecord:
    record = EncodedRecord(zstandard.decompress(packed))
    if record.hash != digest.hex():
        raise SealError(f"what is stored as record {digest.hex()} is another one")
    return record
