from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.provenance.tags import (
    message_text,
    read_arguments,
    read_blocks,
    read_call,
    read_json,
    read_tool_calls,
)

TAGS = [f"<{slash}{kind}>" for kind in ("think", "tool_call", "obs", "response") for slash in "/"]
TAGS += [tag.replace("/", "") for tag in TAGS]


def kinds(text: str) -> list[tuple[str, str]]:
    return [(b.kind, b.body) for b in read_blocks(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("plain", [("text", "plain")]),
        ("<think>a</think>b", [("think", "a"), ("text", "b")]),
        ("a</think><tool_call>b</tool_call>", [("think", "a"), ("tool_call", "b")]),
        ("<think><tool_call>a</tool_call></think>", [("think", "<tool_call>a</tool_call>")]),
        ("<think>a<tool_call>b</tool_call>", [("think", "a"), ("tool_call", "b")]),
        ("<tool_call>a", [("tool_call", "a")]),
        ("<think>a<think>b</think>", [("think", "a"), ("think", "b")]),
        ("<obs>1</obs>\n<response>r</response>", [("obs", "1"), ("text", "\n"), ("response", "r")]),
        ("a < b </think", [("text", "a < b </think")]),
    ],
)
def test_blocks(text: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(text) == expected


def test_a_block_knows_whether_it_was_closed() -> None:
    assert [b.closed for b in read_blocks("<think>a</think><tool_call>b")] == [True, False]


@pytest.mark.parametrize(
    "body",
    [
        '{"name": "f", "parameters": {"q": "a"}}',
        '[{"name": "f", "arguments": {"q": "a"}}]',
        '```json\n[{"name": "f", "arguments": "{\\"q\\": \\"a\\"}"}]\n```',
        '{"type": "function", "function": {"name": "f", "arguments": {"q": "a"}}}',
        '{"name": " f ", "parameters": {"q": "a"}} trailing words',
        '[{"name": "f", "parameters": {"q": "a"}}, {"name": 3}, null, 5]',
    ],
)
def test_calls_are_read_from_every_shape(body: str) -> None:
    assert [(c.name, c.arguments) for c in read_tool_calls(body)] == [("f", {"q": "a"})]


def test_several_calls_in_a_row_are_read() -> None:
    assert [c.name for c in read_tool_calls('{"name": "a"}\n{"name": "b"}, [{"name": "c"}]')] == [
        *"abc"
    ]


@pytest.mark.parametrize("body", ["", "not json", "{", "[" * 100_000, '"text"', "9" * 5000])
def test_what_is_no_call_gives_none(body: str) -> None:
    assert read_tool_calls(body) == []


def test_unreadable_arguments_are_told_from_none() -> None:
    assert read_arguments(None) == read_arguments(" ") == {}
    assert read_arguments("{broken") is None
    assert read_arguments([1]) is None
    broken = read_call({"name": "a", "arguments": "{broken"})
    assert broken is not None
    assert (broken.arguments, broken.written) == (None, "{broken")
    assert read_json("[" * 100_000) is None


def test_arguments_encoded_once_too_often_are_read() -> None:
    twice = json.dumps(json.dumps({"q": "bag"}))
    assert read_arguments(twice) == {"q": "bag"}
    assert read_arguments(json.dumps(twice)) is None


def test_a_messages_text_is_a_string_or_its_text_parts() -> None:
    parts: Any = [{"type": "text", "text": "a"}, {"type": "image"}, "x", {"text": 3}]
    assert [message_text(v) for v in ("a", parts, None, 4)] == ["a", "a", "", ""]


@given(st.lists(st.sampled_from(TAGS) | st.text(max_size=5), max_size=40).map("".join))
def test_reading_never_raises_and_loses_no_text(text: str) -> None:
    read = "".join(b.body for b in read_blocks(text))
    bare, read_bare = text, read
    for tag in TAGS:
        bare, read_bare = bare.replace(tag, ""), read_bare.replace(tag, "")
    assert sorted(read_bare) == sorted(bare) or any(t in bare for t in TAGS)
    read_tool_calls(text)


@given(st.lists(st.fixed_dictionaries({"name": st.sampled_from("abc")}), max_size=5))
def test_what_was_written_is_read_back(calls: list[dict[str, str]]) -> None:
    text = f"<think>t</think><tool_call>{json.dumps(calls)}</tool_call>"
    (block,) = [b for b in read_blocks(text) if b.kind == "tool_call"]
    assert [c.name for c in read_tool_calls(block.body)] == [c["name"] for c in calls]
