"""`/v1/public/evaluations`, `/validators`, `/trajectories`, `/inference`: what goes on."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from sqlalchemy import func, select

from arena.api.errors import responses
from arena.api.public_agent_models import (
    PendingEvaluation,
    PendingEvaluationsResponse,
    PendingEvaluationSummary,
    RunningEvaluation,
    ValidatorCurrentAgent,
    ValidatorPublic,
)
from arena.api.public_race_models import (
    InferenceModelsResponse,
    RankedInferenceModel,
    RankedInferenceModelsResponse,
    TrajectoryDay,
    TrajectoryHistoryResponse,
)
from arena.api.public_scores import suites_of
from arena.api.public_views import (
    Limit,
    Offset,
    SuiteId,
    Views,
    ViewsDep,
    race_uuid,
)
from arena.api.services import Services, ServicesDep
from arena.db import schema
from arena.submissions.store import AgentVersion
from arena.work.views import EvaluationView, RunView

router = APIRouter(prefix="/v1/public", tags=["public"])

_SEEN_FOR = timedelta(days=30)
_DAYS = 366
_RUNNING = 500
"""The most turns that are listed at once."""


@router.get("/evaluations/pending", responses=responses())
async def get_pending_evaluations(
    services: ServicesDep,
    views: ViewsDep,
    suite_id: SuiteId = None,
    limit: Limit = 100,
    offset: Offset = 0,
) -> PendingEvaluationsResponse:
    """What validators are wanted for, in the order in which it is claimed."""
    found = await views.kept("open evaluations", services.queue.open_evaluations, 1.0)
    suites = await suites_of(services.engine, [one.evaluation.evaluation_id for one in found])
    wanted = [
        one
        for one in found
        if suite_id is None or suites.get(one.evaluation.evaluation_id) == suite_id
    ]
    page = wanted[offset : offset + limit]
    named = await _named(views, (one.evaluation.version for one in page))
    return PendingEvaluationsResponse(
        summary=PendingEvaluationSummary(
            total_pending=len(wanted),
            total_runs_needed=sum(one.wanted for one in wanted),
            total_runs_active=sum(one.held for one in wanted),
        ),
        items=[_pending(one, suites.get(one.evaluation.evaluation_id, 0), named) for one in page],
    )


@router.get("/evaluations/running", responses=responses())
async def get_running_evaluations(
    services: ServicesDep, views: ViewsDep
) -> list[RunningEvaluation]:
    """Validators' turns that are held now."""

    async def make() -> list[RunningEvaluation]:
        runs = (await services.queue.running())[:_RUNNING]
        evaluations = await _evaluations(services, runs)
        named = await _named(views, (one.evaluation.version for one in evaluations.values()))
        return [_running(run, evaluations[run.evaluation_id], named) for run in runs]

    return await views.kept("running evaluations", make, 2.0)


@router.get("/validators", responses=responses())
async def get_validators(services: ServicesDep, views: ViewsDep) -> list[ValidatorPublic]:
    """The validators that take part, or did within a month, and what they are at."""
    return await views.kept("validators", lambda: _validators(services, views))


@router.get("/trajectories/history", responses=responses())
async def get_trajectory_history(
    services: ServicesDep, views: ViewsDep
) -> TrajectoryHistoryResponse:
    """How many sealed records came into the public log each day, from its signed heads."""
    return await views.kept("trajectories", lambda: _trajectories(services), 60.0)


@router.get(
    "/inference/models",
    responses=responses(),
    response_model=InferenceModelsResponse | RankedInferenceModelsResponse,
)
async def get_inference_models(
    services: ServicesDep,
    provider: Annotated[str, Query(max_length=40)] = "chutes",
    ranked: bool = False,
) -> InferenceModelsResponse | RankedInferenceModelsResponse:
    """The models that this arena's validators are asked to route, whoever provides them."""
    models = sorted(services.settings.inference_models)
    if ranked:
        return RankedInferenceModelsResponse(models=[RankedInferenceModel(id=m) for m in models])
    return InferenceModelsResponse(models=models)


async def _evaluations(services: Services, runs: Iterable[RunView]) -> dict[UUID, EvaluationView]:
    found: dict[UUID, EvaluationView] = {}
    for run in runs:
        if run.evaluation_id not in found:
            found[run.evaluation_id] = await services.queue.evaluation(run.evaluation_id)
    return found


async def _named(views: Views, versions: Iterable[UUID]) -> dict[UUID, AgentVersion]:
    return await views.versions.named(sorted(set(versions)))


