"""Signs of life of the processes beside the API, in Postgres: `/health/deep` reads them."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from arena.db.schema import process_ticks

CONDUCTOR = "conductor"
"""The calendar's driver."""


async def tick(engine: AsyncEngine, process: str, now: datetime) -> None:
    """Say that a process lives. Driver errors pass through."""
    row = insert(process_ticks).values(process=process, at=now)
    later = row.on_conflict_do_update(index_elements=["process"], set_={"at": row.excluded.at})
    async with engine.begin() as connection:
        await connection.execute(later)


async def last_tick(connection: AsyncConnection, process: str) -> datetime | None:
    """When a process was last heard of; None when it never was."""
    query = select(process_ticks.c.at).where(process_ticks.c.process == process)
    at = await connection.scalar(query)
    return None if at is None else at.astimezone(UTC)


async def last_ticks(connection: AsyncConnection, prefix: str) -> dict[str, datetime]:
    """When each process whose name begins so was last heard of."""
    mine = process_ticks.c.process.startswith(prefix, autoescape=True)
    rows = await connection.execute(select(process_ticks).where(mine))
    return {row.process: row.at.astimezone(UTC) for row in rows}
