"""A day of the log as files: everything that a stranger needs to check it.

Seals and signatures of all records; the records themselves where they are released, or, for
the operator's own use, all of them. Written beside its place and renamed when it is whole.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import IO, Any, cast

import orjson
import zstandard
from sqlalchemy import Row, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from arena.db import schema
from arena.exceptions import ArenaError, Fault, LogError
from arena.records.layout import (
    ANCHORS,
    COMMITMENTS,
    EXPORT_SCHEMA,
    HEADS,
    MANIFEST,
    PROBLEMS,
    RECORDS,
    SEALS,
    SOURCES,
    file_hash,
)
from arena.records.log import StoredHead, TransparencyLog
from arena.records.merkle import CompactRange
from arena.runs.canonical import canonical
from arena.runs.frames import encode_frame
from arena.runs.ledger import sync_directory
from arena.runs.record import EncodedRecord
from arena.runs.seal import Sealed
from arena.season.release import NOTHING, Release
from scoring.types import Json, JsonObject

_YIELD = 256


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export holds."""

    directory: Path
    head: str
    seals: int
    records: int

    @property
    def withheld(self) -> int:
        """Records of which only seal and signature are in it."""
        return self.seals - self.records


async def export_day(
    engine: AsyncEngine,
    day: date,
    directory: Path,
    *,
    public: bool,
    release: Release = NOTHING,
    progress: Callable[[int], None] = lambda count: None,
) -> Exported:
    """Export a closed day into `directory`, which must not be there, or be empty.

    `public` withholds what `release` does not name, records and agents' code apart.
    Raises LogError for a day that is not closed or a directory in the way, and ArenaError
    (`export.failed`) when the disk does not take it.
    """
    log = TransparencyLog(engine)
    heads = await log.heads(until=day)
    if not heads or heads[-1].signed.head.day != day:
        raise LogError(
            f"{day} is not closed",
            code="log.not_closed",
            remedy=f"arena records close --day {day}",
        )
    with _staged(directory) as staging:
        exporter = _Exporter(engine, log, heads, staging, public, release, progress)
        manifest = await exporter.write()
    counts = cast("dict[str, int]", manifest["counts"])
    return Exported(directory, heads[-1].signed.hash, counts["seals"], counts["records"])


