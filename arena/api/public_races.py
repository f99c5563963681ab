"""`/v1/public/races`: what was, is and will be raced, with what proves the draw fair."""

from __future__ import annotations

from datetime import timedelta
from statistics import fmean, stdev
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request
from sqlalchemy import select

from arena.api.errors import Code, Refusal, responses
from arena.api.public_race_models import (
    RaceCurrentResponse,
    RaceDetailResponse,
    RaceHistoryResponse,
    RacePublic,
    RaceQualifierPublic,
    RaceSeedCommitmentResponse,
    RaceValidatorVarianceResponse,
)
from arena.api.public_scores import validator_scores
from arena.api.public_suites import bank_suite
from arena.api.public_variance import spread
from arena.api.public_views import (
    Limit,
    Offset,
    RaceView,
    SuiteId,
    Views,
    ViewsDep,
    current_race,
    races_of,
    version_uuid,
)
from arena.api.services import ServicesDep
from arena.api.version_states import elimination
from arena.db import schema
from arena.season.beacon import QUICKNET_CHAIN, Source, quicknet_time
from arena.season.record import DrawRecord
from arena.season.results import RaceResult
from arena.season.standings import race_standings
from arena.season.state import Race, Season, VoidRace
from arena.submissions.store import AgentVersion

router = APIRouter(prefix="/v1/public/races", tags=["public"])

_TOP = 50
_LONG_S = 3_600.0
"""How long what cannot change any more is kept, in seconds."""


@router.get("/current", responses=responses())
async def get_current_race(services: ServicesDep, views: ViewsDep) -> RaceCurrentResponse:
    """The race that runs, else the one in qualifying with those that wait for it."""
    season = await views.season()
    race = current_race(season)
    if race is None:
        return RaceCurrentResponse(race=None, qualifiers=[])
    view = next(one for one in races_of(season) if one.name == race.race_id)
    named = await views.named(_members(season, view))
    return RaceCurrentResponse(
        race=_race(season, view, named), qualifiers=_qualifiers(season, view, named)
    )


@router.get("/history", responses=responses())
async def get_race_history(
    views: ViewsDep, suite_id: SuiteId = None, limit: Limit = 20, offset: Offset = 0
) -> RaceHistoryResponse:
    """The races that are over, void ones among them, the newest first."""
    season = await views.season()
    over = [race for race in reversed(races_of(season)) if not race.open]
    page = over[offset : offset + limit]
    winners = [
        one.race.title.champion
        for one in page
        if isinstance(one.race, RaceResult) and one.race.title.champion
    ]
    named = await views.named(winners)
    return RaceHistoryResponse(
        total=len(over),
        limit=limit,
        offset=offset,
        races=[_race(season, view, named) for view in page],
    )


@router.get("/{race_id}", responses=responses(404))
async def get_race_detail(views: ViewsDep, race_id: UUID) -> RaceDetailResponse:
    """A race with its agents. While it runs nobody's score stands here."""
    season = await views.season()
    view = _known(season, race_id)
    named = await views.named(_members(season, view))
    return RaceDetailResponse(
        race=_race(season, view, named), qualifiers=_qualifiers(season, view, named)
    )


@router.get("/{race_id}/seed-commitment", responses=responses(404))
async def get_race_seed_commitment(
    services: ServicesDep, views: ViewsDep, race_id: UUID, request: Request
) -> RaceSeedCommitmentResponse:
    """What the draw was bound to before it, and what it was made with after it."""
    record = await _record(views, race_id)
    terms, ticket = record.commitment, record.commitment.ticket
    reveal = record.reveal
    drand = ticket.source is not Source.CHAIN
    base = (services.settings.public_url or str(request.base_url)).rstrip("/")
    return RaceSeedCommitmentResponse(
        race_id=race_id,
        scheme=f"sn15-arena/draw/1 {ticket.source.value}",
        secret_sha256=terms.secret_hash,
        drand_chain_hash=QUICKNET_CHAIN if ticket.source is Source.DRAND else "",
        drand_offset_seconds=terms.beacon_delay,
        drand_round=ticket.number,
        drand_round_time=(
            quicknet_time(ticket.number)
            if drand
            else terms.closes_at + timedelta(seconds=terms.beacon_delay)
        ),
        committed_at=terms.committed_at,
        revealed=reveal is not None,
        drand_signature=reveal.beacon.signature if reveal else None,
        drand_randomness=reveal.beacon.value if reveal else None,
        secret=reveal.secret if reveal else None,
        world_seed=reveal.seed if reveal else None,
        commitment_sha256=terms.hash,
        record_url=f"{base}/v1/public/races/{race_id}/draw-record",
    )


