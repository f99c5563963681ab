"""Exactly one record counts for a problem of an evaluation by a validator: the first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from sqlalchemy import DateTime, LargeBinary, Text, Uuid, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from arena.work import history
from arena.work.exceptions import OtherRecordError, WorkError
from arena.work.holding import check_held, check_problems, is_held, own_run, problems_of
from arena.work.types import RunState
from arena.work.views import RunView


@dataclass(frozen=True, slots=True)
class Bid:
    """A record that is to count for a problem, in a turn of its validator."""

    run: UUID
    problem_id: str
    record_hash: str
    """In hex."""
    at: datetime


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
    _digest(record_hash)
    found = await own_run(connection, run, validator)
    check_problems(await problems_of(connection, found.evaluation_id), problem_id)
    (told,) = await count_all(connection, {run: found}, [Bid(run, problem_id, record_hash, now)])
    if isinstance(told, WorkError):
        raise told
    return told


async def count_all(
    connection: AsyncConnection, runs: Mapping[UUID, RunView], bids: Sequence[Bid]
) -> list[bool | WorkError]:
    """As `count` for each of the bids, in their order, in two or three statements.

    `runs` are the runs of the bids, locked in this transaction by their own validators, who
    were found to bid for problems of their evaluations. What is refused is told and not
    raised: the others count. Raises WorkError (`work.bad_value`).
    """
    digests = [_digest(bid.record_hash) for bid in bids]
    held = [i for i, bid in enumerate(bids) if is_held(runs[bid.run], bid.at)]
    new = await _insert(connection, runs, [bids[i] for i in held], [digests[i] for i in held])
    told: list[bool | WorkError | None] = [None] * len(bids)
    for i in held:
        key = (*_place(runs, bids[i]), digests[i])
        if key in new:
            new.discard(key)  # the same record again in these bids is not new
            told[i] = True
    rest = [i for i, answer in enumerate(told) if answer is None]
    there = await _counted(connection, [_place(runs, bids[i]) for i in rest])
    for i in rest:
        told[i] = _answer(runs[bids[i].run], bids[i], digests[i], there)
    await _write_started(connection, runs, [bids[i] for i in held if told[i] is True])
    return [answer for answer in told if answer is not None]


_Place = tuple[UUID, str, str]
"""Evaluation, validator, problem: what one record counts for."""

# A record that counts is a sign of life (`holding.lives`): of the first, too, a run is RUNNING.
_COUNT = text(
    """
    WITH counted AS (
        INSERT INTO counted_records
            (evaluation_id, validator, problem_id, record_hash, run_id, counted_at)
        SELECT evaluation_id, validator, problem_id, record_hash, run_id, at
        FROM unnest(:evaluations, :validators, :problems, :digests, :runs, :times)
            WITH ORDINALITY AS bid
            (evaluation_id, validator, problem_id, record_hash, run_id, at, number)
        ORDER BY number
        ON CONFLICT DO NOTHING
        RETURNING evaluation_id, validator, problem_id, record_hash, run_id, counted_at
    ), heard AS (
        UPDATE evaluation_runs AS run
        SET state = 'RUNNING', started_at = coalesce(run.started_at, lives.at),
            heard_at = lives.at, expires_at = lives.at + run.lease,
            counted = run.counted + lives.number
        FROM (
            SELECT run_id, max(counted_at) AS at, count(*) AS number FROM counted GROUP BY run_id
        ) AS lives
        WHERE run.run_id = lives.run_id
    )
    SELECT evaluation_id, validator, problem_id, record_hash FROM counted
    """
).bindparams(
    bindparam("evaluations", type_=ARRAY(Uuid)),
    bindparam("validators", type_=ARRAY(Text)),
    bindparam("problems", type_=ARRAY(Text)),
    bindparam("digests", type_=ARRAY(LargeBinary)),
    bindparam("runs", type_=ARRAY(Uuid)),
    bindparam("times", type_=ARRAY(DateTime(True))),
)

_COUNTED = text(
    """
    SELECT evaluation_id, validator, problem_id, record_hash
    FROM counted_records
    JOIN unnest(:evaluations, :validators, :problems)
        AS asked (evaluation_id, validator, problem_id)
        USING (evaluation_id, validator, problem_id)
    """
).bindparams(
    bindparam("evaluations", type_=ARRAY(Uuid)),
    bindparam("validators", type_=ARRAY(Text)),
    bindparam("problems", type_=ARRAY(Text)),
)


async def _insert(
    connection: AsyncConnection,
    runs: Mapping[UUID, RunView],
    bids: Sequence[Bid],
    digests: Sequence[bytes],
) -> set[tuple[UUID, str, str, bytes]]:
    """What counts from now on."""
    if not bids:
        return set()
    values = {
        **_columns([_place(runs, bid) for bid in bids]),
        "digests": list(digests),
        "runs": [bid.run for bid in bids],
        "times": [bid.at for bid in bids],
    }
    rows = await connection.execute(_COUNT, values)
    return {(row.evaluation_id, row.validator, row.problem_id, row.record_hash) for row in rows}


async def _counted(connection: AsyncConnection, places: Sequence[_Place]) -> dict[_Place, bytes]:
    """Which records count for these already."""
    if not places:
        return {}
    rows = await connection.execute(_COUNTED, _columns(sorted(set(places))))
    return {(row.evaluation_id, row.validator, row.problem_id): row.record_hash for row in rows}


def _answer(
    run: RunView, bid: Bid, digest: bytes, there: Mapping[_Place, bytes]
) -> bool | WorkError:
    """Of a record that did not count anew: it counts already (False), or why it does not."""
    counted = there.get((run.evaluation_id, run.validator, bid.problem_id))
    if counted == digest:
        return False
    try:
        check_held(run, bid.at)
    except WorkError as error:
        return error
    return OtherRecordError(
        f"record {bid.record_hash} counts for another problem"
        if counted is None
        else f"another record counts for problem {bid.problem_id} of run {bid.run}"
    )


async def _write_started(
    connection: AsyncConnection, runs: Mapping[UUID, RunView], counted: Sequence[Bid]
) -> None:
    """Write down which runs began to run with these."""
    heard: dict[UUID, list[datetime]] = defaultdict(list)
    for bid in counted:
        if runs[bid.run].state is RunState.CLAIMED:
            heard[bid.run].append(bid.at)
    await history.write(
        connection,
        [
            history.of_run(
                replace(runs[run], state=RunState.RUNNING), max(at), actor=runs[run].validator
            )
            for run, at in heard.items()
        ],
    )


def _place(runs: Mapping[UUID, RunView], bid: Bid) -> _Place:
    run = runs[bid.run]
    return run.evaluation_id, run.validator, bid.problem_id


def _columns(places: Sequence[_Place]) -> dict[str, list[object]]:
    return {
        "evaluations": [place[0] for place in places],
        "validators": [place[1] for place in places],
        "problems": [place[2] for place in places],
    }


def _digest(record_hash: str) -> bytes:
    try:
        digest = bytes.fromhex(record_hash)
    except ValueError:
        digest = b""
    if len(digest) != 32 or digest.hex() != record_hash:
        raise WorkError("a record's hash is 64 hexadecimal digits", code="work.bad_value")
    return digest
