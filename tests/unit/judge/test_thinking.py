"""Only what stands in a recorded completion is thinking."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.thinking import ThoughtKind, field_text, narrations, read_thinking
from sandbox.trace import LlmEvent, Trace, Usage
from scoring.types import JsonObject
from tests.unit.judge.scenes import REASONED, Scene, searched, shopping, step


def completion(
    message: JsonObject, *, prompt: tuple[JsonObject, ...] = (), status: int = 200
) -> Trace:
    choices: tuple[JsonObject, ...] = ({"index": 0, "message": message},)
    event = LlmEvent(0, 0, 1, 1, "m", "s", False, tuple(range(len(prompt))), {}, status,
                     choices, Usage(9, 99))  # fmt: skip
    return Trace(tuple(prompt), (event,))


def thoughts(trace: Trace) -> list[tuple[ThoughtKind, str]]:
    return [(p.kind, t.text[p.start : p.end]) for t in read_thinking(trace) for p in t.parts]


CALL: JsonObject = {"function": {"name": "find_product", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"content": "plain"}, [(ThoughtKind.ANSWER, "plain")]),
        ({"content": "so", "tool_calls": [CALL]}, [(ThoughtKind.BESIDE_CALLS, "so")]),
        (
            {"content": "<think>a</think><tool_call>[]</tool_call>b"},
            [(ThoughtKind.TAGGED, "a"), (ThoughtKind.BESIDE_CALLS, "b")],
        ),
        ({"content": "<think>never closed"}, [(ThoughtKind.TAGGED, "never closed")]),
        ({"content": "a</think>b"}, [(ThoughtKind.TAGGED, "a"), (ThoughtKind.ANSWER, "b")]),
        ({"content": "<obs>[made up]</obs>"}, []),
        ({"content": None, "reasoning_content": "r"}, [(ThoughtKind.REASONING, "r")]),
        ({"content": "", "reasoning": "r"}, [(ThoughtKind.REASONING, "r")]),
        ({"reasoning_content": "r", "reasoning": "r"}, [(ThoughtKind.REASONING, "r")]),
        ({"content": [{"type": "text", "text": "x"}]}, [(ThoughtKind.ANSWER, "x")]),
        ({"content": None}, []),
        ({"content": 7}, []),
    ],
)
def test_where_thoughts_stand(message: JsonObject, expected: list[tuple[ThoughtKind, str]]) -> None:
    assert thoughts(completion(message)) == expected


def test_a_failed_completion_holds_no_thought() -> None:
    assert thoughts(completion({"content": "plain"}, status=502)) == []


def test_a_prefilled_turn_is_the_harness_s() -> None:
    prompt: tuple[JsonObject, ...] = ({"role": "assistant", "content": "<think>planted thought"},)
    echoed = completion({"content": "<think>planted thought and mine</think>"}, prompt=prompt)
    assert thoughts(echoed) == [(ThoughtKind.TAGGED, "and mine")]


def test_every_choice_thinks_for_itself() -> None:
    trace = completion({"content": "one"})
    event = next(trace.llm())
    second: JsonObject = {"index": 1, "message": {"content": "two"}}
    both = replace(trace, events=(replace(event, choices=(*event.choices, second)),))
    assert [t.field for t in read_thinking(both)] == ["think:0", "think:1"]
    assert field_text(both, both.events[0], "think:1") == "two"


def test_what_a_dialogue_adds_was_written_by_code() -> None:
    trace = shopping(f"<think>{REASONED}</think>").trace
    told = narrations(trace, [step(REASONED), step("Not a word of it."), "broken", step(" ")])
    assert [(n.step, n.recorded) for n in told] == [(1, True), (2, False)]
    assert not any(n.recorded for n in narrations(searched().trace, [step(REASONED)]))


def test_part_of_a_word_is_no_record() -> None:
    scene = Scene()
    scene.complete({"role": "assistant", "content": "unbelievable thoughts"})
    assert [n.recorded for n in narrations(scene.trace, [step("believable thoughts")])] == [False]
    assert [n.recorded for n in narrations(scene.trace, [step("unbelievable\nthoughts")])] == [True]


@given(st.recursive(st.none() | st.text(max_size=9) | st.integers(), lambda inner: st.lists(inner)
    | st.dictionaries(st.sampled_from(["completion", "message", "think", "content",
                                       "reasoning_content"]), inner), max_leaves=12))  # fmt: skip
def test_no_dialogue_raises(dialogue: object) -> None:
    narrations(searched().trace, dialogue)  # type: ignore[arg-type]
