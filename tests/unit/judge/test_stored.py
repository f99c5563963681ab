"""What lies in a race's file besides its runs is no trace to judge."""

from __future__ import annotations

from pathlib import Path

from judge.stored import read_traces
from judge.verdict import Gate
from tests.unit.arena import builders


def test_later_verdicts_among_records_are_passed_over(tmp_path: Path) -> None:
    run = builders.record(builders.problem())
    verdict = builders.verdict_record(run, Gate.PASSED)
    file = tmp_path / "records.jsonl"
    file.write_bytes(run.encode().content + b"\n" + verdict.encode().content + b"\n")
    assert [stored.name for stored in read_traces(file)] == ["alpha p1 alpha-p1-1"]
