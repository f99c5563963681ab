"""A record is made canonical once and says whether it settles its problem."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

from arena.runs.record import LOG_TAIL_CHARS, EncodedRecord, Kind, RunSummary
from arena.runs.verdicts import VerdictSummary
from judge.verdict import Gate, Unjudged
from scoring.exceptions import ErrorInfo
from scoring.types import JsonObject
from tests.unit.arena import builders
from tests.unit.arena.builders import AGENT_FAULT, HOST_FAULT, PLATFORM_FAULT


def test_bytes_are_canonical_and_the_hash_is_theirs() -> None:
    encoded = builders.record(builders.problem()).encode()
    value = json.loads(encoded.content)
    assert list(value) == sorted(value)
    assert encoded.hash == hashlib.sha256(encoded.content).hexdigest()
    assert value["agent"]["source_hash"] == builders.agent().ref.source_hash
    assert value["verdict"] is value["coefficient"] is value["final_score"] is None


@pytest.mark.parametrize(
    ("failure", "closed"),
    [(None, True), (AGENT_FAULT, True), (HOST_FAULT, False), (PLATFORM_FAULT, False)],
)
def test_only_a_fault_that_is_not_the_agents_leaves_the_problem_open(
    failure: ErrorInfo | None, closed: bool
) -> None:
    record = builders.record(builders.problem(), failure=failure)
    summary = RunSummary.of(record.encode().value)
    assert record.closed is summary.closed is closed
    assert (summary.outcome is not None) is closed
    assert summary.failure == failure


def test_summary_tells_success_axis_and_time() -> None:
    good = RunSummary.of(builders.record(builders.problem()).encode().value)
    bad = RunSummary.of(builders.record(builders.problem(), recommended="2").encode().value)
    assert (good.success, good.success_upstream, good.axis, good.wall_s) == (True, True, "A", 2.0)
    assert (bad.success, bad.success_upstream) == (False, False)


def test_hostile_dialogue_can_be_recorded() -> None:
    dialogue: tuple[JsonObject, ...] = (
        {"text": "\0\ud800", "number": 10**400, "nan": float("nan")},
    )
    encoded = builders.record(builders.problem(), dialogue=dialogue).encode()
    assert encoded.content.isascii()
    assert encoded.value["dialogue"] == [
        {"text": "\0\\ud800", "number": str(10**400), "nan": "NaN"}
    ]


def test_only_the_end_of_a_log_is_kept() -> None:
    record = replace(builders.record(builders.problem()), log_tail="x" * 100_000 + "end")
    tail = record.encode().value["log_tail"]
    assert isinstance(tail, str)
    assert len(tail) == LOG_TAIL_CHARS
    assert tail.endswith("end")


def test_another_schema_is_refused() -> None:
    with pytest.raises(ValueError, match="schema"):
        _ = EncodedRecord(b'{"schema":99}').value


def test_a_verdict_is_in_the_record_and_its_summary() -> None:
    record = builders.record(builders.problem(), gate=Gate.REFERENCE)
    value = record.encode().value
    summary = RunSummary.of(value)
    assert value["unjudged"] is None
    assert (summary.judged, summary.quality) == (True, 0.3)
    assert summary.coefficient == summary.final_score == 0.5625


def test_an_unjudged_run_says_why_and_has_no_numbers() -> None:
    reason = Unjudged(HOST_FAULT, calls=3, failures=("model.timeout",) * 3)
    value = builders.record(builders.problem(), unjudged=reason).encode().value
    assert value["verdict"] is value["coefficient"] is value["final_score"] is None
    summary = RunSummary.of(value)
    assert summary.judgement == reason
    assert (summary.judged, summary.quality, summary.final_score) == (False, None, None)


def test_a_later_verdict_is_a_record_of_its_own_that_links_to_the_first() -> None:
    run = builders.record(builders.problem())
    record = builders.verdict_record(run, Gate.PASSED).encode()
    assert (record.kind, run.encode().kind) == (Kind.VERDICT, Kind.RUN)
    found = VerdictSummary.of(record.value)
    assert (found.run_id, found.record_hash) == (run.run_id, run.encode().hash)
    assert (found.coefficient, found.final_score, found.verdict.quality) == (1.0, 1.0, 0.9)
