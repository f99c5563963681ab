"""Citations hold when the quote stands in the trace, and not otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.citations import MAX_CITATIONS, Citation, CitationChecker, holds
from judge.neutral import neutral
from judge.thinking import field_text
from judge.verdict import Gate, Span
from sandbox.trace import Trace
from tests.unit.judge.scenes import REASONED, goods, listing, shopping


def traced(thought: str) -> tuple[Trace, int]:
    """A trace with this thought, and the event in which it stands."""
    trace = shopping(thought).trace
    seq = next(
        e.seq for e in trace.llm() if thought.strip() and thought in str(e.choices[0]["message"])
    )
    return trace, seq


TRACE, SEQ = traced(REASONED)


def test_an_exact_quote_gets_its_place() -> None:
    found = CitationChecker(TRACE).locate(Citation(SEQ, "think:0", "costs 389 pesos"))
    assert isinstance(found, Span)
    assert REASONED[found.start : found.end] == found.quote == "costs 389 pesos"
    assert holds(TRACE, found)


def test_wrong_offsets_are_corrected() -> None:
    citation = Citation(SEQ, "think:0", "costs 389 pesos", start=3, end=5)
    found = CitationChecker(TRACE).locate(citation)
    assert isinstance(found, Span)
    assert found.start == REASONED.index("costs 389 pesos")


def test_of_several_places_the_offset_tells_and_without_one_the_first_is_meant() -> None:
    checker = CitationChecker(TRACE)
    unplaced = checker.locate(Citation(SEQ, "think:0", "48210944"))
    assert isinstance(unplaced, Span)
    assert unplaced.start == REASONED.index("48210944")
    second = REASONED.rindex("48210944")
    found = checker.locate(Citation(SEQ, "think:0", "48210944", start=second))
    assert isinstance(found, Span)
    assert found.start == second


def test_a_result_is_cited_in_its_compact_json() -> None:
    quote = '"title":"Nordvik Canvas Rucksack 24L Olive"'
    event = next(e.seq for e in TRACE.tools() if e.result == listing(goods()))
    found = CitationChecker(TRACE).locate(Citation(event, "result", quote))
    assert isinstance(found, Span)
    assert holds(TRACE, found)


@pytest.mark.parametrize("quote", ["see ‹b›this‹/b› one", "see <b>this</b> one"])
def test_a_quote_is_taken_as_shown_and_as_it_really_is(quote: str) -> None:
    trace = shopping("I see <b>this</b> one\u200b and no other.").trace
    seq = next(e.seq for e in trace.llm() if "<b>" in str(e.choices))
    found = CitationChecker(trace).locate(Citation(seq, "think:0", quote))
    assert isinstance(found, Span)
    assert found.quote == "see <b>this</b> one"


@pytest.mark.parametrize(
    "citation",
    [
        Citation(SEQ, "think:0", "nobody wrote this"),
        Citation(SEQ, "think:0", REASONED.upper()),
        Citation(SEQ, "think:0", ""),
        Citation(SEQ, "think:0", " "),
        Citation(SEQ, "think:0", "x" * 100_000),
        Citation(SEQ, "think:1", "costs 389 pesos"),
        Citation(SEQ, "think:٣", "costs 389 pesos"),
        Citation(SEQ, "think:" + "9" * 5000, "costs 389 pesos"),
        Citation(SEQ, "result", "costs 389 pesos"),
        Citation(SEQ, "prompt", "costs 389 pesos"),
        Citation(SEQ + 1, "think:0", "costs 389 pesos"),
        Citation(-1, "think:0", "costs 389 pesos"),
        Citation(10**9, "think:0", "costs 389 pesos"),
    ],
)
def test_what_does_not_stand_there_does_not_hold(citation: Citation) -> None:
    assert isinstance(CitationChecker(TRACE).locate(citation), str)


@pytest.mark.parametrize("gate", list(Gate))
def test_from_half_on_a_verdict_cites_thinking(gate: Gate) -> None:
    checker = CitationChecker(TRACE)
    event = next(TRACE.tools()).seq
    only_result = [Citation(event, "result", '"48210357"', start=15)]
    start = str(field_text(TRACE, TRACE.events[event], "result")).index('"48210357"')
    only_result = [replace(only_result[0], start=start)]
    needed = gate in (Gate.DATUM, Gate.COMPARISON, Gate.PASSED)
    assert checker.check([], gate).holds is not needed
    assert checker.check(only_result, gate).holds is not needed
    assert checker.check([Citation(SEQ, "think:0", "costs 389")], gate).holds


def test_one_false_citation_spoils_a_verdict_and_so_does_a_flood() -> None:
    checker = CitationChecker(TRACE)
    good, false = Citation(SEQ, "think:0", "costs 389"), Citation(SEQ, "think:0", "made up")
    checked = checker.check([good, false], Gate.PASSED)
    assert not checked.holds
    assert len(checked.spans) == 1
    assert not checker.check([good] * (MAX_CITATIONS + 1), Gate.PASSED).holds


@given(st.text(min_size=3, max_size=200), st.data())
def test_every_stretch_of_what_was_shown_can_be_cited(text: str, data: st.DataObject) -> None:
    thought = "So: " + text + " end"
    trace = shopping(thought).trace
    event = trace.events[4]
    raw = field_text(trace, event, "think:0")
    if raw is None or len(raw) < 3:
        return
    start = data.draw(st.integers(0, len(raw) - 3))
    end = data.draw(st.integers(start + 3, len(raw)))
    quote = neutral(raw)[start:end]
    if len(quote.strip()) < 2:
        return
    found = CitationChecker(trace).locate(Citation(event.seq, "think:0", quote, start=start))
    assert isinstance(found, Span)
    assert (found.start, found.end, found.quote) == (start, end, raw[start:end])
    assert holds(trace, found)


@given(st.integers(-5, 50), st.text(max_size=20), st.text(max_size=40), st.none() | st.integers())
def test_no_citation_raises_and_what_holds_really_stands_there(
    event: int, field: str, quote: str, start: int | None
) -> None:
    found = CitationChecker(TRACE).locate(Citation(event, field, quote, start))
    assert isinstance(found, str) or holds(TRACE, found)


def test_a_stored_span_that_was_changed_does_not_hold() -> None:
    span = CitationChecker(TRACE).locate(Citation(SEQ, "think:0", "costs 389 pesos"))
    assert isinstance(span, Span)
    for other in (
        replace(span, quote="costs 388 pesos"),
        replace(span, start=span.start + 1),
        replace(span, end=span.end + 10**6),
        replace(span, start=-5),
        replace(span, event=99),
        replace(span, field="content"),
    ):
        assert not holds(TRACE, other)
