"""What judge models answer, read without guessing."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.answers import AnswerError, read_answer
from judge.citations import Citation
from judge.verdict import QUALITIES, Gate

VERDICT = {
    "reason": "It compares.",
    "gate": "passed",
    "evidence": [{"event": 4, "field": "think:0", "quote": "cheaper than 48210944"}],
}
TEXT = json.dumps(VERDICT)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"```json\n{TEXT}\n```",
        f"Here it is: {TEXT} Best wishes {{}}",
        f'<think>maybe {{"gate": "datum"}}</think>{TEXT}',
        f"{TEXT}{TEXT}",
        f"{{not json}} {TEXT}",
        json.dumps(VERDICT | {"gate": " PASSED "}),
        json.dumps(VERDICT | {"quality": 0.9}),
        json.dumps({**VERDICT, "gate": None, "quality": 0.9}),
    ],
)
def test_a_verdict_is_found_in_what_stands_around_it(text: str) -> None:
    answer = read_answer(text)
    assert answer.gate is Gate.PASSED
    assert answer.citations == (Citation(4, "think:0", "cheaper than 48210944"),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "0.9",
        "passed",
        "null",
        "[]",
        "{}",
        '{"gate": "superb"}',
        '{"gate": 5}',
        '{"gate": ["passed"]}',
        '{"quality": 0.85}',
        '{"quality": true}',
        '{"quality": NaN}',
        '{"gate": "passed", "evidence": "all of it"}',
        '{"gate": "passed", "evidence": [3]}',
        '{"gate": "passed", "evidence": [{"event": "4", "field": "think:0", "quote": "x"}]}',
        '{"gate": "passed", "evidence": [{"event": true, "field": "think:0", "quote": "x"}]}',
        '{"gate": "passed", "evidence": [{"event": 4, "field": 0, "quote": "x"}]}',
        '{"gate": "passed"} {"gate": "datum"}',
        "{" * 5000,
        '{"gate": "passed", "a": ' + "[" * 100_000,
        TEXT + " " * 300_000,
    ],
)
def test_what_is_no_verdict_is_broken(text: str) -> None:
    with pytest.raises(AnswerError):
        read_answer(text)


@given(st.integers(0, len(TEXT) - 1))
def test_a_verdict_cut_off_anywhere_is_broken(at: int) -> None:
    with pytest.raises(AnswerError):
        read_answer(TEXT[:at])


@pytest.mark.parametrize(("gate", "quality"), QUALITIES.items())
def test_of_gate_and_quality_the_lower_counts(gate: Gate, quality: float) -> None:
    both = json.dumps({"gate": "comparison", "quality": quality, "evidence": []})
    assert read_answer(both).gate is min(gate, Gate.COMPARISON, key=lambda g: g.quality)


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
BY_VALUE = st.builds(lambda v: json.dumps({"gate": v, "quality": 0.5, "evidence": v}), VALUES)


@given(st.text(max_size=200) | BY_VALUE)
def test_no_answer_raises_anything_else(text: str) -> None:
    with suppress(AnswerError):
        read_answer(text)
