"""`/v1/miner/…`: a hotkey's agents, their versions, and which of them races."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response

from arena.api.auth import SIGNED_OR_SESSION, MinerDep
from arena.api.errors import Code, Refusal, responses
from arena.api.miner_models import (
    AgentPublic,
    AgentVersionHistoryEntry,
    MinerAgentsResponse,
    MinerRaceSelectionRequest,
    OwnProblem,
    OwnProblems,
)
from arena.api.public_agent_models import AgentVersionStatus
from arena.api.public_scores import ProblemResult, problem_results
from arena.api.public_views import Limit, Offset, Views, ViewsDep, version_uuid
from arena.api.services import Services, ServicesDep
from arena.api.version_states import not_selectable, version_state
from arena.api.version_status import out_of, owned_version, status_of
from arena.exceptions import SeasonError
from arena.season.commands import SelectRacer
from arena.season.state import Season
from arena.season.store import command, load_season
from arena.submissions.service import cooldown_ends
from arena.submissions.store import AgentVersion
from arena.work.views import EvaluationView

router = APIRouter(prefix="/v1/miner", tags=["miner"], dependencies=SIGNED_OR_SESSION)

_AGENTS = 200
"""The most agents that are listed."""


@router.get("/agents", responses=responses(401, 403))
async def list_miner_agents(
    caller: MinerDep, services: ServicesDep, views: ViewsDep
) -> MinerAgentsResponse:
    """The caller's agents with their newest versions, and when it may submit again."""
    agents = (await views.versions.agents(caller.hotkey))[-_AGENTS:]
    newest: dict[UUID, AgentVersion] = {}
    for version in await views.versions.versions(caller.hotkey, limit=1_000):
        newest.setdefault(version.agent_id, version)
    entries = {
        agent_id: await _entry(services, views, version) for agent_id, version in newest.items()
    }
    season = await views.season()
    ends_at = cooldown_ends(season, caller.hotkey)
    can_submit = ends_at is None or services.clock() >= ends_at
    racing, selected = _racing(season, caller.hotkey), season.selected.get(caller.hotkey)
    named = await views.named(version for version in (racing, selected) if version)
    return MinerAgentsResponse(
        agents=[
            AgentPublic(
                agent_id=agent.agent_id,
                miner_hotkey=agent.hotkey,
                agent_name=agent.name,
                created_at=agent.created_at,
                latest_version=entries.get(agent.agent_id),
            )
            for agent in agents
        ],
        can_submit=can_submit and not services.settings.submissions_paused,
        next_allowed_at=None if can_submit else ends_at,
        racing_agent_version_id=version_uuid(racing) if racing else None,
        racing_agent_id=named[racing].agent_id if racing in named else None,
        selected_agent_version_id=version_uuid(selected) if selected else None,
        selected_agent_id=named[selected].agent_id if selected in named else None,
    )


@router.get("/agents/{agent_id}/versions", responses=responses(401, 403, 404))
async def list_agent_versions(
    caller: MinerDep,
    services: ServicesDep,
    views: ViewsDep,
    agent_id: UUID,
    limit: Limit = 100,
    offset: Offset = 0,
) -> list[AgentVersionHistoryEntry]:
    """The versions of one of the caller's agents, the newest first."""
    versions = await views.versions.versions(
        caller.hotkey, agent_id=agent_id, limit=limit, offset=offset
    )
    if not versions and not offset:
        raise Refusal(Code.AGENT_NOT_FOUND, "this hotkey has no such agent")
    return [await _entry(services, views, version) for version in versions]


@router.get("/agent-versions/{agent_version_id}", responses=responses(401, 403, 404))
async def get_owned_agent_version_status(
    caller: MinerDep, services: ServicesDep, views: ViewsDep, agent_version_id: UUID
) -> AgentVersionStatus:
    """How far one of the caller's versions is."""
    return await status_of(
        services, views, await owned_version(views, caller.hotkey, agent_version_id)
    )


