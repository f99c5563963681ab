"""How runs end, what counts, and whose fault costs whom what."""

from __future__ import annotations

import asyncio

import pytest

from arena.exceptions import Fault
from arena.work.exceptions import (
    IncompleteRunError,
    LeaseExpiredError,
    RunAlreadyCompleteError,
    WorkError,
)
from arena.work.types import Ended, EvaluationState, RunState
from scoring.exceptions import ErrorInfo
from tests.unit.arena.work.desk import LEASE, SUCCESS, A, B, Desk, failed

pytestmark = pytest.mark.database

AGENT = failed(Fault.AGENT)


async def test_success_fills_a_seat_and_the_last_one_closes_the_evaluation(desk: Desk) -> None:
    evaluation = await desk.open(needed=2)
    first, second = await desk.claimed(A), await desk.claimed(B)
    done = await desk.succeed(first)
    assert done.run.state is RunState.SUCCESS
    assert done.run.finishes
    view = done.evaluation
    assert (view.state, view.finished, view.held) == (EvaluationState.OPEN, 1, 1)
    view = (await desk.succeed(second)).evaluation
    assert (view.state, view.finished, view.wanted) == (EvaluationState.CLOSED, 2, 0)
    assert view.ended_at == desk.now
    results = await desk.queue.results(evaluation.evaluation_id)
    assert [result.validator for result in results.finished] == [A, B]
    assert await desk.queue.open_evaluations() == []


@pytest.mark.parametrize("ended", [SUCCESS, AGENT, failed(Fault.AGENT, RunState.TIMED_OUT)])
async def test_nothing_counts_before_every_problem_has_its_record(desk: Desk, ended: Ended) -> None:
    """A validator's word that the agent failed is not enough either."""
    await desk.open(problems=2)
    lease = await desk.claimed(A)
    await desk.count(lease, "p0")
    with pytest.raises(IncompleteRunError, match="1 of 2"):
        await desk.end(lease, ended)
    assert (await desk.queue.run(lease.run_id)).state is RunState.RUNNING
    await desk.count(lease, "p1")
    assert (await desk.end(lease, ended)).evaluation.state is EvaluationState.CLOSED


@pytest.mark.parametrize("fault", [Fault.VALIDATOR, Fault.PLATFORM, Fault.CALLER])
@pytest.mark.parametrize("state", [RunState.FAILED, RunState.TIMED_OUT])
async def test_any_other_fault_counts_for_nothing_and_sends_it_to_somebody_else(
    desk: Desk, fault: Fault, state: RunState
) -> None:
    evaluation = await desk.open()
    lease = await desk.claimed(A)
    await desk.count_all(lease)
    done = await desk.end(lease, failed(fault, state))
    assert not done.run.finishes
    assert (done.evaluation.finished, done.evaluation.wanted) == (0, 1)
    results = await desk.queue.results(evaluation.evaluation_id)
    assert results.finished == ()
    assert (await desk.claimed(B)).evaluation == evaluation


async def test_whose_records_are_there_needs_no_new_ones_after_a_failure(desk: Desk) -> None:
    await desk.open()
    lease = await desk.claimed(A)
    await desk.count_all(lease)
    await desk.end(lease, failed())
    desk.later(60)
    again = await desk.claimed(A)
    assert (await desk.end(again, SUCCESS)).evaluation.state is EvaluationState.CLOSED


@pytest.mark.parametrize("ended", [SUCCESS, AGENT, failed()])
async def test_the_same_ending_again_gives_the_same_also_after_the_lease(
    desk: Desk, ended: Ended
) -> None:
    evaluation = await desk.open()
    lease = await desk.claimed(A)
    await desk.count_all(lease)
    first = await desk.end(lease, ended)
    history = await desk.queue.history(evaluation.evaluation_id)
    desk.later(LEASE.total_seconds() * 2)
    assert await desk.end(lease, ended) == first
    assert await desk.queue.history(evaluation.evaluation_id) == history