@contextmanager
def _staged(directory: Path) -> Iterator[Path]:
    """A directory beside `directory` that takes its place when all went well."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise LogError(f"{directory} is there already", code="export.in_the_way")
    staging = directory.with_name(f".{directory.name}.{secrets.token_hex(4)}.new")
    try:
        staging.mkdir(parents=True)
        yield staging
        _sync(staging)
        staging.rename(directory)
        sync_directory(directory.absolute().parent)
    except OSError as error:
        raise ArenaError(
            f"{directory}: {error.strerror or error}",
            code="export.failed",
            fault=Fault.CALLER,
            remedy="make room on the disk, or give another --out",
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


@dataclass(slots=True)
class _Used:
    """What the records that are in the export name."""

    problems: set[tuple[str, str]] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)
    catalogs: set[str] = field(default_factory=set)
    records: int = 0
    seals: int = 0

    def note(self, record: EncodedRecord) -> None:
        """Take in a record."""
        self.records += 1
        value = cast("dict[str, Any]", orjson.loads(record.content))
        if "problem" not in value:
            return
        problem = value["problem"]
        if problem.get("content_hash"):
            self.problems.add((problem["problem_id"], problem["content_hash"]))
        self.sources.add(value["agent"]["source_hash"])
        self.catalogs.add(value["conditions"]["catalog_hash"])


class _Exporter:
    """One export."""

    def __init__(
        self,
        engine: AsyncEngine,
        log: TransparencyLog,
        heads: list[StoredHead],
        directory: Path,
        public: bool,
        release: Release,
        progress: Callable[[int], None],
    ) -> None:
        self._engine = engine
        self._log = log
        self._heads = heads
        self._directory = directory
        self._public = public
        self._release = release
        self._progress = progress
        self._used = _Used()
        self._starts: list[tuple[str, int]] = []
        """Validator and number of each seal that a chain of the day goes on from."""

    async def write(self) -> JsonObject:
        """All files, the manifest last."""
        head = self._heads[-1]
        older = self._heads[-2].subtrees if len(self._heads) > 1 else CompactRange()
        async with self._engine.connect() as connection:
            await self._write_log(connection, older.size, head.size)
            await self._write_problems(connection)
            await self._write_sources(connection)
        self._write_lines(HEADS, (stored.signed.to_line() for stored in self._heads))
        await self._write_anchors()
        await self._write_commitments()
        manifest: JsonObject = {
            "schema": EXPORT_SCHEMA,
            "kind": "sn15-arena export of a day",
            "day": head.signed.head.day.isoformat(),
            "public": self._public,
            "log": {
                "address": head.signed.head.log,
                "head": head.signed.hash,
                "first": older.size,
                "size": head.size,
                "subtrees": [hash_.hex() for hash_ in older.hashes],
            },
            "counts": {
                "seals": self._used.seals,
                "records": self._used.records,
                "withheld": self._used.seals - self._used.records,
            },
            "catalogs": cast("list[Json]", sorted(self._used.catalogs)),
            "files": {name: self._described(name) for name in self._names()},
        }
        text = orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
        (self._directory / MANIFEST).write_bytes(text + b"\n")
        return manifest

    async def _write_log(self, connection: AsyncConnection, first: int, end: int) -> None:
        """Seals and records, in the order of the log."""
        compressor = zstandard.ZstdCompressor(level=9, write_checksum=True)
        rows = await connection.stream(
            _day_query(first, end), execution_options={"yield_per": _YIELD}
        )
        before: tuple[str, int] | None = None
        with (
            (self._directory / SEALS).open("wb") as raw,
            compressor.stream_writer(raw, closefd=False) as seals,
            (self._directory / RECORDS).open("wb") as records,
        ):
            async for row in rows:
                sealed = Sealed(row.seal, row.signature)
                seals.write(sealed.to_line() + b"\n")
                self._note_start(before, row)
                before = (row.validator, row.sequence)
                self._used.seals += 1
                if self._is_in(row):
                    await asyncio.to_thread(self._write_record, records, row, sealed)
                self._progress(self._used.seals)

    def _write_record(self, file: IO[bytes], row: Row[Any], sealed: Sealed) -> None:
        record = EncodedRecord(zstandard.decompress(row.content))
        file.write(encode_frame(record, sealed))
        self._used.note(record)

    def _note_start(self, before: tuple[str, int] | None, row: Row[Any]) -> None:
        if row.sequence > 1 and before != (row.validator, row.sequence - 1):
            self._starts.append((row.validator, row.sequence - 1))

    def _is_in(self, row: Row[Any]) -> bool:
        if not self._public:
            return True
        if row.problem_id is None or row.source_hash is None:
            return False
        return self._release(row.problem_id, row.source_hash.hex())

    async def _write_problems(self, connection: AsyncConnection) -> None:
        table = schema.problem_contents.c
        lines = []
        for problem_id, content_hash in sorted(self._used.problems):
            query = select(table.content).where(
                table.problem_id == problem_id, table.content_hash == bytes.fromhex(content_hash)
            )
            content = await connection.scalar(query)
            if content is not None:
                lines.append(zstandard.decompress(content) + b"\n")
        packed = zstandard.ZstdCompressor(level=9, write_checksum=True).compress(b"".join(lines))
        (self._directory / PROBLEMS).write_bytes(packed)

    async def _write_sources(self, connection: AsyncConnection) -> None:
        (self._directory / SOURCES).mkdir()
        table = schema.agent_sources.c
        shown = self._used.sources & self._release.code if self._public else self._used.sources
        for source_hash in sorted(shown):
            query = select(table.source).where(table.source_hash == bytes.fromhex(source_hash))
            source = await connection.scalar(query)
            if source is not None:
                path = self._directory / SOURCES / f"{source_hash}.py"
                path.write_bytes(zstandard.decompress(source))

    async def _write_anchors(self) -> None:
        found = [await self._log.prove_seal(*start) for start in self._starts]
        self._write_lines(ANCHORS, (proof.to_line() for proof in found if proof is not None))

    async def _write_commitments(self) -> None:
        last = self._heads[-1].signed.head.day
        stored = [one for one in await self._log.commitments() if one.day <= last]
        lines = (
            canonical(
                {
                    "day": one.day.isoformat(),
                    "address": one.commitment.address,
                    "block": one.commitment.block,
                    "data": one.commitment.data.hex(),
                }
            )
            for one in stored
        )
        self._write_lines(COMMITMENTS, lines)

    def _write_lines(self, name: str, lines: Iterable[bytes]) -> None:
        with (self._directory / name).open("wb") as file:
            file.writelines(line + b"\n" for line in lines)

    def _names(self) -> list[str]:
        paths = (path for path in self._directory.rglob("*") if path.is_file())
        return sorted(str(path.relative_to(self._directory)) for path in paths)

    def _described(self, name: str) -> JsonObject:
        path = self._directory / name
        return {"bytes": path.stat().st_size, "sha256": file_hash(path)}


def _day_query(first: int, end: int) -> Any:
    """Seals and records of the leaves [first, end), with what decides whether they are public.

    A later verdict is released with the run that it is about.
    """
    entries, seals, records = schema.log_entries, schema.seals, schema.records
    runs, verdicts = schema.runs, schema.verdicts
    own, later = runs.alias("own"), verdicts.alias("later")
    run = runs.alias("run")
    return (
        select(
            seals.c.validator,
            seals.c.sequence,
            seals.c.content.label("seal"),
            seals.c.signature,
            records.c.content,
            run.c.problem_id,
            schema.race_agents.c.source_hash,
        )
        .select_from(entries)
        .join(seals, seals.c.seal_hash == entries.c.seal_hash)
        .join(records, records.c.record_hash == seals.c.record_hash)
        .outerjoin(own, own.c.record_hash == records.c.record_hash)
        .outerjoin(later, later.c.record_hash == records.c.record_hash)
        .outerjoin(run, run.c.run_id == func.coalesce(own.c.run_id, later.c.run_id))
        .outerjoin(
            schema.race_agents,
            (schema.race_agents.c.race_id == run.c.race_id)
            & (schema.race_agents.c.label == run.c.agent),
        )
        .where(entries.c.index >= first, entries.c.index < end)
        .order_by(entries.c.index)
    )


def _sync(directory: Path) -> None:
    """Wait until the disk has every file."""
    for path in directory.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    sync_directory(directory)
