"""What may be asked of a model is an allow-list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.exceptions import Fault, ModelError
from sandbox.models import ChatRequest
from sandbox.models.request import PARAMETERS
from scoring.types import Json, JsonObject

HEY: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


def test_nulls_and_a_false_stream_are_left_out() -> None:
    request = ChatRequest.from_json(
        HEY | {"stream": False, "stream_options": None, "tools": None, "seed": 0}
    )
    assert request.params == {"seed": 0}
    assert request.choices == 1
    assert request.max_tokens is None


def test_the_newer_name_of_the_token_limit_wins() -> None:
    request = ChatRequest.from_json(HEY | {"max_tokens": 5, "max_completion_tokens": 9, "n": 2})
    assert (request.max_tokens, request.choices) == (9, 2)


@pytest.mark.parametrize(
    "change",
    [
        {"stream": True},
        {"store": True},
        {"guided_regex": "(a+)+$"},
        {"service_tier": "priority"},
        {"plugins": [{"id": "web"}]},
        {"models": ["other"]},
        {"extra_headers": {}},
        {"tools": [{"type": "web_search_preview"}]},
        {"tools": {}},
        {"tools": [{"type": "function", "function": {"name": 7}}]},
        {"n": 0},
        {"n": 9},
        {"n": 1.5},
        {"n": True},
        {"max_tokens": "many"},
        {"max_tokens": -1},
        {"messages": None},
        {"messages": {}},
        {"messages": [{"role": "root", "content": "x"}]},
        {"messages": [{"role": "user", "content": 7}]},
        {"messages": [{"role": "user", "content": ["x"]}]},
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {}}]}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": {}}]}]},
        {"messages": [{"role": "assistant", "content": "x", "tool_calls": "x"}]},
        {"messages": [{"role": "user", "content": "x"}] * 5000},
        {"model": ""},
    ],
)
def test_what_is_not_offered_is_the_agents_fault(change: JsonObject) -> None:
    with pytest.raises(ModelError) as caught:
        ChatRequest.from_json(HEY | change)
    assert caught.value.fault is Fault.AGENT


anything: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["model", "messages", "stream", *sorted(PARAMETERS)]) | st.text(max_size=5),
        anything,
    )
    | anything
)
def test_any_body_is_a_request_or_the_agents_fault(body: Json) -> None:
    try:
        request = ChatRequest.from_json(body)
    except ModelError as error:
        assert error.fault is Fault.AGENT  # noqa: PT017 - only sometimes raised
    else:
        assert request.prompt_chars() >= 0
