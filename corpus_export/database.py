"""Records of a day from the arena's database, with their seals, verdicts and problems.

The digest of all hashes of the day names what an export is made of: stored records never
change, so an export that was killed goes on when the digest is still the same. Records that
are stored while it reads are noticed by their number, and it has to be started again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from typing import Any, TypeVar, cast

import asyncpg  # type: ignore[import-untyped]
import zstandard
from sqlalchemy import Row, Select, and_, func, select, tuple_
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from arena.db import schema
from arena.db.engine import Database, database_error, open_database
from arena.db.journal import PostgresJournal
from arena.problems.clusters import Clusters
from arena.problems.partition import Partition
from arena.problems.placement import extend, partition_of
from arena.records.log import StoredHead, TransparencyLog
from arena.runs.seal import Sealed
from arena.season.release import Release, current_release
from arena.settings import ArenaSettings
from corpus_export.exceptions import BrokenSourceError
from corpus_export.rows import Verdict
from corpus_export.settings import day_bounds
from corpus_export.sources import PAGE_BYTES, PAGE_RECORDS, Page, RawRecord, read_later
from scoring.exceptions import ProblemError
from scoring.reading import read_problem
from scoring.types import JsonObject, Problem

_T = TypeVar("_T")
_KEYS = 4096
"""Keys of records read ahead of their contents."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A head of the log that stands on chain: it vouches for all leaves below `size`."""

    size: int
    name: str


class DatabaseSource:
    """The runs that finished on a day (UTC), by their end and id. See `open_source`."""

    def __init__(self, runner: asyncio.Runner, database: Database, day: date) -> None:
        self._runner = runner
        self._database = database
        self._day = day
        self._head, self._committed = self.ask(self._log)
        self._described = self.ask(self._describe)
        self._problems = self.ask(load_problems)

    def ask(self, question: Callable[[AsyncEngine], Awaitable[_T]]) -> _T:
        """Await something of the database. Raises DatabaseError as it does."""

        async def answer() -> _T:
            try:
                return await question(self._database.engine)
            except (SQLAlchemyError, OSError, TimeoutError, asyncpg.PostgresError) as error:
                raise database_error(error, self._database.where) from error

        return self._runner.run(answer())

    def describe(self) -> JsonObject:
        """How many runs and later verdicts the day has, and the digest of their hashes."""
        return self._described

    def problems(self) -> Sequence[Problem]:
        """Every problem that a record names, of all days: clusters are made of all."""
        return self._problems

    def head(self) -> JsonObject | None:
        """The signed head of the day; None while it is not closed."""
        return self._head

    def pages(self, after: str | None = None) -> Iterator[Page]:
        """As `RecordSource.pages`."""
        last = _cursor(after)
        while keys := self.ask(partial(self._keys, last=last)):
            for start in range(0, len(keys), PAGE_RECORDS):
                group = keys[start : start + PAGE_RECORDS]
                yield from self.ask(partial(self._pages, keys=group))
            last = (keys[-1].finished_at, keys[-1].run_id)

    # Questions -------------------------------------------------------------------------

    def _of_day(self, *columns: Any) -> Select[Any]:
        start, end = day_bounds(self._day)
        runs = schema.runs.c
        return select(*columns).where(runs.finished_at >= start, runs.finished_at < end)

    async def _describe(self, engine: AsyncEngine) -> JsonObject:
        verdicts = schema.verdicts
        query = self._of_day(
            schema.runs.c.record_hash, verdicts.c.record_hash.label("later")
        ).select_from(schema.runs.outerjoin(verdicts, _later_of_run()))
        listed = query.subquery()
        empty = func.decode("", "hex")
        hashes = listed.c.record_hash.op("||")(func.coalesce(listed.c.later, empty))
        digest = func.encode(
            func.sha256(func.string_agg(hashes, aggregate_order_by(empty, listed.c.record_hash))),
            "hex",
        )
        async with engine.connect() as connection:
            row = (
                await connection.execute(
                    select(func.count(), func.count(listed.c.later), digest).select_from(listed)
                )
            ).one()
        return {
            "kind": "database",
            "day": self._day.isoformat(),
            "runs": row[0],
            "verdicts": row[1],
            "content": row[2],
            "committed": [one.name for one in self._committed],
        }

    async def _keys(
        self, engine: AsyncEngine, last: tuple[datetime, str] | None
    ) -> Sequence[Row[Any]]:
        runs = schema.runs.c
        query = self._of_day(runs.finished_at, runs.run_id, runs.record_hash)
        if last is not None:
            query = query.where(tuple_(runs.finished_at, runs.run_id) > tuple_(*last))
        async with engine.connect() as connection:
            found = await connection.execute(
                query.order_by(runs.finished_at, runs.run_id).limit(_KEYS)
            )
            return list(found.all())

    async def _pages(self, engine: AsyncEngine, keys: Sequence[Row[Any]]) -> list[Page]:
        """A group of records; several pages when they are large."""
        hashes = [key.record_hash for key in keys]
        async with engine.connect() as connection:
            contents = await _contents(connection, hashes)
            seals = await _seals(connection, hashes)
            verdicts = await _verdicts(connection, [key.run_id for key in keys])
        pages: list[Page] = []
        records: list[RawRecord] = []
        size = 0
        for number, key in enumerate(keys, start=1):
            content = contents.get(key.record_hash)
            if content is None:
                raise BrokenSourceError(f"the database lacks the record of run {key.run_id}")
            sealed, index = seals.get(key.record_hash, (None, None))
            records.append(
                RawRecord(content, sealed, verdicts.get(key.run_id), self._commit_of(index))
            )
            size += len(content)
            if size >= PAGE_BYTES or number == len(keys):
                cursor = json.dumps([key.finished_at.astimezone(UTC).isoformat(), key.run_id])
                pages.append(Page(tuple(records), cursor))
                records, size = [], 0
        return pages

    def _commit_of(self, index: int | None) -> str | None:
        if index is None:
            return None
        return next((one.name for one in self._committed if one.size > index), None)

    async def _log(self, engine: AsyncEngine) -> tuple[JsonObject | None, list[Committed]]:
        log = TransparencyLog(engine)
        heads = {head.signed.head.day: head for head in await log.heads()}
        committed = [
            Committed(
                heads[stored.day].size,
                f"{stored.commitment.address}@{stored.commitment.block}:"
                f"{stored.commitment.data.hex()}",
            )
            for stored in await log.commitments()
        ]
        committed.sort(key=lambda one: one.size)
        day = heads.get(self._day)
        if day is None:
            return None, committed
        # Later ones say nothing more of this day's records.
        enough = next(
            (i for i, one in enumerate(committed) if one.size >= day.size), len(committed)
        )
        return _head_json(day), committed[: enough + 1]


