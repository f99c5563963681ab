"""Rates are over all problems drawn, or no numbers at all."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from arena.races.report import report
from arena.races.schedule import Board
from arena.races.show import duration, tables, verdict
from arena.runs.record import RunRecord, RunSummary
from arena.runs.verdicts import VerdictSummary
from judge.verdict import Gate, Unjudged
from scoring.coefficient import coefficient
from scoring.exceptions import ErrorInfo, Fault
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
    bucket = {"problems": 4, "asr": None, "score": None, "coefficient": None}
    assert value["by_bucket"] == {"product": bucket}
    assert value["by_axis"] == {"price": None}
    assert value["failures"] == {"agent": 0, "validator": 1, "platform": 0}
    assert (value["problems"], value["open"]) == (4, 1)


def test_a_problem_that_was_never_run_is_open_too() -> None:
    (agent,) = report(_board(*_agent("alpha", True, True)), BUCKETS)
    assert (agent.open, agent.asr) == (2, None)
    assert sum(agent.failures.values()) == 0


def _judged(label: str, *runs: tuple[bool, Gate]) -> list[RunRecord]:
    return [
        builders.record(p, label=label, recommended="1" if good else "2", gate=gate)
        for p, (good, gate) in zip(PROBLEMS, runs, strict=False)
    ]


FAILED = Unjudged(ErrorInfo("judge.unjudged", Fault.VALIDATOR, "no"), 2, ("model.timeout",) * 2)


def test_the_score_is_the_mean_of_success_times_coefficient_over_all_problems() -> None:
    runs = [(True, Gate.PASSED), (True, Gate.REFERENCE), (False, Gate.PASSED)]
    crashed = builders.record(PROBLEMS[3], failure=AGENT_FAULT, gate=Gate.INFERENCE)
    (agent,) = report(_board(*_judged("alpha", *runs), crashed), BUCKETS)
    assert agent.score == pytest.approx((1 + 0.5625) / 4)
    assert agent.coefficient == pytest.approx((1 + 0.5625 + 1 + 0.3875) / 4)
    assert agent.score_sn15 == pytest.approx(0.5 * coefficient((0.9 + 0.3 + 0.9 + 0.1) / 4))
    assert agent.by_bucket[Bucket.PRODUCT].score == agent.score
    assert (agent.unjudged, agent.judging_failed) == (0, False)


def test_an_unjudged_run_is_no_zero_and_shrinks_no_denominator() -> None:
    runs = [(True, Gate.PASSED)] * 3
    unjudged = builders.record(PROBLEMS[3], unjudged=FAILED)
    (agent,) = report(_board(*_judged("alpha", *runs), unjudged), BUCKETS)
    assert agent.score is agent.coefficient is None
    assert agent.by_bucket[Bucket.PRODUCT].score is None
    assert (agent.asr, agent.unjudged) == (1.0, 1)
    assert agent.score_sn15 == pytest.approx(coefficient(0.9 * 3 / 4))
    assert agent.judging_failed is False  # two of five calls


def test_an_open_problem_has_no_score_either() -> None:
    runs = [(True, Gate.PASSED)] * 3
    spoilt = builders.record(PROBLEMS[3], failure=HOST_FAULT)
    (agent,) = report(_board(*_judged("alpha", *runs), spoilt), BUCKETS)
    assert agent.score is agent.coefficient is agent.score_sn15 is None
    assert agent.unjudged == 0


def test_a_later_verdict_counts_once_and_the_first_one_stays() -> None:
    runs = _judged("alpha", *[(True, Gate.PASSED)] * 3)
    unjudged = builders.record(PROBLEMS[3], unjudged=FAILED)
    board = _board(*runs, unjudged)
    for gate in (Gate.REFERENCE, Gate.PASSED):
        record = builders.verdict_record(unjudged, gate).encode()
        board.add_verdict(VerdictSummary.of(record.value))
    (agent,) = report(board, BUCKETS)
    assert agent.score == pytest.approx((3 + 0.5625) / 4)
    assert board.unjudged() == []


def test_a_verdict_on_a_run_of_another_race_is_refused() -> None:
    stranger = builders.record(PROBLEMS[0], run_id="stranger")
    record = builders.verdict_record(stranger, Gate.PASSED).encode()
    with pytest.raises(KeyError):
        _board(*_agent("alpha", True)).add_verdict(VerdictSummary.of(record.value))


def test_agents_rank_by_score_and_those_that_wait_for_a_judge_after_them() -> None:
    waiting = [builders.record(p, label="waiting", unjudged=FAILED) for p in PROBLEMS]
    board = _board(
        *_judged("narrates", *[(True, Gate.REFERENCE)] * 4),
        *_judged("reasons", *[(True, Gate.PASSED)] * 3, (False, Gate.PASSED)),
        *waiting,
    )
    reports = report(board, BUCKETS)
    assert [a.name for a in reports] == ["reasons", "narrates", "waiting"]
    assert reports[2].judging_failed is True
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(tables(reports))
    text = console.export_text()
    assert "unjudged" in text
    assert "0.750" in text
    assert "judge" in text


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
