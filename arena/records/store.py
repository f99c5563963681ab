"""Records in Postgres. Writing the same thing twice changes nothing."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

import zstandard
from sqlalchemy import Table, bindparam, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from arena.db import schema
from arena.exceptions import DatabaseError, RecordConflictError
from arena.records.chains import check_seals
from arena.records.rows import Row, Rows, insert_rows, rows_of
from arena.runs.canonical import ijson
from arena.runs.record import AgentRef, EncodedRecord, Kind, ProblemRef, record_key
from arena.runs.seal import Sealed, SealedRecord
from scoring.types import JsonObject


@dataclass(frozen=True, slots=True)
class RaceEntry:
    """A race as it is stored: who, what, under which inputs."""

    race_id: str
    phase: str
    created_at: datetime
    fingerprint: str
    inputs: JsonObject
    agents: tuple[tuple[AgentRef, bytes], ...]
    """Each with its source."""
    problems: tuple[ProblemRef, ...]
    contents: tuple[tuple[str, bytes], ...] = ()
    """Problem id and the problem with its reward as canonical JSON."""


class RecordStore:
    """The append-only tables behind typed calls. Driver errors pass through."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def register(self, race: RaceEntry) -> None:
        """Store the race before its first record. Again is fine, with the same inputs.

        Raises DatabaseError when the id is taken by a race with other inputs.
        """
        async with self._engine.begin() as connection:
            await connection.execute(
                insert(schema.races)
                .values(
                    race_id=race.race_id,
                    phase=race.phase,
                    created_at=race.created_at,
                    fingerprint=bytes.fromhex(race.fingerprint),
                    inputs=_without_nul(race.inputs),
                )
                .on_conflict_do_nothing()
            )
            stored = await connection.scalar(
                select(schema.races.c.fingerprint).where(schema.races.c.race_id == race.race_id)
            )
            if stored != bytes.fromhex(race.fingerprint):
                raise DatabaseError(f"the database has another race with the id {race.race_id}")
            await _insert_agents(connection, race)
            await _insert_problems(connection, race)
            await _insert_contents(connection, race)

    async def stored_runs(self, race_id: str) -> set[str]:
        """Ids of the runs of this race that are in the database."""
        async with self._engine.connect() as connection:
            rows = await connection.scalars(
                select(schema.runs.c.run_id).where(schema.runs.c.race_id == race_id)
            )
            return set(rows)

    async def stored_keys(self, race_id: str) -> set[str]:
        """Keys of all records of this race that are in the database: runs and later verdicts."""
        later = (
            select(schema.verdicts.c.run_id)
            .join(schema.runs, schema.runs.c.run_id == schema.verdicts.c.run_id)
            .where(schema.runs.c.race_id == race_id, schema.verdicts.c.later)
        )
        async with self._engine.connect() as connection:
            verdicts = await connection.scalars(later)
            keys = {record_key(Kind.VERDICT, run_id) for run_id in verdicts}
        return keys | await self.stored_runs(race_id)

    async def put(self, records: Sequence[SealedRecord]) -> None:
        """Store records with their seals in one transaction; those that are there already stay.

        A later verdict comes after its run's record. Raises RecordConflictError when a run id
        is there with another record, or has another verdict, SealForkError when a seal forks
        its validator's chain, and SealError for one that is none or is another record's.
        Signatures are not checked: a validator stores its own.
        """
        if not records:
            return
        # In a thread: compressing megabytes would hold up the gateway on this loop.
        prepared = await asyncio.to_thread(prepare, records)
        async with self._engine.begin() as connection:
            await insert_prepared(connection, prepared)

    async def record(self, run_id: str) -> EncodedRecord | None:
        """The record of a run, byte for byte as it was made."""
        query = (
            select(schema.records.c.content)
            .join(schema.runs, schema.runs.c.record_hash == schema.records.c.record_hash)
            .where(schema.runs.c.run_id == run_id)
        )
        async with self._engine.connect() as connection:
            content = await connection.scalar(query)
        return None if content is None else EncodedRecord(zstandard.decompress(content))

    async def problem(self, problem_id: str, content_hash: str) -> bytes | None:
        """A problem with its reward as canonical JSON, as records name it."""
        table = schema.problem_contents.c
        query = select(table.content).where(
            table.problem_id == problem_id, table.content_hash == bytes.fromhex(content_hash)
        )
        async with self._engine.connect() as connection:
            content = await connection.scalar(query)
        return None if content is None else zstandard.decompress(content)

    async def head(self, validator: str) -> Sealed | None:
        """The last seal of a validator that is stored; None without one."""
        table = schema.seals.c
        query = (
            select(table.content, table.signature)
            .where(table.validator == validator)
            .order_by(table.sequence.desc())
            .limit(1)
        )
        async with self._engine.connect() as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else Sealed(row.content, row.signature)

    async def seal_hash(self, validator: str, sequence: int) -> str | None:
        """The hash of a validator's seal with this number, in hex; None when it is not stored."""
        table = schema.seals.c
        query = select(table.seal_hash).where(
            table.validator == validator, table.sequence == sequence
        )
        async with self._engine.connect() as connection:
            found = await connection.scalar(query)
        return None if found is None else bytes(found).hex()


