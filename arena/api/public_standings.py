"""`/v1/public/leaderboard`, `/top` and what follows from them: the season's standings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query

from arena.api.errors import responses
from arena.api.public_race_models import (
    LeaderboardEntry,
    LeaderboardResponse,
    TopAgentResponse,
    TopHistoryEntry,
    TopHistoryResponse,
    TopMinerPayoutResponse,
)
from arena.api.public_suites import bank_suite
from arena.api.public_views import Limit, Offset, SuiteId, ViewsDep, version_uuid
from arena.api.services import ServicesDep
from arena.api.version_states import elimination, race_score
from arena.season.promotion import margin, required_score
from arena.season.standings import all_time, paid_race
from arena.season.state import Season
from arena.submissions.store import AgentVersion
from scoring.weights import ranking

router = APIRouter(prefix="/v1/public", tags=["public"])

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Row:
    rank: int
    version: str
    score: float


@router.get("/leaderboard", responses=responses())
async def get_leaderboard(
    services: ServicesDep,
    views: ViewsDep,
    suite_id: SuiteId = None,
    score_type: Literal["qualifying", "race"] = "qualifying",
    limit: Limit = 100,
    offset: Offset = 0,
    q: Annotated[str | None, Query(max_length=100)] = None,
) -> LeaderboardResponse:
    """Agents by qualifying score, or by the mean of their race scores. The disqualified stand
    in no list. `q` is looked for in names and hotkeys. There is one board for all sets."""
    now = services.clock()
    wanted = await views.versions.search(q) if q else None
    season = await views.season()
    rows = _qualifying(season) if score_type == "qualifying" else _raced(season)
    if wanted is not None:
        rows = [row for row in rows if version_uuid(row.version) in wanted]
    page = rows[offset : offset + limit]
    miners = {season.entrants[row.version].hotkey for row in rows}
    since = now - _DAY
    recent = sum(entrant.submitted_at > since for entrant in season.entrants.values())
    threshold = _challenge(season, now)
    named = await views.named(row.version for row in page)
    entries = [_entry(season, row, named[row.version]) for row in page if row.version in named]
    return LeaderboardResponse(
        total=len(rows),
        limit=limit,
        offset=offset,
        suite=bank_suite(now),
        entries=entries,
        unique_miners=len(miners),
        agents_submitted_24h=recent,
        challenge_threshold=threshold[0] if threshold else None,
    )


@router.get("/top", responses=responses())
async def get_top_agent(services: ServicesDep, views: ViewsDep) -> TopAgentResponse:
    """Who holds the title, and which score takes it now."""
    season, now = await views.season(), services.clock()
    suite, champion = bank_suite(now).suite_id, season.champion
    if champion is None:
        return TopAgentResponse(suite_id=suite, computed_at=now)
    threshold = _challenge(season, now)
    rules = season.rules
    return TopAgentResponse(
        suite_id=suite,
        computed_at=now,
        top_agent_version_id=version_uuid(champion),
        top_miner_hotkey=season.entrants[champion].hotkey,
        top_score=race_score(season, champion),
        policy={
            "margin_initial": rules.margin_initial,
            "margin_floor": rules.margin_floor,
            "margin_half_life_days": rules.margin_half_life_days,
        },
        challenge_threshold=threshold[0] if threshold else None,
        margin=threshold[1] if threshold else None,
    )


@router.get("/top/history", responses=responses())
async def get_top_history(
    services: ServicesDep, views: ViewsDep, suite_id: SuiteId = None, limit: Limit = 100
) -> TopHistoryResponse:
    """The line of champions, the newest first. `final_score` is that of the race it was won in."""
    season = await views.season()
    current = season.title
    titles = list(reversed(season.titles))[:limit]
    scores = {
        (result.race_id, racer.version): racer.score
        for result in season.results
        for racer in result.racers
    }
    hotkeys = {title.version: season.entrants[title.version].hotkey for title in titles}
    named = await views.named(title.version for title in titles)
    suite = bank_suite(services.clock()).suite_id
    return TopHistoryResponse(
        suite_id=suite,
        entries=[
            TopHistoryEntry(
                agent_version_id=version_uuid(title.version),
                agent_name=_name(named, title.version),
                miner_hotkey=hotkeys[title.version],
                version_number=_number(named, title.version),
                final_score=scores.get((title.race_id, title.version)) or 0.0,
                top_at=title.won_at,
                is_current_top=title is current,
                was_top=title is not current,
                suite_id=suite,
            )
            for title in titles
        ],
    )


@router.get("/top-miner-payout", responses=responses())
async def get_top_miner_payout(services: ServicesDep, views: ViewsDep) -> TopMinerPayoutResponse:
    """Who is first in the weights. What that is worth is the chain's to say: no amounts."""
    paid = paid_race(await views.season())
    if paid is None:
        return TopMinerPayoutResponse(as_of=services.clock())
    first = ranking(paid.finishers, paid.champion)[0]
    named = await views.named([first.agent_version_id])
    return TopMinerPayoutResponse(
        as_of=services.clock(),
        miner_hotkey=first.miner_hotkey,
        agent_name=_name(named, first.agent_version_id) or None,
    )


def _qualifying(season: Season) -> list[_Row]:
    scored = sorted(
        (-entrant.qualifying, entrant.submitted_at, version)
        for version, entrant in season.entrants.items()
        if entrant.qualifying is not None and entrant.disqualified is None
    )
    return [_Row(rank, version, -score) for rank, (score, _, version) in enumerate(scored, 1)]


def _raced(season: Season) -> list[_Row]:
    return [
        _Row(row.rank, row.version, row.score)
        for row in all_time(season)
        if row.rank is not None and row.score is not None
    ]


def _challenge(season: Season, now: datetime) -> tuple[float, float] | None:
    """The score that takes the title now, and the margin in it; None with no champion."""
    title = season.title
    score = race_score(season, title.version) if title is not None else None
    if title is None or score is None:
        return None
    share = margin(title.since, max(now, title.since), season.rules)
    return required_score(score, share), share


def _entry(season: Season, row: _Row, version: AgentVersion) -> LeaderboardEntry:
    entrant = season.entrants[row.version]
    won = [title.won_at for title in season.titles if title.version == row.version]
    out = elimination(season, row.version)
    return LeaderboardEntry(
        rank=row.rank,
        agent_version_id=version.version_id,
        agent_name=version.name,
        miner_hotkey=version.hotkey,
        version_number=version.number,
        final_score=row.score,
        race_score=race_score(season, row.version),
        is_discarded=entrant.qualifying is not None and not entrant.qualified,
        is_current_top=season.champion == row.version,
        was_top=bool(won) and season.champion != row.version,
        top_at=won[-1] if won else None,
        is_active_qualifier=row.version in season.waiting,
        outranked_by_agent_version_id=_outranked(season, row.version),
        eliminated_at=out.at if out else None,
    )


def _outranked(season: Season, version: str) -> UUID | None:
    """The version of the same hotkey that races instead of a waiting one."""
    hotkey = season.entrants[version].hotkey
    waiting = [v for v in season.waiting if season.entrants[v].hotkey == hotkey]
    if version not in waiting or len(waiting) == 1:
        return None
    selected = season.selected.get(hotkey)
    newest = max(waiting, key=lambda v: (season.entrants[v].submitted_at, v))
    first = selected if selected in waiting else newest
    return None if first == version or first is None else version_uuid(first)


def _name(named: dict[str, AgentVersion], version: str) -> str:
    return named[version].name if version in named else ""


def _number(named: dict[str, AgentVersion], version: str) -> int:
    return named[version].number if version in named else 0
