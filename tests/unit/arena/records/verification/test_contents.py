"""One record and its seal: what is refused, and by which name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.exceptions import SealError
from arena.records.verification.contents import check_seal, open_record
from arena.records.verification.findings import Check, Report
from arena.runs.canonical import canonical
from arena.runs.record import Kind
from arena.runs.seal import Sealed
from judge.verdict import Gate
from tests.unit.arena.builders import problem, record, seal, verdict_record

RUN = record(problem(), gate=Gate.PASSED)
SEALED = seal(RUN.encode())[0]
LINE = SEALED.sealed.to_line()

SPAN = {"event": 0, "field": "think:0", "start": "0", "end": 1, "quote": "x"}
LATER = verdict_record(RUN, Gate.DATUM).encode().content
TWICE = SEALED.record.content.replace(b'"closed":', b'"closed":false,"closed":')
"""One key with two values: readers differ in which they take."""


def opened(content: bytes, *, sealed: bool = False) -> list[str]:
    report = Report()
    open_record("here", content, SEALED.sealed.seal if sealed else None, report)
    return [finding.code.value for finding in report.findings]


def changed(change: Callable[[dict[str, Any]], Any]) -> bytes:
    value = json.loads(SEALED.record.content)
    change(value)
    return canonical(value)


def test_an_honest_record_and_its_verdict_are_opened() -> None:
    report = Report()
    found = open_record("here", SEALED.record.content, SEALED.sealed.seal, report)
    assert found is not None
    assert (found.kind, found.hash) == (Kind.RUN, SEALED.record.hash)
    assert found.trace is not None
    later = open_record("there", verdict_record(RUN, Gate.DATUM).encode().content, None, report)
    assert later is not None
    assert later.kind is Kind.VERDICT
    assert report.failed == 0
    assert report.tallies[Check.CONTENT].passed == 1


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "record.schema"),
        (b"null", "record.schema"),
        (b'{"schema":2}', "record.schema"),
        (b'{"schema":1}', "record.schema"),
        (b'{"schema":1,"kind":"run"}', "record.schema"),
        (b"[" * 100_000, "record.schema"),
        (changed(lambda v: v.pop("notes")), "record.schema"),
        (changed(lambda v: v.update(more=1)), "record.schema"),
        (changed(lambda v: v.update(closed="yes")), "record.schema"),
        (changed(lambda v: v["agent"].update(source_hash=None)), "record.schema"),
        (changed(lambda v: v["trace"].update(schema=7)), "record.trace"),
        (changed(lambda v: v["trace"].update(events=[{"kind": "odd"}])), "record.trace"),
        (changed(lambda v: v["verdict"].update(schema=7)), "record.schema"),
        (changed(lambda v: v["verdict"].update(gate="none")), "record.schema"),
        (changed(lambda v: v["verdict"].update(evidence=[SPAN])), "record.verdict"),
        (LATER.replace(b'"record_hash":"', b'"record_hash":"x'), "record.schema"),
        (json.dumps(RUN.to_json()).encode(), "record.not_canonical"),
        (TWICE, "record.not_canonical"),
    ],
)
def test_what_is_no_record_is_named(content: bytes, code: str) -> None:
    assert opened(content) == [code]


def test_canonical_numbers_that_are_rare_are_still_canonical() -> None:
    value = RUN.to_json()
    value["timing"] = {**json.loads(json.dumps(value["timing"])), "wall_s": 1e21, "cpu_s": 1e-7}
    assert opened(canonical(value)) == []


def test_a_record_is_held_against_its_seal() -> None:
    assert opened(SEALED.record.content, sealed=True) == []
    assert opened(changed(lambda v: v.update(log_tail="x")), sealed=True) == ["record.hash"]
    report = Report()
    other = replace(SEALED.sealed.seal, size=3)
    open_record("here", SEALED.record.content, other, report)
    other = replace(SEALED.sealed.seal, kind=Kind.VERDICT)
    open_record("here", SEALED.record.content, other, report)
    assert [f.code.value for f in report.findings] == ["record.size", "record.kind"]


@settings(max_examples=300)
@given(st.integers(0, len(LINE) - 1), st.integers(0, 255) | st.none(), st.booleans())
def test_the_quick_way_to_read_a_seal_takes_exactly_what_the_plain_one_does(
    at: int, put: int | None, drop: bool
) -> None:
    middle = b"" if put is None else bytes([put])
    changed = LINE[:at] + middle + LINE[at + (1 if drop else 0) :]
    report = Report()
    ours = check_seal("here", changed, report, ())
    try:
        theirs: Sealed | None = Sealed.from_line(changed)
        _ = theirs.seal if theirs else None
    except SealError:
        theirs = None
    assert ours == theirs
    if ours is None:
        assert [f.code.value for f in report.findings] == ["seal.broken"]
    elif changed != LINE:
        assert [f.code.value for f in report.findings] == ["seal.signature"]


def test_validators_are_only_those_that_were_named() -> None:
    report = Report()
    address = SEALED.sealed.seal.validator
    check_seal("here", LINE, report, {address})
    check_seal("here", LINE, report, {"another"})
    check_seal("here", None, report, ())
    assert [f.code.value for f in report.findings] == [
        "seal.unexpected_validator",
        "seal.missing",
    ]
    assert report.tallies[Check.VALIDATOR].passed == 1
