"""A history tells a state, or is none."""

from __future__ import annotations

from uuid import UUID

import pytest

from arena.work.exceptions import WorkError
from arena.work.history import Change, replay
from arena.work.types import EvaluationState, RunState
from scoring.exceptions import Fault
from tests.unit.arena.work.desk import NOON, failed

WHICH, RUN, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)
OPEN, CLOSED, CANCELLED = EvaluationState
CLAIMED, RUNNING, STALE = RunState.CLAIMED, RunState.RUNNING, RunState.STALE


def history(*states: EvaluationState | RunState | tuple[UUID, RunState]) -> list[Change]:
    changes = []
    for state in states:
        if isinstance(state, EvaluationState):
            changes.append(Change(WHICH, state, NOON))
        else:
            run, came_to = state if isinstance(state, tuple) else (RUN, state)
            why = None if came_to is RunState.SUCCESS else failed().failure
            changes.append(Change(WHICH, came_to, NOON, run, f"val-{run.int}", None, why))
    return changes


def test_folding_gives_who_holds_and_who_finished() -> None:
    told = replay(
        history(OPEN, CLAIMED, RUNNING, STALE, (OTHER, CLAIMED), (OTHER, RUNNING))
        + history((UUID(int=4), CLAIMED), (UUID(int=4), RunState.SUCCESS))
    )
    assert told.state is OPEN
    assert told.runs == {RUN: STALE, OTHER: RUNNING, UUID(int=4): RunState.SUCCESS}
    assert told.holders == {OTHER: "val-3"}
    assert told.finishers == {UUID(int=4): "val-4"}


@pytest.mark.parametrize(("fault", "charged"), [(f, f is Fault.AGENT) for f in Fault])
def test_a_failure_finishes_an_evaluation_only_by_the_agents_fault(
    fault: Fault, charged: bool
) -> None:
    end = Change(WHICH, RunState.FAILED, NOON, RUN, "val", "val", failed(fault).failure)
    assert bool(replay([*history(OPEN, CLAIMED), end]).finishers) is charged


@pytest.mark.parametrize(
    "changes",
    [
        history(CLAIMED),
        history(CLOSED),
        history(OPEN, OPEN),
        history(OPEN, RUNNING),
        history(OPEN, CLAIMED, CLAIMED),
        history(OPEN, CLAIMED, RUNNING, RUNNING),
        history(OPEN, CLAIMED, STALE, RUNNING),
        history(OPEN, CLAIMED, STALE, RunState.SUCCESS),
        history(OPEN, STALE),
        history(OPEN, CLAIMED, CLOSED),
        history(OPEN, CLAIMED, CANCELLED),
        history(OPEN, CLOSED, CANCELLED),
        history(OPEN, CANCELLED, CLAIMED),
        [Change(WHICH, OPEN, NOON), Change(WHICH, CLAIMED, NOON, RUN)],
        [Change(WHICH, OPEN, NOON), Change(WHICH, CLAIMED, NOON, None, "val")],
    ],
)
def test_what_cannot_have_happened_is_refused(changes: list[Change]) -> None:
    with pytest.raises(WorkError) as caught:
        replay(changes)
    assert caught.value.code == "work.bad_history"
