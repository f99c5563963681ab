"""Reports: everything is counted, and what cannot be checked is never called passed."""

from __future__ import annotations

import io

from rich.console import Console

from arena.records.verification import findings
from arena.records.verification.findings import Check, Code, Report
from arena.records.verification.show import first_findings, table_of, verdict_of


def printed(report: Report) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(table_of(report))
    for line in (*first_findings(report), verdict_of(report)):
        console.print(line)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_reports_add_up_and_keep_a_bounded_number_of_findings(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(findings, "MAX_FINDINGS", 5)
    total = Report()
    for _ in range(4):
        part = Report()
        part.passed(Check.SCHEMA, 2)
        part.uncheckable(Check.OUTCOME, "no catalogue")
        part.found(Code.RECORD_HASH, Check.CONTENT, "here", "x" * 9_999)
        part.found(Code.SEAL_LATE, Check.DATING, "there", "late")
        total.add(part)
    assert (total.failed, total.noticed, len(total.findings)) == (4, 4, 5)
    assert total.tallies[Check.OUTCOME].uncheckable == {"no catalogue": 4}
    told = total.to_json()
    assert told["ok"] is False
    assert told["findings_left_out"] == 3
    assert all(len(f.detail) < 700 for f in total.findings)


def test_a_notice_fails_nothing_and_nothing_checked_is_not_verified() -> None:
    report = Report()
    assert "nothing was verified" in printed(report)
    report.uncheckable(Check.OUTCOME, "no catalogue")
    assert "nothing was verified" in printed(report)
    report.passed(Check.SCHEMA)
    report.found(Code.SEAL_LATE, Check.DATING, "there", "an hour")
    assert report.to_json()["ok"] is True
    assert "nothing failed" in printed(report)
    report.found(Code.RECORD_HASH, Check.CONTENT, "here", "no")
    assert "not verified" in printed(report)


def test_hostile_words_are_harmless_and_later_ones_are_counted() -> None:
    report = Report()
    for number in range(14):
        report.found(Code.RECORD_HASH, Check.CONTENT, "\x1b[2J[red]", f"\x07[bold]{number}")
    text = printed(report)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[red]" in text
    assert "and 4 more" in text
