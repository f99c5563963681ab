"""Agents and their versions in Postgres: admitted whole, or not at all.

A version, its file and its entry in the season's journal are one transaction, so there is no
version that the season does not know and no entrant without a file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID, uuid5

import zstandard
from sqlalchemy import Row, Select, func, insert, or_, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from arena.db.schema import agent_sources
from arena.db.submission_tables import agent_versions, agents, refused_submissions
from arena.runs.canonical import canonical
from arena.submissions.fingerprints import Fingerprint
from arena.submissions.rules import Rule, Violation, violation
from scoring.types import JsonObject

_AGENTS = UUID("3f0c8d53-6a1e-5f0f-9d0b-6c2b0f2f7a11")
MAX_SEARCHED = 1_000
MAX_REFUSALS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class AgentVersion:
    """An admitted file of a hotkey, under an agent's name. `number` counts from 1."""

    version_id: UUID
    agent_id: UUID
    name: str
    """The miner's text: printable, bounded, and else to be escaped where it is shown."""
    hotkey: str
    number: int
    source_hash: str
    submitted_at: datetime
    artefact: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Agent:
    """A name of a hotkey."""

    agent_id: UUID
    hotkey: str
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Indexed:
    """What the index of copies takes of a version. `entry` orders them."""

    entry: int
    version: str
    hotkey: str
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True)
class RefusedSubmission:
    """A file that the gate refused."""

    name: str
    source_hash: str
    size: int
    code: str
    refused_at: datetime
    violations: tuple[Violation, ...]
    """All of them: what a submitter may be told is `refusals.told`."""


def agent_id_of(hotkey: str, name: str) -> UUID:
    """The id of a hotkey's agent of this name."""
    return uuid5(_AGENTS, f"{hotkey}\n{name}")


