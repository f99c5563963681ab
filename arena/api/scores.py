"""What a validator's stored records say of its run; what it says itself is only compared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from uuid import UUID

import structlog
from sqlalchemy import and_, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from arena.api.errors import Code, Refusal
from arena.api.services import Services
from arena.db import schema

_log = structlog.get_logger(__name__)

_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class RunScore:
    """The records that count of a validator at an evaluation. `score` is the mean over all
    problems of success times coefficient; None until each has a record and a verdict."""

    problems: int
    counted: int
    judged: int
    total: float

    @property
    def score(self) -> float | None:
        """The mean, when nothing is missing."""
        whole = self.judged == self.problems and self.problems > 0
        return self.total / self.problems if whole else None


async def run_score(engine: AsyncEngine, run: UUID, validator: str) -> RunScore | None:
    """What counts so far; None when the validator has no such run."""
    evaluations, runs = schema.evaluations.c, schema.evaluation_runs.c
    counted, verdicts = schema.counted_records.c, schema.verdicts.c
    query = (
        select(
            func.cardinality(evaluations.problems).label("problems"),
            func.count(counted.problem_id).label("counted"),
            func.count(verdicts.run_id).label("judged"),
            func.coalesce(func.sum(verdicts.final_score), 0.0).label("total"),
        )
        .select_from(schema.evaluation_runs)
        .join(schema.evaluations, evaluations.evaluation_id == runs.evaluation_id)
        .outerjoin(
            schema.counted_records,
            and_(counted.evaluation_id == runs.evaluation_id, counted.validator == runs.validator),
        )
        .outerjoin(schema.runs, schema.runs.c.record_hash == counted.record_hash)
        .outerjoin(schema.verdicts, verdicts.run_id == schema.runs.c.run_id)
        .where(runs.run_id == run, runs.validator == validator)
        .group_by(evaluations.evaluation_id)
    )
    async with engine.connect() as connection:
        row = (await connection.execute(query)).one_or_none()
    return None if row is None else RunScore(row.problems, row.counted, row.judged, row.total)


async def check_score(services: Services, run: UUID, validator: str, said: float | None) -> None:
    """Before a run ends in success. Raises Refusal when a record or a verdict is missing.

    A score that is stated and is not what the records say is logged and counted: the SDK's
    validators average otherwise. It is used nowhere.
    """
    found = await run_score(services.engine, run, validator)
    if found is None:
        return  # the queue says what is wrong
    missing = found.problems - (found.judged if services.settings.need_verdicts else found.counted)
    if missing > 0:
        raise Refusal(
            Code.MISSING_SCORE,
            f"{missing} of {found.problems} problems have no record that counts, or no verdict:"
            " upload them, or end the run as failed",
        )
    score = found.score
    if said is None or score is None or math.isclose(said, score, abs_tol=_TOLERANCE):
        return
    services.metrics.score_mismatches.inc()
    _log.warning("another score than the records'", run=str(run), said=said, records=score)