@router.get("/agent-versions/{agent_version_id}/problems", responses=responses(401, 403, 404))
async def list_owned_problems(
    caller: MinerDep,
    services: ServicesDep,
    views: ViewsDep,
    agent_version_id: UUID,
    evaluation: Annotated[UUID | None, Query()] = None,
) -> list[OwnProblems]:
    """How each problem of the caller's version went, by validator, without its text.

    Scores and failures stand here when an evaluation is over.
    """
    version = await owned_version(views, caller.hotkey, agent_version_id)
    found = await services.queue.evaluations_of(version.version_id)
    found = [e for e in found if evaluation in (None, e.evaluation.evaluation_id)]
    ids = [one.evaluation.evaluation_id for one in found]
    results: dict[UUID, list[ProblemResult]] = {}
    for result in await problem_results(services.engine, ids):
        results.setdefault(result.evaluation_id, []).append(result)
    return [_problems(one, results.get(one.evaluation.evaluation_id, [])) for one in found]


@router.put("/race-selection", responses=responses(401, 403, 409), status_code=204)
async def set_race_selection(
    caller: MinerDep, services: ServicesDep, views: ViewsDep, body: MinerRaceSelectionRequest
) -> Response:
    """Let this version race, once it has qualified, and none of the caller's others."""
    version = await views.versions.version(body.agent_version_id)
    if version is None or version.hotkey != caller.hotkey:
        raise Refusal(Code.NOT_VERSION_OWNER, "this hotkey has no such agent version")
    views.selections.check(caller.hotkey, "hotkey's selections")
    await _select(services, SelectRacer(caller.hotkey, str(version.version_id)))
    return Response(status_code=204)


@router.delete("/race-selection", responses=responses(401, 403, 404, 409), status_code=204)
async def clear_race_selection(
    caller: MinerDep, services: ServicesDep, views: ViewsDep
) -> Response:
    """Let the caller's latest qualified version race again."""
    views.selections.check(caller.hotkey, "hotkey's selections")
    await _select(services, SelectRacer(caller.hotkey, None))
    return Response(status_code=204)


_SEASON = {
    "season.race_locked": Code.RACE_LOCKED,
    "season.no_selection": Code.NO_SELECTION,
    "season.not_owner": Code.NOT_VERSION_OWNER,
    "season.unknown_agent": Code.NOT_VERSION_OWNER,
}


async def _select(services: Services, order: SelectRacer) -> None:
    loaded = await load_season(services.journal)
    now, last = services.clock(), loaded.season.now
    try:
        await command(services.journal, loaded, order, now if last is None else max(now, last))
    except SeasonError as error:
        raise Refusal(_SEASON.get(error.code, Code.VALIDATION_ERROR), error.message) from None


async def _entry(
    services: Services, views: Views, version: AgentVersion
) -> AgentVersionHistoryEntry:
    name = str(version.version_id)
    evaluations = await services.queue.evaluations_of(version.version_id)
    season = await views.season()
    entrant = season.entrants.get(name)
    why, selected = not_selectable(season, entrant), season.selected.get(version.hotkey) == name
    out = out_of(season, name)
    return AgentVersionHistoryEntry(
        agent_version_id=version.version_id,
        version_number=version.number,
        submitted_at=version.submitted_at,
        state=version_state(entrant, evaluations),
        eliminated_at=out.at,
        eliminated_in_race_number=out.race_number,
        final_score=entrant.qualifying if entrant else None,
        is_selected_for_race=selected,
        selection_fallback_reason=why if selected else None,
        is_pinnable=why is None,
        pin_disabled_reason=why,
    )


def _racing(season: Season, hotkey: str) -> str | None:
    """The caller's version in the race that runs, or awaits its draw."""
    for race in (season.running, season.open):
        for version in race.racers if race is not None else ():
            if season.entrants[version].hotkey == hotkey:
                return version
    return None


def _problems(view: EvaluationView, results: list[ProblemResult]) -> OwnProblems:
    over = view.ended_at is not None
    return OwnProblems(
        agent_version_id=view.evaluation.version,
        evaluation_id=view.evaluation.evaluation_id,
        phase=view.evaluation.kind.value,
        over=over,
        problems=[
            OwnProblem(
                problem_id=UUID(one.problem_id),
                category=one.bucket,
                validator_hotkey=one.validator,
                status="DONE" if not over else "SUCCESS" if one.success else "FAILED",
                success=one.success if over else None,
                score=one.score if over else None,
                reasoning_quality=one.quality if over else None,
                failure=one.failure if over else None,
                execution_time=one.wall_s if over else None,
            )
            for one in results
        ],
    )
