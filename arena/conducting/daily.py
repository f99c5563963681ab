"""The end of a day (UTC): its log is closed, the root goes on chain, its corpus is written."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from arena.conducting.parts import ExportState, Parts
from arena.conducting.work import Work
from arena.db.schema import evaluations, log_heads, seals
from arena.exceptions import ChainRefusedError, ChainUnavailableError
from arena.records.heads import end_of
from arena.records.log import TransparencyLog
from arena.runs.seal import BlockRef

STEP = "log"
EXPORT = "export"
EXPORT_DAYS = 7
"""How far back a day that was not exported is made up for."""


async def close_log(parts: Parts, work: Work) -> None:
    """Close every day that is over, in order, from the first that has seals."""
    last, first_seal = await _extent(parts.engine)
    if last is None and first_seal is None:
        return
    log = TransparencyLog(parts.engine)
    day = last + timedelta(days=1) if last is not None else _date(first_seal)
    while work.now >= end_of(day) + parts.settings.log_delay:
        closed = await log.close(day, parts.signer, now=work.now, block=await _block(parts))
        work.did(STEP, "log.closed", f"{day}", f"{closed.entered} seals")
        day += timedelta(days=1)


async def commit_root(parts: Parts, work: Work) -> None:
    """Put the last head on chain, unless it is there. Raises what the chain raises."""
    if parts.chain is None:
        return
    stored = await TransparencyLog(parts.engine).commit(parts.chain)
    if stored is not None:
        block = f"block {stored.commitment.block}"
        work.did(STEP, "root.committed", f"{stored.day}", block)


async def export(parts: Parts, work: Work) -> None:
    """Bring the exports of the last closed days about, oldest first, one at a time."""
    if parts.export is None:
        return
    since = work.now.astimezone(UTC).date() - timedelta(days=EXPORT_DAYS)
    query = select(log_heads.c.day).where(log_heads.c.day >= since).order_by(log_heads.c.day)
    async with parts.engine.connect() as connection:
        days = list(await connection.scalars(query))
    for day in days:
        if await parts.export.advance(day) is ExportState.RUNNING:
            return


async def _extent(engine: AsyncEngine) -> tuple[date | None, datetime | None]:
    """The last closed day, and when the first seal of all was made.

    A seal's time is its validator's word, and may be of 1970: no day is closed for it before the
    first evaluation was opened, which the first day's head covers all the same.
    """
    last = select(func.max(log_heads.c.day)).scalar_subquery()
    said = select(func.min(seals.c.sealed_at)).scalar_subquery()
    opened = select(func.min(evaluations.c.opened_at)).scalar_subquery()
    first = func.greatest(said, opened)
    async with engine.connect() as connection:
        row = (await connection.execute(select(last.label("last"), first.label("first")))).one()
    return row.last, row.first


async def _block(parts: Parts) -> BlockRef | None:
    """The last block, for the head to name. A chain that is away does not hold up the log."""
    if parts.chain is None:
        return None
    try:
        return (await parts.chain.block()).ref
    except (ChainUnavailableError, ChainRefusedError):
        return None


def _date(moment: datetime | None) -> date:
    assert moment is not None
    return moment.astimezone(UTC).date()
