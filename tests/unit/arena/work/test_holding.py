"""Who is heard of holds its run; who is not loses it, and only then."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import timedelta
from uuid import uuid4

import pytest

from arena.exceptions import Fault
from arena.work.exceptions import (
    InvalidProblemError,
    LeaseExpiredError,
    NotRunOwnerError,
    RunAlreadyCompleteError,
    RunNotFoundError,
    WorkError,
)
from arena.work.holding import IDLE, LONG
from arena.work.types import Lease, RunState
from arena.work.views import ProblemState
from tests.unit.arena.work.desk import LEASE, NOON, POLICY, A, B, Desk, failed

pytestmark = pytest.mark.database

CALLS = ("heartbeat", "started", "progress", "held", "count_record", "complete")


async def call(desk: Desk, name: str, run: Lease, validator: str | None = None) -> object:
    """One of the calls that a validator makes about a run that it holds."""
    who, problem = validator or run.validator, run.evaluation.problems[0]
    queue = desk.queue
    if name == "progress":
        await queue.progress(run.run_id, who, {problem: ProblemState.RUNNING}, desk.now)
        return None
    if name == "count_record":
        digest = desk.hash(run.run_id, who)
        await desk.store(digest)
        return await queue.count_record(run.run_id, who, problem, digest, desk.now)
    if name == "complete":
        return await queue.complete(run.run_id, who, failed(), desk.now)
    return await getattr(queue, name)(run.run_id, who, desk.now)


async def test_every_sign_of_life_holds_the_run_for_a_lease_more(desk: Desk) -> None:
    await desk.open()
    lease = await desk.claimed(A)
    for name in ("heartbeat", "started", "progress", "count_record"):
        desk.later(LEASE.total_seconds() - 1)
        await call(desk, name, lease)
        run = await desk.queue.run(lease.run_id)
        assert run.expires_at == desk.now + LEASE
        assert await desk.queue.expire(desk.now) == []
    assert run.state is RunState.RUNNING
    assert run.started_at == NOON + LEASE - timedelta(seconds=1)
    states = [change.state for change in await desk.queue.history(lease.evaluation.evaluation_id)]
    assert states == ["OPEN", RunState.CLAIMED, RunState.RUNNING]


async def test_a_heartbeat_tells_until_when(desk: Desk) -> None:
    await desk.open()
    lease = await desk.claimed(A)
    assert await desk.queue.heartbeat(lease.run_id, A, desk.later(7)) == desk.now + LEASE


async def test_looking_at_a_lease_does_not_lengthen_it(desk: Desk) -> None:
    evaluation = await desk.open()
    lease = await desk.claimed(A)
    desk.later(60)
    assert await desk.queue.held(lease.run_id, A, desk.now) == lease
    assert lease.evaluation == evaluation
    assert (await desk.queue.run(lease.run_id)).state is RunState.CLAIMED


async def test_who_is_only_heard_of_loses_its_seat_and_in_the_end_the_evaluation(
    desk: Desk,
) -> None:
    await desk.open()
    for _ in range(POLICY.tries):
        lease = await desk.claimed(A)
        deadline = desk.now + POLICY.patience
        while desk.now < deadline:
            assert await desk.queue.expire(desk.now) == []
            await desk.queue.heartbeat(lease.run_id, A, desk.later(100))
        (taken,) = await desk.queue.expire(desk.now)
        assert (taken.run_id, taken.state) == (lease.run_id, RunState.STALE)
        assert taken.failure is not None
        assert taken.failure.message == IDLE
        with pytest.raises(LeaseExpiredError):
            await desk.queue.heartbeat(lease.run_id, A, desk.now)
    assert await desk.claim(A) is None
    assert await desk.claim(B) is not None


async def test_who_brings_records_keeps_its_seat(desk: Desk) -> None:
    evaluation = await desk.open(problems=3)
    lease = await desk.claimed(A)
    for problem in evaluation.problems:
        for _ in range(70):
            await desk.queue.heartbeat(lease.run_id, A, desk.later(100))
        await desk.count(lease, problem)
        assert await desk.queue.expire(desk.now) == []
    assert desk.now > NOON + 2 * POLICY.patience


async def test_a_record_now_and_then_keeps_no_seat_beyond_the_longest_turn(desk: Desk) -> None:
    evaluation = await desk.open(problems=30)
    lease = await desk.claimed(A)
    began = desk.now
    problems = iter(evaluation.problems)
    while desk.now < began + POLICY.turn:
        assert await desk.queue.expire(desk.now) == []
        await desk.count(lease, next(problems))
        for _ in range(60):
            await desk.queue.heartbeat(lease.run_id, A, desk.later(100))
    (taken,) = await desk.queue.expire(desk.now)
    assert taken.failure is not None
    assert taken.failure.message == LONG
    assert await desk.claim(B) is not None


@pytest.mark.parametrize("name", CALLS)
async def test_another_validators_run_is_refused_and_unchanged(desk: Desk, name: str) -> None:
    await desk.open()
    lease = await desk.claimed(A)
    before = await desk.queue.run(lease.run_id)
    desk.later(1)
    with pytest.raises(NotRunOwnerError):
        await call(desk, name, lease, B)
    assert await desk.queue.run(lease.run_id) == before
    assert (await desk.queue.results(lease.evaluation.evaluation_id)).validators == ()


@pytest.mark.parametrize("name", CALLS)
async def test_a_run_that_does_not_exist_is_said_not_to(desk: Desk, name: str) -> None:
    evaluation = await desk.open()
    with pytest.raises(RunNotFoundError):
        await call(desk, name, Lease(uuid4(), evaluation, A, NOON))


@pytest.mark.parametrize("taken_back", [False, True])
@pytest.mark.parametrize("name", CALLS)
async def test_an_expired_lease_is_refused_whether_it_was_taken_back_or_not(
    desk: Desk, name: str, taken_back: bool
) -> None:
    await desk.open()
    lease = await desk.claimed(A)
    desk.later(LEASE.total_seconds())
    if taken_back:
        await desk.queue.expire(desk.now)
    before = await desk.queue.run(lease.run_id)
    with pytest.raises(LeaseExpiredError):
        await call(desk, name, lease)
    assert await desk.queue.run(lease.run_id) == before


@pytest.mark.parametrize("name", CALLS)
async def test_a_run_that_has_ended_is_held_by_nobody(desk: Desk, name: str) -> None:
    await desk.open()
    lease = await desk.claimed(A)
    await desk.end(lease, failed(Fault.PLATFORM))
    with pytest.raises(RunAlreadyCompleteError):
        await call(desk, name, lease)


async def test_only_what_has_expired_is_taken_back_and_history_says_why(desk: Desk) -> None:
    first, second = await desk.open(needed=2), await desk.open(race="race-1")
    stale = [await desk.claimed(A), await desk.claimed(B)]
    desk.later(60)
    alive = await desk.claim(A, working=[stale[0].run_id])
    assert alive is not None
    desk.later(60)
    assert {run.run_id for run in await desk.queue.expire(desk.now)} == {
        lease.run_id for lease in stale
    }
    assert await desk.queue.expire(desk.now) == []
    assert [run.run_id for run in await desk.queue.running()] == [alive.run_id]
    for evaluation in (first, second):
        changes = await desk.queue.history(evaluation.evaluation_id)
        for change in changes:
            if change.state is RunState.STALE:
                assert change.actor is None
                assert change.at == desk.now
                assert change.why is not None
                assert change.why.fault is Fault.VALIDATOR
    view = await desk.queue.evaluation(alive.evaluation.evaluation_id)
    assert (view.taken, view.finished, view.held) == (1, 0, 1)


async def test_after_a_clock_goes_back_no_lease_is_longer_than_one(desk: Desk) -> None:
    await desk.open()
    await desk.open()
    desk.later(86_400)
    silent, alive = await desk.claimed(A), await desk.claimed(B)
    desk.later(-86_400)
    await desk.queue.heartbeat(alive.run_id, B, desk.now)
    assert await desk.queue.expire(desk.now) == []
    await desk.queue.heartbeat(alive.run_id, B, desk.later(60))
    desk.later(60)
    assert [run.run_id for run in await desk.queue.expire(desk.now)] == [silent.run_id]


async def test_what_a_validator_says_of_its_problems_is_kept_last_word_first(desk: Desk) -> None:
    await desk.open(problems=12)
    lease = await desk.claimed(A)
    say = ProblemState
    await desk.queue.progress(
        lease.run_id, A, {"p11": say.RUNNING, "p2": say.FAILED, "p0": say.PENDING}, desk.now
    )
    await desk.queue.progress(lease.run_id, A, {"p11": say.SUCCESS}, desk.later(5))
    await desk.queue.progress(lease.run_id, A, {}, desk.later(5))
    found = await desk.queue.progress_of(lease.run_id)
    assert [(p.problem_id, p.state) for p in found] == [
        ("p0", say.PENDING),
        ("p2", say.FAILED),
        ("p11", say.SUCCESS),
    ]
    assert found[2].updated_at == NOON + timedelta(seconds=5)


@pytest.mark.parametrize("problem", ["p9", "", "p0\0", "\ud800", "p0'; --", "x" * 10_000])
@pytest.mark.parametrize("name", ["progress", "count"])
async def test_a_problem_that_is_not_the_evaluations_is_refused(
    desk: Desk, name: str, problem: str
) -> None:
    await desk.open()
    lease = await desk.claimed(A)
    before = await desk.queue.run(lease.run_id)
    desk.later(1)
    said = {"p0": ProblemState.SUCCESS, problem: ProblemState.SUCCESS}
    asked: Awaitable[object] = (
        desk.count(lease, problem, desk.first)
        if name == "count"
        else desk.queue.progress(lease.run_id, A, said, desk.now)
    )
    with pytest.raises(InvalidProblemError):
        await asked
    assert await desk.queue.progress_of(lease.run_id) == []
    assert await desk.queue.run(lease.run_id) == before


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "' OR ''='"])
async def test_a_hostile_name_owns_no_run(desk: Desk, name: str) -> None:
    await desk.open()
    lease = await desk.claimed(A)
    with pytest.raises(NotRunOwnerError) as caught:
        await desk.queue.heartbeat(lease.run_id, name, desk.now)
    assert isinstance(caught.value, WorkError)
