"""`/v1/public/agent-versions` and `/evaluation-runs`: agents, their runs, what is released.

Scores of an evaluation stand here when it is over: a validator that could read the others'
would have no need to run anything. Problems stand here when their records are released.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal
from uuid import UUID

from fastapi import APIRouter

from arena.api.errors import Code, Refusal, responses
from arena.api.public_agent_models import (
    AgentVersionProblemsResponse,
    AgentVersionPublic,
    AgentVersionStatus,
    EvaluationItemRead,
    EvaluationItemsRead,
    EvaluationRunDetail,
    EvaluationRunPublic,
    ProblemProgressEntry,
    ValidatorProblemResult,
)
from arena.api.public_scores import (
    ProblemResult,
    ValidatorScore,
    problem_results,
    suites_of,
    validator_scores,
)
from arena.api.public_views import ViewsDep, race_uuid, races_of
from arena.api.services import ServicesDep
from arena.api.version_status import known_version, status_of
from arena.season.embargo import code_public_at
from arena.work.exceptions import RunNotFoundError
from arena.work.types import EvaluationState
from arena.work.views import EvaluationView, ProblemState, RunView

router = APIRouter(prefix="/v1/public", tags=["public"])


@router.get("/agent-versions/{agent_version_id}", responses=responses(404))
async def get_agent_version(
    services: ServicesDep, views: ViewsDep, agent_version_id: UUID
) -> AgentVersionPublic:
    """A version whose code is public: one that held the title, after its embargo."""
    version = await known_version(views, agent_version_id)
    season = await views.season()
    released = code_public_at(season, str(agent_version_id))
    if released is None or released > services.clock():
        raise Refusal(Code.ARTIFACT_NOT_RELEASED, "this version's code is not public")
    entrant = season.entrants[str(agent_version_id)]
    return AgentVersionPublic(
        agent_version_id=version.version_id,
        agent_id=version.agent_id,
        agent_name=version.name,
        miner_hotkey=version.hotkey,
        version_number=version.number,
        submitted_at=version.submitted_at,
        released_at=released,
        code_available_at=released,
        latest_final_score=entrant.qualifying,
        source_sha256=version.source_hash,
    )


@router.get("/agent-versions/{agent_version_id}/status", responses=responses(404))
async def get_agent_version_status(
    services: ServicesDep, views: ViewsDep, agent_version_id: UUID
) -> AgentVersionStatus:
    """How far a version is."""
    return await status_of(services, views, await known_version(views, agent_version_id))


@router.get("/agent-versions/{agent_version_id}/runs", responses=responses(404))
async def get_agent_version_runs(
    services: ServicesDep, views: ViewsDep, agent_version_id: UUID
) -> list[EvaluationRunPublic]:
    """Validators' turns at a version, oldest first."""
    version = await known_version(views, agent_version_id)
    evaluations = {
        one.evaluation.evaluation_id: one
        for one in await services.queue.evaluations_of(version.version_id)
    }
    runs = await services.queue.runs_of(version.version_id)
    suites = await suites_of(services.engine, list(evaluations))
    over = [which for which, one in evaluations.items() if one.ended_at is not None]
    scores = {
        (s.evaluation_id, s.validator): s for s in await validator_scores(services.engine, over)
    }
    numbers = {race.name: race.number for race in races_of(await views.season())}
    return [
        _run(
            run,
            evaluations[run.evaluation_id],
            suites.get(run.evaluation_id, 0),
            scores.get((run.evaluation_id, run.validator)),
            numbers,
        )
        for run in runs
    ]


@router.get("/agent-versions/{agent_version_id}/problems", responses=responses(404))
async def get_agent_version_problems(
    services: ServicesDep,
    views: ViewsDep,
    agent_version_id: UUID,
    phase: Literal["qualifying", "race"] | None = None,
    race_id: UUID | None = None,
) -> AgentVersionProblemsResponse:
    """The problems of a version whose records are released, with their results."""
    version = await known_version(views, agent_version_id)
    evaluations = [
        one
        for one in await services.queue.evaluations_of(version.version_id)
        if (phase is None or one.evaluation.kind.value == phase)
        and (race_id is None or _race_of(one) == race_id)
    ]
    release = await views.release()
    shown: dict[tuple[UUID, str], list[ProblemResult]] = {}
    withheld: set[tuple[UUID, str]] = set()
    ids = [one.evaluation.evaluation_id for one in evaluations]
    for result in await problem_results(services.engine, ids):
        place = (result.evaluation_id, result.problem_id)
        if release(result.problem_id, version.source_hash):
            shown.setdefault(place, []).append(result)
        else:
            withheld.add(place)
    by_id = {one.evaluation.evaluation_id: one for one in evaluations}
    return AgentVersionProblemsResponse(
        agent_version_id=version.version_id,
        problems=[
            ProblemProgressEntry(
                problem_id=UUID(problem),
                category=found[0].bucket,
                phase=by_id[which].evaluation.kind.value,
                race_id=_race_of(by_id[which]),
                validator_results=[_result(one) for one in found],
            )
            for (which, problem), found in shown.items()
        ],
        withheld=len(withheld),
    )


