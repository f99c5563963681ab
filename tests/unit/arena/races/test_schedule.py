"""Order is fair, and what is closed is never run again."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.races.schedule import Board, Task, interleaved
from arena.runs.record import RunSummary
from scoring.exceptions import ErrorInfo
from tests.unit.arena import builders
from tests.unit.arena.builders import AGENT_FAULT, HOST_FAULT


def _summary(
    agent: str, number: int, failure: ErrorInfo | None = None, attempt: int = 1
) -> RunSummary:
    record = builders.record(
        builders.problem(number), label=agent, failure=failure, attempt=attempt
    )
    return RunSummary.of(record.encode().value)


@given(st.integers(1, 8), st.integers(0, 30))
def test_every_agent_progresses_alike(agents: int, problems: int) -> None:
    order = list(interleaved(agents, problems))
    assert len(order) == len(set(order)) == agents * problems
    for until in range(len(order)):
        counts = [sum(t.agent == a for t in order[:until]) for a in range(agents)]
        assert max(counts) - min(counts) <= 1 or agents == 1


def test_who_begins_a_problem_rotates() -> None:
    firsts = [t.agent for t in itertools.islice(interleaved(3, 6), 0, None, 3)]
    assert firsts == [0, 1, 2, 0, 1, 2]


def test_closed_runs_are_not_open_again_whoever_closed_them() -> None:
    board = Board(["a", "b"], ["p1", "p2"])
    board.add(_summary("a", 1))
    board.add(_summary("b", 1, AGENT_FAULT))
    assert board.open() == [Task(1, 1), Task(1, 0)]
    assert board.closed == 2


def test_a_run_that_the_host_failed_stays_open_and_counts_its_attempts() -> None:
    board = Board(["a"], ["p1"])
    assert board.next_attempt(Task(0, 0)) == 1
    board.add(_summary("a", 1, HOST_FAULT, attempt=3))
    assert board.open() == [Task(0, 0)]
    assert board.next_attempt(Task(0, 0)) == 4


def test_the_first_outcome_stands_against_later_attempts() -> None:
    board = Board(["a"], ["p1"])
    board.add(_summary("a", 1, HOST_FAULT))
    board.add(_summary("a", 1, attempt=2))
    board.add(_summary("a", 1, AGENT_FAULT, attempt=3))
    board.add(_summary("a", 1, HOST_FAULT, attempt=4))
    (known,) = board.results(0)
    assert known is not None
    assert known.success
    assert known.attempt == 2


def test_a_result_of_another_race_is_not_taken() -> None:
    with pytest.raises(KeyError):
        Board(["a"], ["p1"]).add(_summary("z", 1))
