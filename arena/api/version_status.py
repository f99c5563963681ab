"""How far an agent version is, put together from store, season, queue and records."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from arena.api.errors import Code, Refusal
from arena.api.public_agent_models import AgentVersionStatus
from arena.api.public_scores import suites_of
from arena.api.public_views import Views, current_race, races_of
from arena.api.services import Services
from arena.api.version_states import elimination, qualifying_of, race_score, version_state
from arena.season.embargo import code_public_at
from arena.season.state import Season
from arena.submissions.store import AgentVersion


@dataclass(frozen=True, slots=True)
class Out:
    """When a version was out, and of the how many-th race."""

    at: datetime | None = None
    race_number: int | None = None


async def known_version(views: Views, version_id: UUID) -> AgentVersion:
    """A version. Raises Refusal (404)."""
    version = await views.versions.version(version_id)
    if version is None:
        raise Refusal(Code.AGENT_VERSION_NOT_FOUND, "there is no such agent version")
    return version


async def owned_version(views: Views, hotkey: str, version_id: UUID) -> AgentVersion:
    """A hotkey's version. Raises Refusal (404): another's is told from none by nobody."""
    version = await known_version(views, version_id)
    if version.hotkey != hotkey:
        raise Refusal(Code.AGENT_VERSION_NOT_FOUND, "there is no such agent version")
    return version


def out_of(season: Season, version: str) -> Out:
    """When a version was out of the competition; empty while it is in."""
    found = elimination(season, version)
    if found is None:
        return Out()
    numbers = {race.name: race.number for race in races_of(season)}
    return Out(found.at, numbers.get(found.race_id))


async def status_of(services: Services, views: Views, version: AgentVersion) -> AgentVersionStatus:
    """How far a version is."""
    name = str(version.version_id)
    evaluations = await services.queue.evaluations_of(version.version_id)
    qualifying = qualifying_of(evaluations)
    suites = await suites_of(
        services.engine, [qualifying.evaluation.evaluation_id] if qualifying else []
    )
    season, now = await views.season(), services.clock().astimezone(UTC)
    entrant = season.entrants.get(name)
    out, race = out_of(season, name), current_race(season)
    code_at = code_public_at(season, name)
    rules = race.rules if race is not None else season.rules
    return AgentVersionStatus(
        agent_version_id=version.version_id,
        agent_name=version.name,
        miner_hotkey=version.hotkey,
        version_number=version.number,
        submitted_at=version.submitted_at,
        state=version_state(entrant, evaluations),
        eliminated_at=out.at,
        eliminated_in_race_number=out.race_number,
        suite_id=next(iter(suites.values()), None),
        required_successes=qualifying.evaluation.needed if qualifying else season.rules.validators,
        success_count=qualifying.finished if qualifying else 0,
        active_count=qualifying.held if qualifying else 0,
        is_closed=qualifying is not None and qualifying.ended_at is not None,
        final_score=entrant.qualifying if entrant else None,
        race_score=race_score(season, name),
        release_state="RELEASED" if code_at is not None and code_at <= now else "HIDDEN",
        code_available_at=code_at,
        is_active_qualifier=name in season.waiting,
        qualifying_threshold=rules.qualifying_threshold,
        disqualified_reason=entrant.disqualified if entrant else None,
        is_champion=season.champion == name,
    )
