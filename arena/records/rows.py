"""Sealed records as rows of four tables, and the one statement that stores them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

import zstandard
from sqlalchemy import Table, TextClause, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from arena.db import schema
from arena.exceptions import SealError
from arena.records.chains import seal_row
from arena.runs.record import RECORD_SCHEMA, EncodedRecord, Kind, RunSummary
from arena.runs.seal import Sealed, SealedRecord
from arena.runs.verdicts import VerdictSummary
from judge.verdict import Verdict

Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of `records`, `runs` and `verdicts`."""

    records: list[Row]
    runs: list[Row]
    verdicts: list[Row]

    @classmethod
    def joined(cls, some: Sequence[Rows]) -> Rows:
        """All of them, in their order."""
        return cls(
            [row for rows in some for row in rows.records],
            [row for rows in some for row in rows.runs],
            [row for rows in some for row in rows.verdicts],
        )


@dataclass(frozen=True, slots=True)
class Added:
    """What was not there before: runs and verdicts by run and record, seals by their hashes."""

    runs: set[tuple[object, object]]
    verdicts: set[tuple[object, object]]
    seals: set[bytes]


def rows_of(sealed: Sequence[SealedRecord]) -> Rows:
    """Read and compress records. Raises SealError for a seal of another record."""
    for one in sealed:
        if not one.bound:
            raise SealError(f"seal {one.sealed.hash} is of another record than it stands beside")
    records = [one.record for one in sealed]
    found = [_verdict_row(record) for record in records]
    return Rows(
        [_record_row(record) for record in records],
        [_run_row(record) for record in records if record.kind is Kind.RUN],
        [row for row in found if row is not None],
    )


async def insert_rows(connection: AsyncConnection, rows: Rows, seals: Sequence[Sealed]) -> Added:
    """Store rows and seals; those that are there already stay, and are not in the answer.

    Raises SealError for bytes that are no seal.
    """
    values: Row = {}
    for table, order, some in (
        (schema.records, "record_hash", rows.records),
        (schema.runs, "run_id", rows.runs),
        (schema.verdicts, "run_id", rows.verdicts),
        (schema.seals, "seal_hash", [seal_row(sealed) for sealed in seals]),
    ):
        # In one order for everybody, so that no two transactions wait for each other.
        ordered = sorted(some, key=lambda row: cast("bytes | str", row[order]))
        for name in _columns(table):
            values[_parameter(table, name)] = [row[name] for row in ordered]
    added = Added(set(), set(), set())
    for what, run_id, digest in await connection.execute(_STORE, values):
        if what == "seal":
            added.seals.add(digest)
        else:
            (added.runs if what == "run" else added.verdicts).add((run_id, digest))
    return added


def _columns(table: Table) -> list[str]:
    return [column.name for column in table.c if column.name != "stored_at"]


def _parameter(table: Table, column: str) -> str:
    return f"{table.name}_{column}"


def _insert(table: Table) -> str:
    names = ", ".join(_columns(table))
    arrays = ", ".join(f":{_parameter(table, name)}" for name in _columns(table))
    return (
        f"INSERT INTO {table.name} ({names}) SELECT * FROM unnest({arrays}) ON CONFLICT DO NOTHING"  # noqa: S608
    )


def _statement() -> TextClause:
    """All four inserts at once. References between them are checked at the statement's end."""
    tables = (schema.records, schema.runs, schema.verdicts, schema.seals)
    statement = text(
        f"""
        WITH new_records AS ({_insert(schema.records)}),
            new_runs AS ({_insert(schema.runs)} RETURNING run_id, record_hash),
            new_verdicts AS ({_insert(schema.verdicts)} RETURNING run_id, record_hash),
            new_seals AS ({_insert(schema.seals)} RETURNING seal_hash)
        SELECT 'run', run_id, record_hash FROM new_runs
        UNION ALL SELECT 'verdict', run_id, record_hash FROM new_verdicts
        UNION ALL SELECT 'seal', NULL, seal_hash FROM new_seals
        """  # noqa: S608 - names of tables and columns, from the schema
    )
    return statement.bindparams(
        *(
            bindparam(_parameter(table, name), type_=ARRAY(table.c[name].type))
            for table in tables
            for name in _columns(table)
        )
    )


_STORE = _statement()


def _record_row(record: EncodedRecord) -> Row:
    return {
        "record_hash": bytes.fromhex(record.hash),
        "schema_version": RECORD_SCHEMA,
        "size": len(record.content),
        "content": zstandard.ZstdCompressor(level=6).compress(record.content),
    }


def _run_row(record: EncodedRecord) -> Row:
    summary = RunSummary.of(record.value)
    timing = cast("dict[str, str]", record.value["timing"])
    failure = summary.failure
    return {
        "run_id": summary.run_id,
        "race_id": record.value["race_id"],
        "agent": summary.agent,
        "problem_id": summary.problem_id,
        "attempt": summary.attempt,
        "closed": summary.closed,
        "success": summary.success if summary.closed else None,
        "success_upstream": summary.success_upstream if summary.closed else None,
        "axis": summary.axis,
        "failure_code": failure.code if failure else None,
        "failure_fault": failure.fault.value if failure else None,
        "wall_s": summary.wall_s,
        "started_at": datetime.fromisoformat(timing["started_at"]),
        "finished_at": datetime.fromisoformat(timing["finished_at"]),
        "record_hash": bytes.fromhex(record.hash),
    }


def _verdict_row(record: EncodedRecord) -> Row | None:
    """The verdict that a record holds: of a run's own, or of a later one. None without one."""
    value = record.value
    if record.kind is Kind.VERDICT:
        later = VerdictSummary.of(value)
        verdict, worth, score = later.verdict, later.coefficient, later.final_score
    else:
        run = RunSummary.of(value)
        if not isinstance(run.judgement, Verdict) or run.coefficient is None:
            return None
        verdict, worth, score = run.judgement, run.coefficient, run.final_score or 0.0
    return {
        "run_id": value["run_id"],
        "quality": verdict.quality,
        "gate": verdict.gate.value,
        "coefficient": worth,
        "final_score": score,
        "standin": verdict.standin,
        "later": record.kind is Kind.VERDICT,
        "record_hash": bytes.fromhex(record.hash),
    }