class SubmissionStore:
    """Reads agents and versions. Driver errors pass through."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def version(self, version_id: UUID) -> AgentVersion | None:
        """One version; None for an unknown one."""
        found = await self._versions(_VERSIONS.where(agent_versions.c.version_id == version_id))
        return found[0] if found else None

    async def versions(
        self,
        hotkey: str | None = None,
        *,
        agent_id: UUID | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[AgentVersion]:
        """Versions, the newest first: all, or a hotkey's, or an agent's."""
        query = _VERSIONS.order_by(agent_versions.c.season_entry.desc()).offset(offset)
        if hotkey is not None:
            query = query.where(agents.c.hotkey == hotkey)
        if agent_id is not None:
            query = query.where(agents.c.agent_id == agent_id)
        return await self._versions(query if limit is None else query.limit(limit))

    async def named(self, version_ids: Sequence[UUID]) -> dict[UUID, AgentVersion]:
        """Those of these versions that are here."""
        if not version_ids:
            return {}
        query = _VERSIONS.where(agent_versions.c.version_id.in_(list(version_ids)))
        return {found.version_id: found for found in await self._versions(query)}

    async def search(self, text: str) -> set[UUID]:
        """Versions whose agent's name or hotkey holds a text, the newest first, bounded."""
        if "\0" in text:
            return set()
        like = (agents.c.name.icontains, agents.c.hotkey.icontains)
        query = (
            select(agent_versions.c.version_id)
            .join(agents, agents.c.agent_id == agent_versions.c.agent_id)
            .where(or_(*(contains(text, autoescape=True) for contains in like)))
            .order_by(agent_versions.c.season_entry.desc())
            .limit(MAX_SEARCHED)
        )
        async with self._engine.connect() as connection:
            return set(await connection.scalars(query))

    async def agents(self, hotkey: str) -> list[Agent]:
        """A hotkey's agents, oldest first."""
        query = select(agents).where(agents.c.hotkey == hotkey)
        query = query.order_by(agents.c.created_at, agents.c.agent_id)
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query)).all()
        return [Agent(r.agent_id, r.hotkey, r.name, r.created_at.astimezone(UTC)) for r in rows]

    async def source(self, version_id: UUID) -> bytes:
        """A version's file. Raises KeyError for an unknown version."""
        query = (
            select(agent_sources.c.source)
            .join(agent_versions, agent_versions.c.source_hash == agent_sources.c.source_hash)
            .where(agent_versions.c.version_id == version_id)
        )
        async with self._engine.connect() as connection:
            packed = await connection.scalar(query)
        if packed is None:
            raise KeyError(str(version_id))
        return zstandard.decompress(packed)

    async def same(
        self, connection: AsyncConnection, hotkey: str, source: bytes, artefact: JsonObject | None
    ) -> list[AgentVersion]:
        """A hotkey's versions of exactly this file and artefact, the newest first."""
        table = agent_versions.c
        model = None if artefact is None else canonical(artefact)
        query = _VERSIONS.where(
            agents.c.hotkey == hotkey,
            table.source_hash == hashlib.sha256(source).digest(),
            table.artefact.is_not_distinct_from(model),
        ).order_by(table.season_entry.desc())
        return [_version(row) for row in await connection.execute(query)]

    async def indexed(self, connection: AsyncConnection, *, after: int) -> list[Indexed]:
        """Fingerprints of the versions behind an entry of the season, oldest first."""
        table = agent_versions.c
        query = (
            select(table.season_entry, table.version_id, agents.c.hotkey, table.fingerprint)
            .join(agents, agents.c.agent_id == table.agent_id)
            .where(table.season_entry > after)
            .order_by(table.season_entry)
        )
        return [
            Indexed(row.season_entry, str(row.version_id), row.hotkey, _unpack(row.fingerprint))
            for row in await connection.execute(query)
        ]

    async def admit(
        self,
        connection: AsyncConnection,
        version_id: UUID,
        *,
        hotkey: str,
        name: str,
        source: bytes,
        artefact: JsonObject | None,
        fingerprint: Fingerprint,
        season_entry: int,
        at: datetime,
    ) -> AgentVersion:
        """Store a version in the caller's transaction, which writes its entry as well."""
        agent_id, digest = agent_id_of(hotkey, name), hashlib.sha256(source).digest()
        compress = zstandard.ZstdCompressor(level=9).compress
        new_agent = {"agent_id": agent_id, "hotkey": hotkey, "name": name, "created_at": at}
        await connection.execute(upsert(agents).values(new_agent).on_conflict_do_nothing())
        file = {"source_hash": digest, "source": compress(source)}
        await connection.execute(upsert(agent_sources).values(file).on_conflict_do_nothing())
        before = select(func.coalesce(func.max(agent_versions.c.number), 0)).where(
            agent_versions.c.agent_id == agent_id
        )
        number = int(await connection.scalar(before) or 0) + 1
        row = {
            "version_id": version_id,
            "agent_id": agent_id,
            "number": number,
            "source_hash": digest,
            "season_entry": season_entry,
            "submitted_at": at,
            "artefact": None if artefact is None else canonical(artefact),
            "fingerprint": _pack(fingerprint),
        }
        await connection.execute(insert(agent_versions).values(row))
        return AgentVersion(version_id, agent_id, name, hotkey, number, digest.hex(), at, artefact)

    # --- refusals

    async def refuse(
        self, hotkey: str, name: str, source: bytes, code: str, found: Sequence[Violation],
        at: datetime,
    ) -> None:  # fmt: skip
        """Keep what the gate found in a file that it refused; the file itself is not kept."""
        findings = json.dumps([one.to_json() for one in found]).encode()
        row = {
            "hotkey": hotkey,
            "name": name,
            "source_hash": hashlib.sha256(source).digest(),
            "size": len(source),
            "code": code,
            "findings": zstandard.ZstdCompressor(level=9).compress(findings),
            "refused_at": at,
        }
        async with self._engine.begin() as connection:
            await connection.execute(insert(refused_submissions).values(row))

    async def refused_since(
        self, hotkey: str, since: datetime, code: str | None = None
    ) -> list[datetime]:
        """When files of a hotkey were refused after a moment, oldest first."""  # fmt: skip
        table = refused_submissions.c
        query = select(table.refused_at).where(table.hotkey == hotkey, table.refused_at > since)
        if code is not None:
            query = query.where(table.code == code)
        async with self._engine.connect() as connection:
            found = await connection.scalars(query.order_by(table.refused_at))
            return [at.astimezone(UTC) for at in found]

    async def refusals(
        self, hotkey: str, limit: int = MAX_REFUSALS_SHOWN
    ) -> list[RefusedSubmission]:
        """A hotkey's refused files, the newest first."""  # fmt: skip
        table = refused_submissions
        query = select(table).where(table.c.hotkey == hotkey)
        query = query.order_by(table.c.refusal.desc()).limit(limit)
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query)).all()
        return [
            RefusedSubmission(
                row.name,
                row.source_hash.hex(),
                row.size,
                row.code,
                row.refused_at.astimezone(UTC),
                _violations(row.findings),
            )
            for row in rows
        ]

    async def _versions(self, query: Select[Any]) -> list[AgentVersion]:
        async with self._engine.connect() as connection:
            return [_version(row) for row in await connection.execute(query)]


_VERSIONS = select(agent_versions, agents.c.hotkey, agents.c.name).join(
    agents, agents.c.agent_id == agent_versions.c.agent_id
)


def _version(row: Row[Any]) -> AgentVersion:
    artefact = None if row.artefact is None else cast("JsonObject", json.loads(row.artefact))
    return AgentVersion(
        row.version_id,
        row.agent_id,
        row.name,
        row.hotkey,
        row.number,
        row.source_hash.hex(),
        row.submitted_at.astimezone(UTC),
        artefact,
    )


def _pack(found: Fingerprint) -> bytes:
    plain = {"sha256": found.sha256, "code": found.code, "prose": found.prose}
    return zstandard.ZstdCompressor(level=9).compress(json.dumps(plain).encode())


def _unpack(packed: bytes) -> Fingerprint:
    plain = json.loads(zstandard.decompress(packed))
    places = [tuple((a, b, c) for a, b, c in plain[kind]) for kind in ("code", "prose")]
    return Fingerprint(plain["sha256"], places[0], places[1])


def _violations(packed: bytes) -> tuple[Violation, ...]:
    rows = json.loads(zstandard.decompress(packed))
    return tuple(violation(Rule(r["rule"]), r["line"], r["column"], r["found"]) for r in rows)
