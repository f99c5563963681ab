"""Journals in Postgres behave as the one in memory, also under writers that race."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from arena.db.engine import Database
from arena.db.journal import AHEAD, PostgresJournal
from arena.exceptions import (
    DatabaseUnreachableError,
    JournalAheadError,
    JournalConflictError,
)
from arena.journal import Entry, Event, Journal, MemoryJournal
from scoring.types import JsonObject

pytestmark = pytest.mark.database

NOON = datetime(2026, 1, 2, 12, 0, 0, 123456, tzinfo=UTC)


def event(number: int, **data: JsonObject) -> Event:
    return Event("thing.done", NOON + timedelta(seconds=number), {"number": number, **data})


@pytest.fixture(params=["memory", "postgres"])
def journal(request: pytest.FixtureRequest, database: Database) -> Journal:
    """Each kind in turn: what holds for one holds for the other."""
    return MemoryJournal() if request.param == "memory" else PostgresJournal(database.engine)


async def test_entries_come_back_in_order_and_behind_a_place(journal: Journal) -> None:
    events = [event(i) for i in range(5)]
    assert await journal.append("a", events[:2], after=0) == [
        Entry("a", i + 1, events[i]) for i in range(2)
    ]
    await journal.append("a", events[2:], after=2)
    await journal.append("b", events[:1], after=0)
    assert await journal.read("a") == [Entry("a", i + 1, e) for i, e in enumerate(events)]
    assert [entry.sequence for entry in await journal.read("a", after=3)] == [4, 5]
    assert await journal.read("unknown") == []


@pytest.mark.parametrize("after", [0, 1, 3, 9])
async def test_a_place_that_is_not_the_end_is_a_conflict_and_writes_nothing(
    journal: Journal, after: int
) -> None:
    await journal.append("a", [event(1), event(2)], after=0)
    with pytest.raises(JournalConflictError):
        await journal.append("a", [event(3)], after=after)
    with pytest.raises(JournalConflictError):
        await journal.append("a", [], after=after)
    assert len(await journal.read("a")) == 2


async def test_hostile_text_large_batches_and_other_time_zones_survive(
    database: Database,
) -> None:
    journal = PostgresJournal(database.engine)
    manila = timezone(timedelta(hours=8))
    data: JsonObject = {
        "text": "\0 ' ; DROP TABLE journal \u2028 日本",
        "price": 12.5,
        "none": None,
    }
    events = [Event("k", NOON.astimezone(manila), data)] + [event(i) for i in range(2_500)]
    await journal.append("a", events, after=0)
    found = await journal.read("a")
    assert len(found) == 2_501
    assert found[0].event == Event("k", NOON, data)
    assert found[0].event.at.utcoffset() == timedelta(0)


async def test_a_time_without_a_zone_is_refused(database: Database) -> None:
    naive = Event("k", NOON.replace(tzinfo=None), {})
    with pytest.raises(ValueError, match="time zone"):
        await PostgresJournal(database.engine).append("a", [naive], after=0)


async def test_a_clock_that_runs_ahead_writes_nothing_that_others_would_wait_for(
    database: Database,
) -> None:
    journal = PostgresJournal(database.engine)
    async with database.engine.connect() as connection:
        now = (await connection.execute(select(func.now()))).scalar_one()
    ahead = Event("k", now + AHEAD + timedelta(minutes=1), {})
    with pytest.raises(JournalAheadError, match="lies in the future"):
        await journal.append("s", [Event("k", NOON, {}), ahead], after=0)
    assert await journal.read("s") == []
    await journal.append("s", [Event("k", now + AHEAD / 2, {})], after=0)


async def test_of_writers_at_once_one_wins_and_the_others_are_told(database: Database) -> None:
    journal = PostgresJournal(database.engine)

    async def write(writer: int) -> bool:
        events = [event(writer * 10 + i) for i in range(3)]
        try:
            await journal.append("a", events, after=0)
        except JournalConflictError:
            return False
        return True

    won = await asyncio.gather(*(write(writer) for writer in range(8)))
    assert sum(won) == 1
    found = [entry.event.data["number"] for entry in await journal.read("a")]
    winner = won.index(True)
    assert found == [winner * 10, winner * 10 + 1, winner * 10 + 2]


async def test_a_second_writer_waits_for_the_first_and_is_then_refused(
    database: Database,
) -> None:
    """Both saw the stream end at 0: only the key can tell them apart."""
    journal = PostgresJournal(database.engine)
    columns = "stream, sequence, kind, at, data"
    inserts = f"INSERT INTO journal ({columns}) VALUES ('a', 1, 'k', now(), '{{}}')"
    async with database.engine.connect() as first:
        await first.exec_driver_sql(inserts)
        second = asyncio.create_task(journal.append("a", [event(1)], after=0))
        async with database.engine.connect() as onlooker:
            while not (second.done() or await _waits_for_lock(onlooker)):
                pass
        await first.commit()
        with pytest.raises(JournalConflictError):
            await second
    assert len(await journal.read("a")) == 1


async def _waits_for_lock(connection: AsyncConnection) -> bool:
    query = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    return bool(await connection.scalar(text(query)))


async def test_a_database_that_is_gone_is_said_to_be() -> None:
    engine = create_async_engine("postgresql+asyncpg://someone:hunter2@127.0.0.1:1/arena")
    with pytest.raises(DatabaseUnreachableError) as caught:
        await PostgresJournal(engine).read("a")
    assert "hunter2" not in str(caught.value)
