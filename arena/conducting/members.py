"""Who takes part: validators join and leave, and miners that left the subnet are out.

A validator takes part that has a permit and was heard of of late: at a run, or asking for work
when there was none for it, as where others were quicker. It leaves with its permit, or when work
has waited and nothing was heard of it; then it comes back when it is heard of again. Silence
while there is no work says nothing: otherwise a day without submissions would end the season.
"""

from __future__ import annotations

from datetime import UTC, datetime

import structlog
from sqlalchemy import and_, exists, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from arena.api.metagraph import Peer
from arena.api.presence import last_asked
from arena.conducting.calendar import Calendar
from arena.conducting.parts import Parts
from arena.conducting.work import Work
from arena.db import schema
from arena.exceptions import ChainUnavailableError
from arena.season.commands import Deregister, JoinValidator, LeaveValidator
from arena.work.types import EvaluationState

_log = structlog.get_logger(__name__)

STEP = "members"
MANY = 3
MANY_BLOCKS = 1_800
"""When more than so many hotkeys, and more than half of them all, are missing at once, it is more
likely the node: they are out after six hours of it, since nobody who is out comes back."""


class Members:
    """Compares the season with the metagraph. Remembers who was missing at the last reading:
    what a chain's node shows once may be its error, and who is out does not come back."""

    def __init__(self) -> None:
        self._missing: dict[str, int] = {}
        """Hotkeys that a metagraph did not have, and its block."""

    async def step(self, parts: Parts, calendar: Calendar, work: Work) -> None:
        """Join, leave, deregister. Raises ChainUnavailableError, and for an empty metagraph."""
        if parts.chain is None:
            return
        subnet = await parts.chain.subnet()
        peers = {peer.hotkey: peer for peer in subnet.peers}
        if not peers:
            raise ChainUnavailableError("the chain shows a subnet without neurons")
        await self._deregister(peers, subnet.block, calendar, work)
        able = {hotkey for hotkey, peer in peers.items() if parts.validates(peer)}
        await _join(able, parts, calendar, work)
        await _leave(able, parts, calendar, work)

    async def _deregister(
        self, peers: dict[str, Peer], block: int, calendar: Calendar, work: Work
    ) -> None:
        entered = {e.hotkey for e in calendar.season.entrants.values() if not e.left}
        gone = sorted(entered - peers.keys())
        wait = MANY_BLOCKS if len(gone) > max(MANY, len(entered) // 2) else 1
        before, self._missing = self._missing, {}
        if wait > 1 and not before:
            _log.error("the metagraph misses most miners: nobody is out yet", missing=len(gone))
        for hotkey in gone:
            first = self._missing[hotkey] = before.get(hotkey, block)
            if first + wait <= block:
                with work.trying(STEP, hotkey):
                    at = calendar.moment(work.now)
                    if await calendar.decide(Deregister(hotkey), at):
                        work.did(STEP, "hotkey.deregistered", hotkey)


async def _join(able: set[str], parts: Parts, calendar: Calendar, work: Work) -> None:
    strangers = able - calendar.season.validators.keys()
    if not strangers:
        return
    heard = await _heard(parts.engine)
    gone = calendar.season.gone
    for hotkey in sorted(strangers & heard.keys()):
        if heard[hotkey] <= work.now - parts.settings.presence:
            continue
        if hotkey in gone and heard[hotkey] < gone[hotkey]:
            continue
        with work.trying(STEP, hotkey):
            if await calendar.decide(JoinValidator(hotkey), calendar.moment(work.now)):
                work.did(STEP, "validator.joined", hotkey)


async def _leave(able: set[str], parts: Parts, calendar: Calendar, work: Work) -> None:
    since = work.now - parts.settings.silence
    validators = sorted(calendar.season.validators)
    silent: set[str] = set()
    if validators and await _work_waits(parts.engine, since):
        heard = await _heard(parts.engine)
        joined = calendar.season.validators
        silent = {v for v in validators if max(heard.get(v, joined[v]), joined[v]) <= since}
    for hotkey in validators:
        if hotkey in able and hotkey not in silent:
            continue
        why = "silent while work waited" if hotkey in able else "not permitted to validate"
        with work.trying(STEP, hotkey):
            if await calendar.decide(LeaveValidator(hotkey), calendar.moment(work.now)):
                work.did(STEP, "validator.left", hotkey, why)


async def _heard(engine: AsyncEngine) -> dict[str, datetime]:
    """When each validator was last heard of: at a run, or asking for one in vain."""
    runs = schema.evaluation_runs.c
    query = select(runs.validator, func.max(runs.heard_at).label("at")).group_by(runs.validator)
    async with engine.connect() as connection:
        heard = await last_asked(connection)
        for row in await connection.execute(query):
            at = row.at.astimezone(UTC)
            heard[row.validator] = max(heard.get(row.validator, at), at)
    return heard


async def _work_waits(engine: AsyncEngine, since: datetime) -> bool:
    """Whether an evaluation has waited for a validator since then."""
    table = schema.evaluations.c
    waits = and_(
        table.state == EvaluationState.OPEN, table.taken < table.needed, table.opened_at <= since
    )
    async with engine.connect() as connection:
        return bool(await connection.scalar(select(exists().where(waits))))
