"""Finding one record by a name that people have: in a database, a race or an export."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import zstandard
from sqlalchemy import or_, select
from sqlalchemy.ext.asyncio import AsyncEngine

from arena.db import schema
from arena.exceptions import ProofError
from arena.records.layout import RECORDS
from arena.records.log import TransparencyLog
from arena.runs.frames import read_spool
from arena.runs.record import EncodedRecord, Kind
from arena.runs.seal import Sealed
from arena.runs.verdicts import VerdictSummary
from judge.verdict import Verdict
from scoring.types import JsonObject


@dataclass(frozen=True, slots=True)
class Found:
    """A record with its seal, a verdict that came later, and what the log says of it."""

    record: EncodedRecord
    sealed: Sealed | None
    in_log: str
    later: Verdict | None = None


def found_in_files(directory: Path, name: str) -> Found:
    """A record of a race's directory or of an export, by run id or hash.

    Raises ProofError when there is none, SpoolError when the file cannot be read.
    """
    found: EncodedRecord | None = None
    sealed: Sealed | None = None
    later: Verdict | None = None
    for frame in read_spool(directory / RECORDS):
        record = frame.content.record
        run_id = record.value.get("run_id")
        if found is None and (name == record.hash or (name == run_id and record.kind is Kind.RUN)):
            found = record
            line = frame.content.seal_line
            sealed = Sealed.from_line(line) if line else None
        elif found is not None and record.kind is Kind.VERDICT:
            later = _verdict_on(record.value, found) or later
    if found is None:
        raise _nobody(name, str(directory))
    return Found(found, sealed, "where it stands in the log is not asked of files", later)


async def found_in_database(engine: AsyncEngine, name: str) -> Found:
    """A record of the database, by run id or hash of record or seal. Raises ProofError."""
    digest = _digest(name)
    seals, records = schema.seals.c, schema.records.c
    query = (
        select(records.content, seals.content.label("seal"), seals.signature)
        .select_from(schema.records)
        .outerjoin(schema.seals, seals.record_hash == records.record_hash)
    )
    run = select(schema.runs.c.record_hash).where(schema.runs.c.run_id == name)
    where = (
        or_(records.record_hash == digest, seals.seal_hash == digest)
        if digest is not None
        else records.record_hash.in_(run)
    )
    async with engine.connect() as connection:
        row = (await connection.execute(query.where(where))).first()
    if row is None:
        raise _nobody(name, "the database")
    record = _unpacked(row.content)
    sealed = Sealed(row.seal, row.signature) if row.seal is not None else None
    return Found(record, sealed, await _in_log(engine, record), await _later(engine, record))


async def _in_log(engine: AsyncEngine, record: EncodedRecord) -> str:
    try:
        proof = await TransparencyLog(engine).prove(record.hash)
    except ProofError:
        return "not in the log yet"
    head = proof.head.head
    return f"leaf {proof.index} of the log, under the head of {head.day} ({head.size} seals)"


async def _later(engine: AsyncEngine, record: EncodedRecord) -> Verdict | None:
    if record.kind is not Kind.RUN:
        return None
    verdicts = schema.verdicts.c
    query = (
        select(schema.records.c.content)
        .join(schema.verdicts, verdicts.record_hash == schema.records.c.record_hash)
        .where(verdicts.run_id == str(record.value["run_id"]), verdicts.later)
    )
    async with engine.connect() as connection:
        content = await connection.scalar(query)
    return None if content is None else _verdict_on(_unpacked(content).value, record)


def _verdict_on(value: JsonObject, run: EncodedRecord) -> Verdict | None:
    """The verdict of a record, when it is on this run."""
    if VerdictSummary.of(value).record_hash != run.hash:
        return None
    verdict = value["verdict"]
    assert isinstance(verdict, dict)
    return Verdict.from_json(verdict)


def _unpacked(content: bytes) -> EncodedRecord:
    return EncodedRecord(zstandard.decompress(content))


def _digest(name: str) -> bytes | None:
    try:
        return bytes.fromhex(name) if len(name) == 64 else None
    except ValueError:
        return None


def _nobody(name: str, where: str) -> ProofError:
    return ProofError(f"no record in {where} is called {name[:100]}", code="records.not_found")