@router.get("/evaluation-runs/{eval_run_id}", responses=responses(404))
async def get_evaluation_run(
    services: ServicesDep, views: ViewsDep, eval_run_id: UUID
) -> EvaluationRunDetail:
    """A validator's turn, with those of its problems whose records are released."""
    try:
        run = await services.queue.run(eval_run_id)
    except RunNotFoundError:
        raise Refusal(Code.EVAL_RUN_NOT_FOUND, "there is no such run") from None
    view = await services.queue.evaluation(run.evaluation_id)
    version = await views.versions.version(view.evaluation.version)
    results = await problem_results(services.engine, [run.evaluation_id], run=eval_run_id)
    release = await views.release()
    source = version.source_hash if version else ""
    shown = [one for one in results if release(one.problem_id, source)]
    over = view.ended_at is not None
    scores = await validator_scores(services.engine, [run.evaluation_id]) if over else []
    score = next((one.score for one in scores if one.validator == run.validator), None)
    return EvaluationRunDetail(
        eval_run_id=run.run_id,
        agent_version_id=view.evaluation.version,
        agent_name=version.name if version else "",
        validator_hotkey=run.validator,
        status=run.state,
        version_number=version.number if version else 0,
        claimed_at=run.claimed_at,
        score=score if run.finishes else None,
        completed_at=run.ended_at,
        failure_reason=run.failure.code if run.failure else None,
        is_included=run.finishes,
        items=_items(run, view, results, shown),
    )


def _run(
    run: RunView,
    view: EvaluationView,
    suite: int,
    score: ValidatorScore | None,
    numbers: dict[str, int],
) -> EvaluationRunPublic:
    race = view.evaluation.season_race
    cancelled = view.state is EvaluationState.CANCELLED
    return EvaluationRunPublic(
        eval_run_id=run.run_id,
        agent_version_id=view.evaluation.version,
        suite_id=suite,
        validator_hotkey=run.validator,
        status=run.state,
        claimed_at=run.claimed_at,
        lease_expires_at=run.expires_at,
        is_included=run.finishes and not cancelled,
        last_heartbeat_at=run.heard_at,
        completed_at=run.ended_at,
        invalidated_at=view.ended_at if cancelled else None,
        # A validator's own words may hold a problem's: its code says enough.
        failure_reason=run.failure.code if run.failure else None,
        validator_score=score.score if score and run.finishes else None,
        phase=view.evaluation.kind.value,
        race_id=_race_of(view),
        race_number=numbers.get(race) if race else None,
        evaluation_id=view.evaluation.evaluation_id,
    )


def _race_of(view: EvaluationView) -> UUID | None:
    race = view.evaluation.season_race
    return race_uuid(race) if race else None


def _result(one: ProblemResult) -> ValidatorProblemResult:
    return ValidatorProblemResult(
        eval_run_id=one.eval_run_id,
        validator_hotkey=one.validator,
        status=ProblemState.SUCCESS if one.success else ProblemState.FAILED,
        score=one.score,
        reasoning_score=one.quality,
        updated_at=one.counted_at,
        execution_time=one.wall_s,
    )


def _items(
    run: RunView,
    view: EvaluationView,
    results: list[ProblemResult],
    shown: Iterable[ProblemResult],
) -> EvaluationItemsRead:
    items = [
        EvaluationItemRead(
            item_id=one.problem_id,
            status="SUCCESS" if one.success else "FAILED",
            eval_run_id=run.run_id,
            validator_hotkey=one.validator,
            family=one.bucket,
            score=one.score,
            record_sha256=one.record_hash,
            record_run_id=one.record_run,
        )
        for one in shown
    ]
    return EvaluationItemsRead(
        eval_run_id=run.run_id,
        detail_released=len(items) == len(view.evaluation.problems),
        persisted_item_count=len(results),
        items=items,
        expected_item_count=len(view.evaluation.problems),
    )
