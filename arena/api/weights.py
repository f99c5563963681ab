"""`/v1/validator/weight-salt`: the standings that weights are made of, frozen by epoch.

Every validator that asks within an epoch of the chain gets the same bytes, whenever in it:
the first to ask freezes them in the database.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import cast

from fastapi import APIRouter
from sqlalchemy import exists, func, literal, select
from sqlalchemy.dialects.postgresql import insert

from arena.api.auth import SIGNED, ValidatorDep
from arena.api.errors import responses
from arena.api.presence import is_present
from arena.api.services import Services, ServicesDep
from arena.api.validator_models import EpochStandings, WeightSaltResponse
from arena.db import schema
from arena.journal import Journal
from arena.runs.canonical import canonical
from arena.season.standings import paid_race
from arena.season.state import STREAM, Season
from arena.work import rows
from arena.work.types import RunState
from scoring.types import JsonObject
from scoring.weights import ranking

router = APIRouter(prefix="/v1/validator", tags=["validator"], dependencies=SIGNED)


@router.get("/weight-salt", responses=responses(401, 403))
async def get_weight_salt(caller: ValidatorDep, services: ServicesDep) -> WeightSaltResponse:
    """The standings of this epoch."""
    metagraph = services.metagraph.current()
    frozen = await _frozen(services, metagraph.epoch_start)
    return WeightSaltResponse(
        epoch_index=metagraph.epoch,
        eligible=await _works(services, caller.hotkey),
        epoch_standings=EpochStandings.model_validate(frozen) if frozen is not None else None,
    )


async def standings(journal: Journal, *, top_share: float) -> JsonObject | None:
    """What weights are made of now; None before the first race that somebody finished."""
    entries = await journal.read(STREAM)
    paid = paid_race(Season.folded(entry.event for entry in entries))
    if paid is None:
        return None
    ranked = ranking(paid.finishers, paid.champion)
    return {
        "top_hotkey": ranked[0].miner_hotkey,
        "t_burn": 1.0 - top_share,
        "finishers": [
            {
                "miner_hotkey": f.miner_hotkey,
                "agent_version_id": f.agent_version_id,
                "race_score": f.race_score,
            }
            for f in ranked
        ],
        "top_version": paid.champion,
        "race_id": paid.race_id,
    }


async def _frozen(services: Services, start: int) -> JsonObject | None:
    """The standings of the epoch that begins with a block, frozen by whoever asks first.

    An epoch without any is not frozen: the first race may end within it.
    """
    table = schema.epoch_standings
    query = select(table.c.content).where(table.c.epoch == start)
    async with services.engine.connect() as connection:
        content = await connection.scalar(query)
    if content is None:
        found = await standings(services.journal, top_share=services.settings.top_share)
        if found is None:
            return None
        async with services.engine.begin() as connection:
            row = {"epoch": start, "content": canonical(found)}
            await connection.execute(insert(table).values(row).on_conflict_do_nothing())
            content = await connection.scalar(query)
    return cast("JsonObject", json.loads(content or b"null"))


async def _works(services: Services, hotkey: str) -> bool:
    """Whether a validator does its part: it has completed a run of late, or asks for work and
    has done whatever it was given. The latter, since seats may be fewer than validators.

    "Of late" is before now, or, when nobody has had work since, before the last run that
    anybody completed. A day without submissions makes nobody a copier, and must not burn what
    the last race won.
    """
    runs = schema.evaluation_runs.c
    now = services.clock()
    last = select(func.max(runs.ended_at)).where(runs.state == RunState.SUCCESS).scalar_subquery()
    since = func.least(literal(now, runs.ended_at.type), last) - timedelta(
        seconds=services.settings.work_window
    )
    own = exists().where(runs.validator == hotkey)
    completed = own.where(runs.state == RunState.SUCCESS, runs.ended_at >= since)
    in_hand = own.where(rows.HELD, runs.expires_at > now)
    lost = own.where(
        runs.state.in_((RunState.FAILED, RunState.TIMED_OUT, RunState.STALE)),
        runs.ended_at >= now - timedelta(seconds=services.settings.work_window),
    )
    async with services.engine.connect() as connection:
        found = (await connection.execute(select(completed, in_hand, lost))).one()
        has_completed, has_in_hand, has_lost = found
        if has_completed or has_lost:
            return bool(has_completed)
        return bool(has_in_hand) or await is_present(connection, hotkey, now)
