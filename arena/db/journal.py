"""Journals in Postgres: streams of events behind `arena.journal.Journal`.

Whoever writes says behind which entry it decided. The primary key is what settles two
writers that decided on the same state: the second one waits for the first and is then
refused, whole, with JournalConflictError.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import cast

from sqlalchemy import func, insert, select
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from arena.db import schema
from arena.db.engine import database_error
from arena.exceptions import JournalAheadError, JournalConflictError
from arena.journal import Entry, Event
from arena.runs.canonical import canonical

_BATCH = 1_000
"""Rows of one INSERT: a large import is not to pass the database's time for an answer."""

_UNIQUE_VIOLATION = "23505"

AHEAD = timedelta(minutes=10)
"""How far a host's clock may run ahead of the database's."""


class PostgresJournal:
    """A journal that outlives its process; its table refuses UPDATE, DELETE and TRUNCATE.

    Its methods raise DatabaseUnreachableError or DatabaseError when the database does.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def append(self, stream: str, events: Sequence[Event], *, after: int) -> list[Entry]:
        """As `Journal.append`. Raises ValueError for an event whose time has no zone, and
        JournalAheadError for one that lies in the database's future."""
        # In a thread: a suite is megabytes of canonical JSON.
        rows = await asyncio.to_thread(_rows, stream, events, after)
        with self._told():
            await self._insert(stream, rows, after)
        return [Entry(stream, after + i, event) for i, event in enumerate(events, 1)]

    async def read(self, stream: str, *, after: int = 0) -> list[Entry]:
        """As `Journal.read`. Times come back in UTC."""
        table = schema.journal.c
        query = (
            select(table.sequence, table.kind, table.at, table.data)
            .where(table.stream == stream, table.sequence > after)
            .order_by(table.sequence)
        )
        with self._told():
            async with self._engine.connect() as connection:
                rows = (await connection.execute(query)).all()
        return await asyncio.to_thread(
            lambda: [
                Entry(stream, n, Event(kind, at.astimezone(UTC), json.loads(data)))
                for n, kind, at, data in rows
            ]
        )

    async def _insert(self, stream: str, rows: Sequence[dict[str, object]], after: int) -> None:
        async with self._engine.begin() as connection:
            await _insert_rows(connection, stream, rows, after)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What a driver raises, as an error of this room."""
        try:
            yield
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            where = self._engine.url.render_as_string(hide_password=True)
            raise database_error(error, where) from error


async def append_within(
    connection: AsyncConnection, stream: str, events: Sequence[Event], *, after: int
) -> None:
    """As `PostgresJournal.append`, in the caller's transaction, which is of no more use when
    this raises. Driver errors pass through."""
    await _insert_rows(connection, stream, _rows(stream, events, after), after)


async def _insert_rows(
    connection: AsyncConnection, stream: str, rows: Sequence[dict[str, object]], after: int
) -> None:
    table = schema.journal
    last = select(func.coalesce(func.max(table.c.sequence), 0)).where(table.c.stream == stream)
    latest = max((cast("datetime", row["at"]) for row in rows), default=None)
    now = cast("datetime", await connection.scalar(select(func.now())))
    if latest is not None and latest > now + AHEAD:
        # What is written cannot be taken back, and everybody would have to wait for it.
        raise JournalAheadError(
            f"{stream}: an event of {latest:%F %T %Z} lies in the future; the database's"
            f" clock says {now:%F %T %Z}",
            remedy="set this host's clock",
        )
    # Refuses a gap. What is committed between this and the INSERT meets the key.
    found = await connection.scalar(last)
    if found != after:
        raise JournalConflictError(f"{stream} has {found} entries, expected {after}")
    try:
        for start in range(0, len(rows), _BATCH):
            await connection.execute(insert(table), rows[start : start + _BATCH])
    except IntegrityError as error:
        if getattr(error.orig, "sqlstate", None) != _UNIQUE_VIOLATION:
            raise
        raise JournalConflictError(f"{stream} has gone on behind entry {after} meanwhile") from None


def _rows(stream: str, events: Sequence[Event], after: int) -> list[dict[str, object]]:
    if any(event.at.tzinfo is None for event in events):
        raise ValueError("an event's time needs a time zone")
    return [
        {
            "stream": stream,
            "sequence": after + i,
            "kind": event.kind,
            "at": event.at,
            "data": canonical(event.data),
        }
        for i, event in enumerate(events, 1)
    ]