@pytest.mark.parametrize("first", [SUCCESS, AGENT, failed()])
@pytest.mark.parametrize("second", [SUCCESS, AGENT, failed(), failed(Fault.PLATFORM)])
async def test_another_ending_is_refused(desk: Desk, first: Ended, second: Ended) -> None:
    await desk.open()
    lease = await desk.claimed(A)
    await desk.count_all(lease)
    done = await desk.end(lease, first)
    if first != second:
        with pytest.raises(RunAlreadyCompleteError):
            await desk.end(lease, second)
    assert await desk.queue.run(lease.run_id) == done.run


async def test_a_late_success_does_not_mend_a_stale_run(desk: Desk) -> None:
    await desk.open()
    lease = await desk.claimed(A)
    await desk.count_all(lease)
    await desk.queue.expire(desk.later(LEASE.total_seconds()))
    with pytest.raises(LeaseExpiredError):
        await desk.end(lease, SUCCESS)
    assert (await desk.queue.run(lease.run_id)).state is RunState.STALE


async def test_endings_at_once_are_one_ending(desk: Desk) -> None:
    evaluation = await desk.open(needed=2)
    lease = await desk.claimed(A)
    await desk.count_all(lease)
    told = await asyncio.gather(*(desk.end(lease, SUCCESS) for _ in range(6)))
    assert all(completion.run == told[0].run for completion in told)
    assert (await desk.queue.evaluation(evaluation.evaluation_id)).finished == 1
    states = [c.state for c in await desk.queue.history(evaluation.evaluation_id)]
    assert states.count(RunState.SUCCESS) == 1


@pytest.mark.parametrize(
    "ended",
    [
        Ended(RunState.SUCCESS, ErrorInfo("x", Fault.AGENT, "")),
        Ended(RunState.FAILED),
        Ended(RunState.TIMED_OUT),
        *(
            Ended(state, ErrorInfo("x", Fault.VALIDATOR, ""))
            for state in (RunState.CLAIMED, RunState.RUNNING, RunState.STALE, RunState.CANCELLED)
        ),
    ],
)
async def test_an_ending_that_is_none_is_refused(desk: Desk, ended: Ended) -> None:
    await desk.open()
    lease = await desk.claimed(A)
    with pytest.raises(WorkError) as caught:
        await desk.end(lease, ended)
    assert caught.value.code == "work.bad_value"


async def test_hostile_text_of_a_failure_is_bounded_and_stored(desk: Desk) -> None:
    evaluation = await desk.open()
    lease = await desk.claimed(A)
    why = ErrorInfo("c\0" * 500, Fault.VALIDATOR, "\0'; DROP TABLE records; -- \ud800" + "x" * 9999)
    ended = Ended(RunState.FAILED, why)
    done = await desk.end(lease, ended)
    stored = done.run.failure
    assert stored is not None
    assert "\0" not in stored.message + stored.code
    assert stored.message.startswith("�'; DROP TABLE records; -- ?")
    assert len(stored.message) == 2_000
    assert len(stored.code) == 200
    assert await desk.end(lease, ended) == done
    assert (await desk.queue.history(evaluation.evaluation_id))[-1].why == stored


async def test_cancelling_ends_what_is_open_of_a_version_and_nothing_else(desk: Desk) -> None:
    kept = await desk.open()
    ended = await desk.open(race="race-1")
    desk.later(1)
    other = await desk.open(race="race-2", version=ended.version, needed=2)
    await desk.succeed(await desk.claimed(A))
    await desk.open(race="race-1", version=ended.version)  # the same: changes nothing
    running = await desk.claimed(A)
    assert running.evaluation == other
    await desk.count(running, "p0")
    desk.later(5)
    assert await desk.queue.cancel(ended.version, "it cheats\0", desk.now) == [other.evaluation_id]
    run = await desk.queue.run(running.run_id)
    assert run.state is RunState.CANCELLED
    assert run.failure == ErrorInfo("work.cancelled", Fault.PLATFORM, "it cheats�")
    view = await desk.queue.evaluation(other.evaluation_id)
    assert (view.state, view.taken, view.wanted) == (EvaluationState.CANCELLED, 0, 0)
    for call in (desk.end(running, failed()), desk.count(running, "p1")):
        with pytest.raises(RunAlreadyCompleteError):
            await call
    assert await desk.queue.cancel(ended.version, "again", desk.now) == []
    assert (await desk.queue.evaluation(ended.evaluation_id)).state is EvaluationState.CLOSED
    assert (await desk.claimed(B)).evaluation == kept