@dataclass(frozen=True, slots=True)
class Prepared:
    """Records as rows, ready to be stored."""

    rows: Rows
    seals: tuple[Sealed, ...]

    @classmethod
    def joined(cls, prepared: Sequence[Prepared]) -> Prepared:
        """Several, to be stored in one statement."""
        return cls(
            Rows.joined([one.rows for one in prepared]),
            tuple(sealed for one in prepared for sealed in one.seals),
        )


def prepare(records: Sequence[SealedRecord]) -> Prepared:
    """Compress records and read their rows, before a transaction is begun. Raises as `put`.

    Takes a millisecond for a record of 30 KB: call it in a thread.
    """
    return Prepared(rows_of(records), tuple(record.sealed for record in records))


async def insert_prepared(connection: AsyncConnection, prepared: Prepared) -> None:
    """As `RecordStore.put`, in the caller's transaction. One statement, when all goes well."""
    added = await insert_rows(connection, prepared.rows, prepared.seals)
    for table, some, new in (
        (schema.runs, prepared.rows.runs, added.runs),
        (schema.verdicts, prepared.rows.verdicts, added.verdicts),
    ):
        there = [row for row in some if (row["run_id"], row["record_hash"]) not in new]
        if there:
            await _refuse_rewriting(connection, table, there)
    await check_seals(connection, prepared.seals, added.seals)


async def _insert_agents(connection: AsyncConnection, race: RaceEntry) -> None:
    compress = zstandard.ZstdCompressor(level=9).compress
    sources = {agent.source_hash: source for agent, source in race.agents}
    await connection.execute(
        insert(schema.agent_sources).on_conflict_do_nothing(),
        [
            {"source_hash": bytes.fromhex(digest), "source": compress(source)}
            for digest, source in sorted(sources.items())
        ],
    )
    await connection.execute(
        insert(schema.race_agents).on_conflict_do_nothing(),
        [
            {
                "race_id": race.race_id,
                "label": agent.label,
                "position": position,
                "name": agent.name,
                "source_hash": bytes.fromhex(agent.source_hash),
            }
            for position, (agent, _) in enumerate(race.agents)
        ],
    )


async def _insert_problems(connection: AsyncConnection, race: RaceEntry) -> None:
    await connection.execute(
        insert(schema.race_problems).on_conflict_do_nothing(),
        [
            {
                "race_id": race.race_id,
                "problem_id": problem.problem_id,
                "position": position,
                "bucket": problem.bucket,
                "pool": problem.pool,
                "cluster": problem.cluster,
            }
            for position, problem in enumerate(race.problems)
        ],
    )


async def _insert_contents(connection: AsyncConnection, race: RaceEntry) -> None:
    if not race.contents:
        return
    compress = zstandard.ZstdCompressor(level=9).compress
    await connection.execute(
        insert(schema.problem_contents).on_conflict_do_nothing(),
        [
            {
                "problem_id": problem_id,
                "content_hash": hashlib.sha256(content).digest(),
                "content": compress(content),
            }
            for problem_id, content in race.contents
        ],
    )


async def _refuse_rewriting(connection: AsyncConnection, table: Table, rows: Sequence[Row]) -> None:
    query = select(table.c.run_id, table.c.record_hash).where(
        table.c.run_id.in_(bindparam("ids", expanding=True))
    )
    found = await connection.execute(query, {"ids": [row["run_id"] for row in rows]})
    stored = {row.run_id: row.record_hash for row in found}
    for row in rows:
        if stored.get(cast("str", row["run_id"])) != row["record_hash"]:
            what = "record" if table is schema.runs else "verdict"
            raise RecordConflictError(f"run {row['run_id']} is stored with another {what}")


def _without_nul(inputs: JsonObject) -> object:
    """Inputs name files and models; JSONB takes neither NUL nor lone surrogates."""

    def clean(value: object) -> object:
        if isinstance(value, str):
            return value.replace("\0", "�")
        if isinstance(value, list):
            return [clean(item) for item in value]
        if isinstance(value, dict):
            return {clean(key): clean(item) for key, item in value.items()}
        return value

    return clean(ijson(inputs))
