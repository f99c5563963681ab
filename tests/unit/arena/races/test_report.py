"""Rates are over all problems drawn, or no numbers at all."""

from __future__ import annotations

import io

from rich.console import Console

from arena.races.report import report
from arena.races.schedule import Board
from arena.races.show import duration, tables, verdict
from arena.runs.record import RunRecord, RunSummary
from scoring.exceptions import Fault
from scoring.types import Bucket
from tests.unit.arena import builders
from tests.unit.arena.builders import AGENT_FAULT, HOST_FAULT, PLATFORM_FAULT

PROBLEMS = [builders.problem(n) for n in range(1, 5)]
BUCKETS = [p.bucket for p in PROBLEMS]


def _board(*records: RunRecord) -> Board:
    labels = list(dict.fromkeys(r.agent.label for r in records))
    board = Board(labels, [p.problem_id for p in PROBLEMS])
    for record in records:
        board.add(RunSummary.of(record.encode().value))
    return board


def _agent(label: str, *successes: bool) -> list[RunRecord]:
    return [
        builders.record(p, label=label, recommended="1" if good else "2", axis="A" if good else "B")
        for p, good in zip(PROBLEMS, successes, strict=False)
    ]


def test_a_crash_counts_as_a_failure_in_every_rate() -> None:
    crashed = builders.record(PROBLEMS[3], failure=AGENT_FAULT, axis="B")
    (agent,) = report(_board(*_agent("alpha", True, True, False), crashed), BUCKETS)
    assert (agent.problems, agent.open) == (4, 0)
    assert (agent.asr, agent.asr_upstream, agent.axis_a_share) == (0.5, 0.5, 0.5)
    assert agent.by_bucket[Bucket.PRODUCT].asr == 0.5
    assert agent.by_axis["price"] == 0.5
    assert agent.failures == {Fault.AGENT: 1, Fault.VALIDATOR: 0, Fault.PLATFORM: 0}
    assert (agent.wall_s, agent.median_wall_s) == (8.0, 2.0)


def test_one_open_problem_makes_all_rates_incomplete() -> None:
    spoilt = builders.record(PROBLEMS[3], failure=HOST_FAULT)
    (agent,) = report(_board(*_agent("alpha", True, True, True), spoilt), BUCKETS)
    value = agent.to_json()
    assert value["asr"] is value["asr_upstream"] is value["axis_a_share"] is None
    assert value["by_bucket"] == {"product": {"problems": 4, "asr": None}}
    assert value["by_axis"] == {"price": None}
    assert value["failures"] == {"agent": 0, "validator": 1, "platform": 0}
    assert (value["problems"], value["open"]) == (4, 1)


def test_a_problem_that_was_never_run_is_open_too() -> None:
    (agent,) = report(_board(*_agent("alpha", True, True)), BUCKETS)
    assert (agent.open, agent.asr) == (2, None)
    assert sum(agent.failures.values()) == 0


def test_agents_rank_by_rate_and_incomplete_ones_last() -> None:
    board = _board(
        *_agent("low", True, False, False, False),
        *_agent("incomplete", True, True, True),
        builders.record(PROBLEMS[3], label="incomplete", failure=PLATFORM_FAULT),
        *_agent("high", True, True, False, False),
    )
    assert [a.name for a in report(board, BUCKETS)] == ["high", "low", "incomplete"]


def test_the_table_shows_names_as_text_and_says_what_is_open() -> None:
    board = _board(
        *_agent("[red]evil[/]", True, True, True, True),
        *_agent("other", True),
        builders.record(PROBLEMS[1], label="other", failure=HOST_FAULT),
    )
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(tables(report(board, BUCKETS)))
    text = console.export_text()
    assert "[red]evil[/]" in text
    assert "100.0" in text
    assert "open" in text
    assert "validator 1, not run 2" in text


def test_the_tables_fit_a_terminal_of_80_columns() -> None:
    names = ["ventriloquist", "pipeline", "react"]
    board = _board(*(record for name in names for record in _agent(name, True, True, True, False)))
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(tables(report(board, BUCKETS)))
    lines = console.export_text().splitlines()
    for name in names:
        assert sum(name in line for line in lines) == 2, lines


def test_it_says_who_won_and_over_whom() -> None:
    board = _board(*_agent("best", True, True, True, False), *_agent("next", True))
    assert "no winner yet: next has 3 of 4 problems open" in verdict(report(board, BUCKETS))
    board = _board(
        *_agent("best", True, True, True, False), *_agent("next", True, False, False, False)
    )
    assert verdict(report(board, BUCKETS)).startswith("best won: it solved 75.0 % of 4 problems.")
    assert "Next is next; it lost most on" in verdict(report(board, BUCKETS))


def test_it_names_no_winner_where_there_is_none() -> None:
    level = _board(*_agent("a", True, True, False, False), *_agent("b", True, True, False, False))
    assert verdict(report(level, BUCKETS)) == "a, b are level: each solved 50.0 % of 4 problems."
    nobody = _board(*_agent("a", *[False] * 4), *_agent("b", *[False] * 4))
    assert verdict(report(nobody, BUCKETS)) == "Nobody solved any of 4 problems."


def test_durations_are_for_people() -> None:
    shown = [duration(s) for s in (9.84, 59.94, 245, 7380)]
    assert shown == ["9.8 s", "59.9 s", "4 m 05 s", "2 h 03 m"]
