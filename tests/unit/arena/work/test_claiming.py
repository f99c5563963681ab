"""Who gets what, in which order, and who gets nothing."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from arena.exceptions import Fault
from arena.work.exceptions import AtCapacityError, WorkError
from arena.work.policy import WorkPolicy
from arena.work.queue import WorkQueue
from arena.work.types import RunState
from tests.unit.arena.work.desk import LEASE, NOON, A, B, C, Desk, failed

pytestmark = pytest.mark.database


async def test_an_empty_queue_has_nothing(desk: Desk) -> None:
    assert await desk.claim(A) is None


async def test_a_claim_is_a_lease_on_an_evaluation(desk: Desk) -> None:
    evaluation = await desk.open()
    lease = await desk.claimed(A)
    assert lease.evaluation == evaluation
    assert (lease.validator, lease.expires_at, lease.resumed) == (A, NOON + LEASE, False)
    run = await desk.queue.run(lease.run_id)
    assert (run.state, run.attempt, run.claimed_at) == (RunState.CLAIMED, 1, NOON)


async def test_no_more_validators_than_are_needed(desk: Desk) -> None:
    await desk.open(needed=2)
    assert (await desk.claimed(A)).run_id != (await desk.claimed(B)).run_id
    assert await desk.claim(C) is None


async def test_who_has_finished_an_evaluation_never_gets_it_again(desk: Desk) -> None:
    await desk.open(needed=2)
    await desk.succeed(await desk.claimed(A))
    for _ in range(3):
        desk.later(100_000)
        assert await desk.claim(A) is None
    assert await desk.claim(B) is not None


async def test_a_finished_seat_is_not_free(desk: Desk) -> None:
    await desk.open(needed=1)
    await desk.succeed(await desk.claimed(A))
    assert await desk.claim(B) is None


async def test_races_come_before_qualifying_and_the_oldest_first(desk: Desk) -> None:
    qualifying = await desk.open()
    desk.later(1)
    older = await desk.open(race="race-1")
    desk.later(1)
    newer = await desk.open(race="race-1")
    found = [(await desk.claimed(v)).evaluation for v in (A, B, C)]
    assert found == [older, newer, qualifying]


async def test_a_lost_answer_is_given_again(desk: Desk) -> None:
    """The validator never heard of its run: nothing was heard of it."""
    await desk.open()
    await desk.open()
    first = await desk.claimed(A)
    desk.later(1)
    again = await desk.claimed(A)
    assert (again.run_id, again.resumed, again.expires_at) == (first.run_id, True, desk.now + LEASE)


async def test_who_restarts_says_so_and_gets_its_own_back_at_once(desk: Desk) -> None:
    first = await desk.open()
    desk.later(1)
    await desk.open()
    lease = await desk.claimed(A)
    await desk.queue.heartbeat(lease.run_id, A, desk.later(10))
    again = await desk.claim(A, capacity=1, working=())
    assert again is not None
    assert (again.run_id, again.evaluation, again.resumed) == (lease.run_id, first, True)
    assert (await desk.queue.run(lease.run_id)).state is RunState.RUNNING


async def test_who_does_not_say_gets_a_silent_run_back_after_half_its_lease(desk: Desk) -> None:
    await desk.open()
    await desk.open()
    lease = await desk.claimed(A)
    await desk.queue.heartbeat(lease.run_id, A, desk.now)
    desk.later(LEASE.total_seconds() / 2 - 1)
    with pytest.raises(AtCapacityError):
        await desk.claim(A, capacity=1)
    desk.later(1)
    again = await desk.claim(A, capacity=1)
    assert again is not None
    assert (again.run_id, again.resumed) == (lease.run_id, True)


async def test_beyond_its_capacity_a_validator_is_refused(desk: Desk) -> None:
    for _ in range(3):
        await desk.open()
    runs: list[UUID] = []
    for _ in range(2):
        lease = await desk.claim(A, capacity=2, working=runs)
        assert lease is not None
        assert not lease.resumed
        runs.append(lease.run_id)
    with pytest.raises(AtCapacityError):
        await desk.claim(A, capacity=2, working=runs)
    assert await desk.claim(A, capacity=3, working=runs) is not None
    with pytest.raises(AtCapacityError):
        await desk.claim(B, capacity=0)


async def test_ended_runs_take_no_capacity(desk: Desk) -> None:
    for _ in range(4):
        await desk.open()
    for ended in (failed(), failed(Fault.PLATFORM)):
        lease = await desk.claim(A, capacity=1)
        assert lease is not None
        await desk.end(lease, ended)
    lease = await desk.claim(A, capacity=1)
    assert lease is not None
    await desk.succeed(lease)
    assert await desk.claim(A, capacity=1) is not None


async def test_what_went_stale_comes_first_and_as_resumed(desk: Desk) -> None:
    mine = await desk.open()
    lease = await desk.claimed(A)
    await desk.open(race="race-1")
    desk.later(LEASE.total_seconds())
    again = await desk.claimed(A)
    assert (again.evaluation, again.resumed) == (mine, True)
    assert again.run_id != lease.run_id
    assert (await desk.queue.run(lease.run_id)).state is RunState.STALE


async def test_what_went_stale_and_failed_since_does_not_come_first_any_more(desk: Desk) -> None:
    mine = await desk.open()
    await desk.claimed(A)
    race = await desk.open(race="race-1")
    desk.later(LEASE.total_seconds())
    await desk.end(await desk.claimed(A), failed())
    desk.later(100_000)
    assert (await desk.claimed(A)).evaluation == race
    assert (await desk.claimed(B)).evaluation == mine


async def test_a_stale_lease_is_the_next_ones(desk: Desk) -> None:
    evaluation = await desk.open()
    await desk.claimed(A)
    await desk.queue.expire(desk.later(LEASE.total_seconds()))
    taken = await desk.claimed(B)
    assert (taken.evaluation, taken.resumed) == (evaluation, False)
    assert await desk.claim(A) is None


async def test_after_a_failure_others_come_first_and_the_same_one_again_later(
    desk: Desk,
) -> None:
    evaluation = await desk.open()
    await desk.end(await desk.claimed(A), failed())
    assert await desk.claim(A) is None
    desk.later(59)
    assert await desk.claim(A) is None
    desk.later(1)
    again = await desk.claimed(A)
    assert (again.evaluation, again.resumed) == (evaluation, True)


async def test_waits_grow_up_to_a_bound_and_tries_end(desk: Desk) -> None:
    evaluation = await desk.open()
    for wait in (60, 120):
        await desk.end(await desk.claimed(A), failed())
        desk.later(wait - 1)
        assert await desk.claim(A) is None
        desk.later(1)
    assert await desk.queue.out_of_tries(evaluation.evaluation_id) == frozenset()
    await desk.end(await desk.claimed(A), failed(Fault.PLATFORM))
    desk.later(1_000_000)
    assert await desk.claim(A) is None
    assert await desk.queue.out_of_tries(evaluation.evaluation_id) == {A}
    assert (await desk.claimed(B)).evaluation == evaluation


async def test_silence_without_a_record_uses_tries_up_and_with_one_it_does_not(
    desk: Desk,
) -> None:
    evaluation = await desk.open(problems=9)
    for i in range(5):
        await desk.count(await desk.claimed(A), f"p{i}")
        desk.later(LEASE.total_seconds())
    assert await desk.queue.out_of_tries(evaluation.evaluation_id) == frozenset()
    for _ in range(3):
        await desk.claimed(A)
        desk.later(LEASE.total_seconds())
    assert await desk.claim(A) is None
    assert await desk.queue.out_of_tries(evaluation.evaluation_id) == {A}


async def test_a_clock_that_went_back_blocks_nobody(desk: Desk) -> None:
    """A failure that lies in the future cannot tell how long to wait."""
    await desk.open()
    desk.later(86_400)
    await desk.end(await desk.claimed(A), failed())
    desk.later(-86_400)
    assert await desk.claim(A) is not None


async def test_a_cancelled_evaluation_is_not_claimed(desk: Desk) -> None:
    evaluation = await desk.open(needed=2)
    await desk.claimed(A)
    await desk.queue.cancel(evaluation.version, "withdrawn", desk.now)
    assert await desk.claim(B) is None
    assert await desk.claim(A) is None


@pytest.mark.parametrize(
    "name", ["'; DROP TABLE evaluations; --", 'val" OR 1=1', "%_\\", "日本 🦊", "x" * 200]
)
async def test_a_validators_name_is_only_a_name(desk: Desk, name: str) -> None:
    await desk.open(needed=2)
    lease = await desk.claimed(name)
    await desk.succeed(lease)
    assert (await desk.queue.run(lease.run_id)).validator == name
    assert await desk.claim(name) is None
    assert await desk.claim(A) is not None


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", "x" * 201])
async def test_a_name_that_cannot_be_stored_is_refused(desk: Desk, name: str) -> None:
    await desk.open()
    with pytest.raises(WorkError) as caught:
        await desk.claim(name)
    assert caught.value.code == "work.bad_value"
    assert caught.value.fault is Fault.CALLER


async def test_times_need_a_zone_and_leases_a_length(desk: Desk) -> None:
    with pytest.raises(ValueError, match="zone"):
        await desk.queue.claim(A, capacity=1, now=NOON.replace(tzinfo=None), lease=LEASE)
    with pytest.raises(ValueError, match="lease"):
        await desk.queue.claim(A, capacity=1, now=NOON, lease=timedelta(0))


async def test_runs_that_a_validator_made_up_change_nothing(desk: Desk) -> None:
    await desk.open()
    lease = await desk.claim(A, working=[uuid4()])
    assert lease is not None
    again = await desk.claim(A, working=[uuid4()])
    assert again is not None
    assert again.run_id == lease.run_id


async def test_each_queue_has_its_own_policy(desk: Desk) -> None:
    strict = WorkQueue(desk.engine, WorkPolicy(tries=1))
    await desk.open()
    await desk.end(await desk.claimed(A), failed())
    desk.later(1_000_000)
    assert await strict.claim(A, capacity=1, now=desk.now, lease=LEASE) is None
    assert await desk.claim(A) is not None