def _pending(one: EvaluationView, suite: int, named: dict[UUID, AgentVersion]) -> PendingEvaluation:
    evaluation, version = one.evaluation, named.get(one.evaluation.version)
    return PendingEvaluation(
        work_item_id=evaluation.evaluation_id,
        agent_version_id=evaluation.version,
        agent_name=version.name if version else "",
        version_number=version.number if version else 0,
        miner_hotkey=version.hotkey if version else "",
        suite_id=suite,
        required_successes=evaluation.needed,
        completed_successes=one.finished,
        active_runs=one.held,
        remaining=evaluation.needed - one.finished,
        queued_at=one.opened_at,
        phase=evaluation.kind.value,
        race_id=race_uuid(evaluation.season_race) if evaluation.season_race else None,
    )


def _running(
    run: RunView, view: EvaluationView, named: dict[UUID, AgentVersion]
) -> RunningEvaluation:
    evaluation, version = view.evaluation, named.get(view.evaluation.version)
    share = min(1.0, run.counted / max(1, len(evaluation.problems)))
    return RunningEvaluation(
        eval_run_id=run.run_id,
        agent_version_id=evaluation.version,
        agent_name=version.name if version else "",
        version_number=version.number if version else 0,
        miner_hotkey=version.hotkey if version else "",
        validator_hotkey=run.validator,
        status=run.state,
        started_at=run.started_at or run.claimed_at,
        progress_percent=round(100 * share, 1),
        phase=evaluation.kind.value,
        race_id=race_uuid(evaluation.season_race) if evaluation.season_race else None,
    )


async def _validators(services: Services, views: Views) -> list[ValidatorPublic]:
    runs = schema.evaluation_runs.c
    query = (
        select(
            runs.validator,
            func.min(runs.claimed_at).label("first"),
            func.max(runs.claimed_at).label("last"),
            func.max(runs.heard_at).label("heard"),
        )
        .where(runs.claimed_at > services.clock() - _SEEN_FOR)
        .group_by(runs.validator)
    )
    async with services.engine.connect() as connection:
        seen: dict[str, Any] = {row.validator: row for row in await connection.execute(query)}
    now = services.clock()
    held = [run for run in await services.queue.running() if run.expires_at >= now]
    evaluations = await _evaluations(services, held)
    named = await _named(views, (one.evaluation.version for one in evaluations.values()))
    joined = (await views.season()).validators
    working = {run.validator: run for run in held}
    return [
        _validator(hotkey, joined.get(hotkey), seen.get(hotkey), working, evaluations, named)
        for hotkey in sorted({*joined, *seen})
    ]


def _validator(
    hotkey: str,
    joined: datetime | None,
    seen: Any,
    working: dict[str, RunView],
    evaluations: dict[UUID, EvaluationView],
    named: dict[UUID, AgentVersion],
) -> ValidatorPublic:
    run = working.get(hotkey)
    agent = None
    if run is not None:
        version = evaluations[run.evaluation_id].evaluation.version
        known = named.get(version)
        agent = ValidatorCurrentAgent(
            agent_name=known.name if known else "",
            version_id=version,
            version_number=known.number if known else 0,
            started_at=run.started_at or run.claimed_at,
        )
    first = joined or seen.first.astimezone(UTC)
    return ValidatorPublic(
        hotkey=hotkey,
        status="evaluating" if run is not None else "available",
        registered_at=first,
        last_claim_at=seen.last.astimezone(UTC) if seen else None,
        last_seen_at=seen.heard.astimezone(UTC) if seen else None,
        current_agent=agent,
    )


async def _trajectories(services: Services) -> TrajectoryHistoryResponse:
    table = schema.log_heads.c
    query = select(table.day, table.size, table.stored_at).order_by(table.day.desc())
    async with services.engine.connect() as connection:
        rows = list(reversed((await connection.execute(query.limit(_DAYS + 1))).all()))
    days, before = [], 0
    for row in rows:
        days.append(
            TrajectoryDay(date=row.day.isoformat(), distinct=row.size - before, cumulative=row.size)
        )
        before = row.size
    if len(days) > _DAYS:  # the first of them only says where the others begin
        days = days[1:]
    return TrajectoryHistoryResponse(
        series=days,
        total=days[-1].cumulative if days else 0,
        daily_rate=days[-1].distinct if days else 0,
        weekly_rate=sum(day.distinct for day in days[-7:]),
        updated_at=rows[-1].stored_at.astimezone(UTC) if rows else None,
    )
