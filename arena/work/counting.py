"""Exactly one record counts for a problem of an evaluation by a validator: the first."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from arena.db import schema
from arena.work.exceptions import OtherRecordError, WorkError
from arena.work.holding import check_held, check_problems, is_held, lives, own_run, problems_of
from arena.work.views import RunView

_counted = schema.counted_records


async def count(
    connection: AsyncConnection,
    run: UUID,
    validator: str,
    problem_id: str,
    record_hash: str,
    now: datetime,
) -> bool:
    """Let a record count, in the caller's transaction; whether it is new.

    The record is stored before the transaction ends. The same one again is fine, also when
    the run has ended since: its answer was lost. As `WorkQueue.count_record` otherwise.
    """
    digest = _digest(record_hash)
    found = await own_run(connection, run, validator)
    check_problems(await problems_of(connection, found.evaluation_id), problem_id)
    if not is_held(found, now):
        if await _counted_for(connection, found, problem_id) == digest:
            return False
        check_held(found, now)
    statement = (
        insert(_counted)
        .values(
            evaluation_id=found.evaluation_id,
            validator=validator,
            problem_id=problem_id,
            record_hash=digest,
            run_id=run,
            counted_at=now,
        )
        .on_conflict_do_nothing()
        .returning(_counted.c.record_hash)
    )
    if await connection.scalar(statement) is not None:
        await lives(connection, found, now, counted=1)
        return True
    counted = await _counted_for(connection, found, problem_id)
    if counted == digest:
        return False
    raise OtherRecordError(
        f"record {record_hash} counts for another problem"
        if counted is None
        else f"another record counts for problem {problem_id} of run {run}"
    )


async def _counted_for(connection: AsyncConnection, run: RunView, problem_id: str) -> bytes | None:
    query = select(_counted.c.record_hash).where(
        _counted.c.evaluation_id == run.evaluation_id,
        _counted.c.validator == run.validator,
        _counted.c.problem_id == problem_id,
    )
    digest: bytes | None = await connection.scalar(query)
    return digest


def _digest(record_hash: str) -> bytes:
    try:
        digest = bytes.fromhex(record_hash)
    except ValueError:
        digest = b""
    if len(digest) != 32 or digest.hex() != record_hash:
        raise WorkError("a record's hash is 64 hexadecimal digits", code="work.bad_value")
    return digest
