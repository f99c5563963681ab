"""A trace survives its own JSON, whatever stands in it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.exceptions import ErrorInfo
from sandbox.trace import Event, HttpEvent, LlmEvent, ToolEvent, Trace, Usage
from scoring.exceptions import Fault

texts = st.text(max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, json_values, max_size=3)
times = st.floats(0, 1e6, allow_nan=False)
counts = st.integers(0, 10_000)
errors = st.none() | st.builds(ErrorInfo, texts, st.sampled_from(Fault), texts)
events = st.one_of(
    st.builds(
        LlmEvent,
        seq=counts,
        started_ms=times,
        elapsed_ms=times,
        waited_ms=times,
        model=texts,
        server=texts,
        standin=st.booleans(),
        prompt=st.lists(counts, max_size=3).map(tuple),
        params=objects,
        status=counts,
        choices=st.lists(objects, max_size=2).map(tuple),
        usage=st.none() | st.builds(Usage, counts, counts),
        cost_usd=times,
        error=errors,
        extras=objects,
    ),
    st.builds(
        ToolEvent,
        seq=counts,
        started_ms=times,
        elapsed_ms=times,
        via=st.sampled_from(["search", "tools"]),
        name=texts,
        arguments=objects,
        status=counts,
        result=json_values,
        query=st.none() | texts,
        error=errors,
    ),
    st.builds(
        HttpEvent,
        seq=counts,
        started_ms=times,
        elapsed_ms=times,
        method=texts,
        path=texts,
        status=counts,
        body_bytes=counts,
        error=errors,
    ),
)


@given(
    st.builds(
        Trace,
        messages=st.lists(objects, max_size=3).map(tuple),
        events=st.lists(events, max_size=4).map(tuple),
        limits_hit=st.lists(texts, max_size=2).map(tuple),
        unrecorded=counts,
    )
)
def test_a_trace_is_the_same_after_its_json(trace: Trace) -> None:
    assert Trace.from_json(json.loads(json.dumps(trace.to_json()))) == trace
    kinds: list[Event] = [*trace.llm(), *trace.tools()]
    assert all(event in trace.events for event in kinds)


def test_another_schema_is_refused() -> None:
    with pytest.raises(ValueError, match="schema 99"):
        Trace.from_json({"schema": 99, "messages": [], "events": [], "limits_hit": []})


@pytest.mark.parametrize(
    ("message", "empty"),
    [
        ({"content": ""}, True),
        ({"content": " \n"}, True),
        ({"content": None}, True),
        ({"content": None, "reasoning_content": "hm"}, True),
        ({"content": "a"}, False),
        ({"content": None, "tool_calls": [{}]}, False),
        ({"content": "", "tool_calls": []}, True),
    ],
)
def test_an_empty_answer_shows(message: dict[str, object], empty: bool) -> None:
    event = LlmEvent(
        0,
        0.0,
        0.0,
        0.0,
        "m",
        "s",
        False,
        (),
        {},
        200,
        choices=({"message": message},),  # type: ignore[dict-item]
    )
    assert event.empty is empty