@router.get("/{race_id}/draw-record", responses=responses(404))
async def get_race_draw_record(views: ViewsDep, race_id: UUID) -> dict[str, Any]:
    """Everything with which anyone can make the draw again: `arena race verify FILE`.

    Problems stand in it by salted hashes, and are opened when the race is over.
    """
    return dict((await _record(views, race_id)).to_json())


@router.get("/{race_id}/validator-variance", responses=responses(404))
async def get_race_validator_variance(
    services: ServicesDep, views: ViewsDep, race_id: UUID
) -> RaceValidatorVarianceResponse:
    """How far apart validators were on the same agents; nothing before the race is over."""
    view = _known(await views.season(), race_id)
    if view.open:
        return RaceValidatorVarianceResponse(
            race_id=race_id, race_number=view.number, n_pairs=0, spread_buckets=[], validators=[]
        )

    async def make() -> RaceValidatorVarianceResponse:
        table = schema.evaluations.c
        query = select(table.evaluation_id).where(table.season_race == view.name)
        async with services.engine.connect() as connection:
            evaluations = list(await connection.scalars(query))
        scores = await validator_scores(services.engine, evaluations)
        return spread(race_id, view.number, scores)

    return await views.kept(("variance", race_id), make, _LONG_S)


async def _record(views: Views, race_id: UUID) -> DrawRecord:
    return await views.draw_record(_known(await views.season(), race_id).name)


def _known(season: Season, race_id: UUID) -> RaceView:
    for view in races_of(season):
        if view.race_id == race_id:
            return view
    raise Refusal(Code.RACE_NOT_FOUND, "there is no such race")


def _members(season: Season, view: RaceView) -> list[str]:
    race = view.race
    if isinstance(race, RaceResult):
        return [racer.version for racer in race.racers]
    if isinstance(race, VoidRace):
        return []
    return list(race.racers) or [*season.waiting, *([season.champion] if season.champion else [])]


def _race(season: Season, view: RaceView, named: dict[str, AgentVersion]) -> RacePublic:
    race = view.race
    if isinstance(race, RaceResult):
        return _completed(season, view, race, named)
    if isinstance(race, VoidRace):
        return RacePublic(
            race_id=view.race_id,
            name=view.name,
            suite_id=bank_suite(race.at).suite_id,
            status=view.status,
            race_number=view.number,
            race_completed_at=race.at,
            void_reason=race.reason.value,
        )
    return RacePublic(
        race_id=view.race_id,
        name=view.name,
        suite_id=bank_suite(race.closes_at).suite_id,
        status=view.status,
        race_number=view.number,
        qualifying_closes_at=race.closes_at,
        qualifying_threshold=race.rules.qualifying_threshold,
        qualifier_count=len(race.racers) or len(season.waiting),
        created_at=race.commitment.committed_at,
        projected_completion_at=race.deadline,
    )


def _completed(
    season: Season, view: RaceView, race: RaceResult, named: dict[str, AgentVersion]
) -> RacePublic:
    scores = {r.version: r.score for r in race.racers if r.score is not None}
    best = sorted(scores.values(), reverse=True)[:_TOP]
    winner = race.title.champion
    return RacePublic(
        race_id=view.race_id,
        name=view.name,
        suite_id=bank_suite(race.closes_at).suite_id,
        status=view.status,
        race_number=view.number,
        qualifying_closes_at=race.closes_at,
        race_completed_at=race.closed_at,
        winner_agent_version_id=version_uuid(winner) if winner else None,
        winner_score=scores.get(winner) if winner else None,
        winner_agent_name=named[winner].name if winner in named else None,
        qualifier_count=len(race.racers),
        scored_count=len(scores),
        top50_mean=fmean(best) if best else None,
        top50_std=stdev(best) if len(best) > 1 else None,
    )


def _qualifiers(
    season: Season, view: RaceView, named: dict[str, AgentVersion]
) -> list[RaceQualifierPublic]:
    ranks: dict[str, tuple[int | None, float | None]] = {}
    champion = view.race.champion if isinstance(view.race, Race) else None
    if isinstance(view.race, RaceResult):
        rows = race_standings(season, view.race)
        ranks = {row.version: (row.rank, row.score) for row in rows}
    elif champion is None:
        champion = season.champion
    found = []
    for version in dict.fromkeys(_members(season, view)):
        entrant, known = season.entrants[version], named.get(version)
        rank, score = ranks.get(version, (None, None))
        out = elimination(season, version)
        found.append(
            RaceQualifierPublic(
                agent_version_id=version_uuid(version),
                qualification_type="champion" if version == champion else "qualified",
                agent_name=known.name if known else None,
                miner_hotkey=entrant.hotkey,
                version_number=known.number if known else 0,
                qualifying_score=entrant.qualifying,
                race_score=score,
                race_rank=rank,
                eliminated_at=out.at if out else None,
                is_discarded=entrant.disqualified is not None,
            )
        )
    return found