@contextmanager
def open_source(settings: ArenaSettings, day: date) -> Iterator[DatabaseSource]:
    """The records of a day. Raises DatabaseUnreachableError or DatabaseError.

    Runs an event loop of its own: call it where none is running.
    """
    with asyncio.Runner() as runner:
        opening = open_database(settings)
        database = runner.run(opening.__aenter__())
        try:
            runner.run(database.ready())
            yield DatabaseSource(runner, database, day)
        finally:
            runner.run(opening.__aexit__(None, None, None))


async def load_problems(engine: AsyncEngine) -> list[Problem]:
    """Every problem that a record names, as it was stored last; by when it first came.

    Raises BrokenSourceError for one that cannot be read.
    """
    table = schema.problem_contents.c
    query = select(table.problem_id, table.content).order_by(table.stored_at, table.problem_id)
    problems: dict[str, Problem] = {}
    async with engine.connect() as connection:
        async for row in await connection.stream(query, execution_options={"yield_per": 256}):
            try:
                value = json.loads(zstandard.decompress(row.content))
                problems[row.problem_id] = read_problem(value, problem_id=row.problem_id)
            except (ProblemError, ValueError, zstandard.ZstdError) as error:
                raise BrokenSourceError(
                    f"problem {row.problem_id} cannot be read: {error!s:.200}"
                ) from error
    return list(problems.values())


async def current_partition(
    engine: AsyncEngine, problems: Sequence[Problem], seed: str
) -> Partition:
    """The journal's partition, with these problems brought into it. Raises PartitionError."""
    journal = PostgresJournal(engine)
    present = await partition_of(journal)
    if not problems:
        return present
    clusters = await asyncio.to_thread(Clusters.of, problems)
    drawn = present.seed if present.seed is not None else seed
    return await extend(journal, problems, clusters, seed=drawn, at=datetime.now(UTC))


async def release_now(engine: AsyncEngine, at: datetime) -> Release:
    """What is released at a moment, from the database's journals."""
    return await current_release(PostgresJournal(engine), at)


async def _contents(connection: AsyncConnection, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
    table = schema.records.c
    query = select(table.record_hash, table.content).where(table.record_hash.in_(hashes))
    rows = (await connection.execute(query)).all()
    return {row.record_hash: zstandard.decompress(row.content) for row in rows}


async def _seals(
    connection: AsyncConnection, hashes: Sequence[bytes]
) -> dict[bytes, tuple[Sealed, int | None]]:
    """The seals of records, and their leaves' numbers in the log."""
    table, entries = schema.seals, schema.log_entries
    number = entries.c.index.label("number")
    query = (
        select(table.c.record_hash, table.c.content, table.c.signature, number)
        .select_from(table.outerjoin(entries, entries.c.seal_hash == table.c.seal_hash))
        .where(table.c.record_hash.in_(hashes))
    )
    rows = (await connection.execute(query)).all()
    return {r.record_hash: (Sealed(r.content, r.signature), r.number) for r in rows}


async def _verdicts(connection: AsyncConnection, runs: Sequence[str]) -> dict[str, Verdict]:
    """The later verdicts on runs, read from their own records."""
    table, records = schema.verdicts, schema.records
    query = (
        select(table.c.run_id, records.c.record_hash, records.c.content)
        .join(records, records.c.record_hash == table.c.record_hash)
        .where(table.c.run_id.in_(runs), table.c.later)
    )
    found: dict[str, Verdict] = {}
    for row in (await connection.execute(query)).all():
        try:
            content = zstandard.decompress(row.content)
            found[row.run_id] = read_later(content, row.record_hash.hex())[1]
        except (ValueError, KeyError, TypeError, zstandard.ZstdError) as error:
            raise BrokenSourceError(
                f"the verdict on run {row.run_id} cannot be read: {error!r:.200}"
            ) from error
    return found


def _later_of_run() -> Any:
    verdicts = schema.verdicts.c
    return and_(verdicts.run_id == schema.runs.c.run_id, verdicts.later)


def _cursor(text: str | None) -> tuple[datetime, str] | None:
    if text is None:
        return None
    at, run_id = cast("list[str]", json.loads(text))
    return datetime.fromisoformat(at), run_id


def _head_json(head: StoredHead) -> JsonObject:
    return {"hash": head.signed.hash, "signed": json.loads(head.signed.to_line())}
