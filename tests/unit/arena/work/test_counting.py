"""One record counts for each problem, and nothing else does."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text

from arena.exceptions import DatabaseError
from arena.work import counting
from arena.work.exceptions import LeaseExpiredError, OtherRecordError, WorkError
from tests.unit.arena.work.desk import LEASE, A, B, Desk, failed

pytestmark = pytest.mark.database


async def test_the_first_record_counts_and_the_same_again_is_fine(desk: Desk) -> None:
    evaluation = await desk.open()
    lease = await desk.claimed(A)
    assert await desk.count(lease, "p0", desk.first)
    assert not await desk.count(lease, "p0", desk.first)
    with pytest.raises(OtherRecordError):
        await desk.count(lease, "p0", desk.second)
    (result,) = (await desk.queue.results(evaluation.evaluation_id)).validators
    assert (result.validator, result.records, result.finished) == (A, {"p0": desk.first}, False)
    assert (await desk.queue.run(lease.run_id)).counted == 1


async def test_a_record_counts_once(desk: Desk) -> None:
    await desk.open(needed=2)
    mine, others = await desk.claimed(A), await desk.claimed(B)
    await desk.count(mine, "p0", desk.first)
    for lease, problem in ((mine, "p1"), (others, "p0")):
        with pytest.raises(OtherRecordError):
            await desk.count(lease, problem, desk.first)


async def test_what_was_counted_counts_on_after_the_lease_was_lost(desk: Desk) -> None:
    evaluation = await desk.open()
    lost = await desk.claimed(A)
    await desk.count(lost, "p0", desk.first)
    desk.later(LEASE.total_seconds())
    with pytest.raises(LeaseExpiredError):
        await desk.count(lost, "p1", desk.second)
    again = await desk.claimed(A)
    assert not await desk.count(again, "p0", desk.first)
    with pytest.raises(OtherRecordError):
        await desk.count(again, "p0", desk.second)
    assert await desk.count(again, "p1", desk.second)
    (result,) = (await desk.queue.results(evaluation.evaluation_id)).validators
    assert result.records == {"p0": desk.first, "p1": desk.second}


@pytest.mark.parametrize("how", ["expired", "failed", "succeeded"])
async def test_an_answer_that_was_lost_is_given_again_after_the_end(desk: Desk, how: str) -> None:
    await desk.open(problems=1)
    lease = await desk.claimed(A)
    await desk.count(lease, "p0")
    if how == "expired":
        await desk.queue.expire(desk.later(LEASE.total_seconds()))
    elif how == "failed":
        await desk.end(lease, failed())
    else:
        await desk.succeed(lease)
    before = await desk.queue.run(lease.run_id)
    assert not await desk.count(lease, "p0")
    assert await desk.queue.run(lease.run_id) == before


@pytest.mark.parametrize("digest", ["", "00", "zz" * 32, "AB" * 32, "ab " * 32, "00" * 33])
async def test_a_hash_that_is_none_is_refused(desk: Desk, digest: str) -> None:
    await desk.open()
    lease = await desk.claimed(A)
    with pytest.raises(WorkError) as caught:
        await desk.queue.count_record(lease.run_id, A, "p0", digest, desk.now)
    assert caught.value.code == "work.bad_value"


async def test_a_record_that_is_not_stored_does_not_count(desk: Desk) -> None:
    evaluation = await desk.open()
    lease = await desk.claimed(A)
    with pytest.raises(DatabaseError, match="foreign key"):
        await desk.queue.count_record(lease.run_id, A, "p0", desk.first, desk.now)
    assert (await desk.queue.results(evaluation.evaluation_id)).validators == ()


async def test_counting_and_storing_are_one_transaction_where_the_caller_wants_it(
    desk: Desk,
) -> None:
    evaluation = await desk.open()
    lease = await desk.claimed(A)
    store = text(
        "INSERT INTO records (record_hash, schema_version, size, content)"
        " VALUES (decode(:hash, 'hex'), 1, 0, '')"
    )
    async with desk.engine.connect() as connection:
        await counting.count(connection, lease.run_id, A, "p0", desk.first, desk.now)
        await connection.execute(store, {"hash": desk.first})
        await connection.rollback()
        assert (await desk.queue.results(evaluation.evaluation_id)).validators == ()
        await counting.count(connection, lease.run_id, A, "p0", desk.first, desk.now)
        await connection.execute(store, {"hash": desk.first})
        await connection.commit()
    (result,) = (await desk.queue.results(evaluation.evaluation_id)).validators
    assert result.records == {"p0": desk.first}


async def test_of_records_that_come_at_once_one_counts(desk: Desk) -> None:
    evaluation = await desk.open()
    lease = await desk.claimed(A)
    hashes = [desk.hash(i) for i in range(8)]
    told = await asyncio.gather(
        *(desk.count(lease, "p0", digest) for digest in hashes), return_exceptions=True
    )
    assert told.count(True) == 1
    assert sum(isinstance(answer, OtherRecordError) for answer in told) == 7
    (result,) = (await desk.queue.results(evaluation.evaluation_id)).validators
    assert result.records == {"p0": hashes[told.index(True)]}


async def test_one_record_that_comes_for_two_validators_at_once_counts_for_one(
    desk: Desk,
) -> None:
    await desk.open(needed=2)
    leases = [await desk.claimed(A), await desk.claimed(B)]
    await desk.store(desk.first)
    told = await asyncio.gather(
        *(desk.count(lease, "p0", desk.first) for lease in leases), return_exceptions=True
    )
    assert told.count(True) == 1
    assert sum(isinstance(answer, OtherRecordError) for answer in told) == 1
