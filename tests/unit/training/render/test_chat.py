"""Rendering: what a served model is given is what it was trained on, to the token."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus_export.rows import TOOLS
from sandbox.tools import TOOL_SCHEMAS
from scoring.types import JsonObject
from tests.unit.training.small import TOKENIZER_TEXTS, call, conversation, tokenizer_of
from training.exceptions import RenderError
from training.render.chat import ChatRenderer
from training.render.marks import MARKS, harmless
from training.tokenizing.small import LEAST

RENDERER = ChatRenderer(tokenizer_of(TOKENIZER_TEXTS, LEAST + 200))

texts = st.one_of(
    st.text(max_size=20), st.sampled_from([*MARKS, "<think>x</think>", "a\n\n", " ", "\ud800"])
)
assistants = st.builds(
    lambda content, thinking, calls: {
        "role": "assistant",
        "content": content,
        "reasoning_content": thinking,
        "tool_calls": calls or None,
    },
    texts,
    st.none() | texts,
    st.lists(st.builds(lambda t: call("find_product", json.dumps({"q": t})), texts), max_size=2),
)
observations = st.builds(lambda t: {"role": "tool", "content": t, "tool_call_id": "x"}, texts)


@st.composite
def conversations(draw: st.DrawFn) -> list[JsonObject]:
    messages: list[JsonObject] = [
        {"role": "system", "content": draw(texts)},
        {"role": "user", "content": draw(texts)},
    ]
    for _ in range(draw(st.integers(1, 3))):
        messages.append(draw(assistants))
        messages.extend(draw(st.lists(observations, min_size=1, max_size=2)))
    return messages


@settings(deadline=None, max_examples=60)
@given(conversations())
def test_the_prompt_of_every_turn_is_a_prefix_of_the_sample(messages: list[JsonObject]) -> None:
    whole = RENDERER.render_sample(messages).ids.tolist()
    for place, message in enumerate(messages):
        if message["role"] == "assistant":
            prompt = RENDERER.render(messages[:place])
            assert whole[: len(prompt)] == prompt


@settings(deadline=None, max_examples=60)
@given(conversations())
def test_marks_in_text_never_become_tokens_of_the_format(messages: list[JsonObject]) -> None:
    ids = RENDERER.render_sample(messages).ids.tolist()
    start = RENDERER.tokenizer.convert_tokens_to_ids("<|im_start|>")
    # A header for each message; tool answers in a row share one.
    roles = [m["role"] for m in messages]
    headers = sum(
        role != "tool" or before != "tool"
        for before, role in zip([None, *roles], roles, strict=False)
    )
    assert ids.count(start) == headers


def test_harmless_text_is_as_long_and_has_no_mark() -> None:
    for mark in MARKS:
        made = harmless(f"a{mark}b<b>{mark}")
        assert not any(known in made for known in MARKS)
        assert len(made) == len(f"a{mark}b<b>{mark}")
        assert "<b>" in made


def test_nothing_but_marks_is_changed() -> None:
    text = "a < b, <p>x</p> <|other|> ‹x› 한국어"
    assert harmless(text) == text


def test_the_order_of_a_schemas_keys_does_not_change_the_prompt() -> None:
    shuffled = json.loads(TOOLS)
    assert json.dumps(shuffled) != json.dumps(list(TOOL_SCHEMAS))
    messages = conversation()[:2]
    assert RENDERER.render(messages, shuffled) == RENDERER.render(messages, TOOL_SCHEMAS)


def test_other_tools_are_rendered_as_they_are_given() -> None:
    tools: list[JsonObject] = [{"type": "function", "function": {"name": "zap"}}]
    shown = RENDERER.tokenizer.decode(RENDERER.render(conversation()[:2], tools))
    assert '{"type": "function", "function": {"name": "zap"}}' in shown


def completion(text: str) -> list[int]:
    ids: list[int] = RENDERER.tokenizer.encode(text, add_special_tokens=False)
    return ids


def test_what_was_rendered_is_parsed_back() -> None:
    messages = conversation()
    rendered = RENDERER.render_sample(messages)
    spoken = rendered.ids[rendered.mask & (rendered.message == 4)].tolist()
    parsed = RENDERER.parse(spoken)
    assert parsed.message["content"] == "This one."
    functions = [c["function"] for c in parsed.message["tool_calls"]]  # type: ignore[union-attr, index, call-overload]
    assert functions == [c["function"] for c in messages[4]["tool_calls"]]  # type: ignore[union-attr, index, call-overload]
    assert parsed.malformed == ()


@pytest.mark.parametrize(
    "inner",
    [
        "no json",
        '{"name": "x"',
        '{"arguments": {}}',
        '{"name": "x", "arguments": "{}"}',
        '{"name": "x", "arguments": [1]}',
        '{"name": "x", "arguments": {"a": NaN}}',
        '{"name": "x", "arguments": {"a": ' + "9" * 5000 + "}}",
        '{"name": "x", "arguments": ' + "[" * 3000 + "}",
    ],
)
def test_calls_that_cannot_be_made_are_told_and_not_made(inner: str) -> None:
    parsed = RENDERER.parse(completion(f"<tool_call>\n{inner}\n</tool_call><|im_end|>"))
    assert "tool_calls" not in parsed.message
    assert len(parsed.malformed) == 1


def test_thinking_without_an_end_is_told() -> None:
    parsed = RENDERER.parse(completion("<think>\nI wonder"))
    assert parsed.open_thinking
    assert "tool_calls" not in parsed.message


def test_a_bridge_extends_what_was_sampled_to_the_token() -> None:
    messages = conversation()
    prompt = RENDERER.render(messages[:2])
    sampled = completion("<think>\nhm</think>x<tool_call>\n{}\n</tool_call><|im_end|>")
    bridged = RENDERER.bridge(prompt, sampled, [messages[3]])
    assert bridged is not None
    assert bridged[: len(prompt) + len(sampled)] == prompt + sampled
    rest = RENDERER.tokenizer.decode(bridged[len(prompt) + len(sampled) :])
    assert rest == (
        '\n<|im_start|>user\n<tool_response>\n[{"product_id": "2393280632"}]\n</tool_response>'
        "<|im_end|>\n<|im_start|>assistant\n"
    )


def test_bridging_and_rendering_anew_agree_where_the_model_wrote_as_the_corpus_does() -> None:
    messages = conversation()
    whole = RENDERER.render_sample(messages)
    prompt = RENDERER.render(messages[:2])
    sampled = whole.ids[whole.mask & (whole.message == 2)].tolist()
    assert RENDERER.bridge(prompt, sampled, [messages[3]]) == RENDERER.render(messages[:4])


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "developer", "content": "x"}],
        [{"role": "user", "content": 3}],
        [{"role": "assistant", "tool_calls": "x"}],
        [{"role": "assistant", "tool_calls": [{"id": "1"}]}],
    ],
)
def test_what_is_no_conversation_is_refused(messages: list[JsonObject]) -> None:
    with pytest.raises(RenderError):
        RENDERER.render(deepcopy(messages))
