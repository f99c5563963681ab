"""Whatever agents and models write, a record becomes a trajectory or a reject."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus_export.features import features
from corpus_export.normalise import messages_of, normalise
from corpus_export.tokens import open_tokens
from corpus_export.types import Reject
from tests.unit.corpus_export.builders import QUERY, record_of
from tests.unit.sandbox.provenance.traces import TraceBuilder

ANYTHING: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "name",
                    "function",
                    "arguments",
                    "completion",
                    "message",
                    "tool_call",
                    "id",
                    "text",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
TAGGED = st.lists(
    st.sampled_from(
        [
            "<think>",
            "</think>",
            "<obs>",
            "</obs>",
            "<tool_call>",
            "</tool_call>",
            '[{"name": "find_product", "parameters": {"q": "bag"}}]',
            '[{"name": "recommend_product", "arguments": "{\\"product_ids\\": \\"1\\"}"}]',
            '[{"tool_call_id": "a", "results": [1]}]',
            "{",
            "\x00\ud800",
            "words",
        ]
    ),
    max_size=12,
).map("".join)
MESSAGE: Any = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["system", "user", "assistant", "tool"]) | ANYTHING,
        "content": TAGGED | ANYTHING,
        "tool_calls": ANYTHING,
        "tool_call_id": ANYTHING,
        "reasoning_content": TAGGED | ANYTHING,
    },
)
STEPS: Any = st.lists(st.tuples(st.lists(MESSAGE, max_size=4), st.lists(MESSAGE, max_size=3)))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(STEPS, ANYTHING, st.sampled_from("AB"))
def test_nothing_that_agents_and_models_write_raises(steps: Any, dialogue: Any, axis: str) -> None:
    build = TraceBuilder()
    history: list[Any] = []
    for prompt, answers in steps:
        history = [*history, *prompt]
        build.llm(history, *answers)
        build.tool("find_product", dialogue, q="bag")
    record = record_of(build.trace, axis=axis) | {"dialogue": dialogue}
    made = normalise(record, QUERY)
    if isinstance(made, Reject):
        return
    messages = messages_of(made)
    assert len(made.turns) >= 1
    json.dumps(messages, ensure_ascii=False, allow_nan=False).encode()
    assert features(made, open_tokens(None)).turns == len(made.turns)


@given(st.lists(TAGGED, min_size=1, max_size=6))
def test_a_history_of_any_text_gives_each_call_at_most_one_result(texts: list[str]) -> None:
    build = TraceBuilder()
    history = QUERY
    for text in texts:
        build.llm([{"role": "user", "content": history}], text)
        history += text
    made = normalise(record_of(build.trace), QUERY)
    if isinstance(made, Reject):
        return
    for turn in made.turns:
        answered = [result.call_id for result in turn.results]
        assert answered == [call.id for call in turn.calls if call.id in answered]
