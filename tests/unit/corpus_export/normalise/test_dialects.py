"""The same behaviour gives the same rows, whatever the dialect it was spoken in."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_export.normalise import messages_of
from corpus_export.types import Trajectory
from scoring.types import Json, JsonObject
from tests.unit.corpus_export.builders import (
    GOOD,
    QUERY,
    Called,
    Move,
    NativeAgent,
    TagAgent,
    find,
    native_message,
    recommend,
    tag_text,
    terminate,
    trajectory_of,
    view,
)
from tests.unit.sandbox.provenance.traces import listing

WORDS = st.lists(
    st.sampled_from(["blue", "canvas", "bag", "über", "50%", "<b>", "a,b"]), min_size=4
)
THOUGHTS = WORDS.map(lambda words: "I think of " + " ".join(words))
VOUCHER: JsonObject = {
    "product_prices": "300,250.5",
    "voucher_type": "fixed",
    "discount_value": 100,
    "threshold": 500,
    "budget": 500,
}
SUM: JsonObject = {
    "prices": [300.0, 250.5],
    "total_before": 550.5,
    "discount_amount": 100,
    "total_after": 450.5,
    "within_budget": True,
    "voucher_applied": True,
    "budget": 500,
}
HELPER = Called("calculate_voucher", VOUCHER, SUM)
CALLS = st.lists(
    st.sampled_from(
        [
            find("canvas bag"),
            find("linen bag", 3, page=2, price="1-100"),
            find("bag's 50% off", 4, shop_id="7"),
            view(1, 2),
            view(3),
            HELPER,
        ]
    ),
    max_size=3,
    unique_by=lambda c: json.dumps(c.arguments),
)
MOVES = st.builds(Move, THOUGHTS, CALLS.map(tuple), st.sampled_from(["", "Here is what I found."]))


def numbered(moves: list[Move]) -> list[Move]:
    """Each thought its own: a real model does not repeat itself word by word."""
    return [replace(m, think=f"{m.think}, step {n}") for n, m in enumerate(moves)]


def same(one: Trajectory, other: Trajectory) -> None:
    assert replace(one, dialect="") == replace(other, dialect="")
    assert messages_of(one) == messages_of(other)


@given(st.lists(MOVES, min_size=1, max_size=5))
def test_one_behaviour_in_two_dialects_is_one_trajectory(moves: list[Move]) -> None:
    script = [*numbered(moves), *GOOD[2:]]
    native, tags = (trajectory_of(agent.play(script)) for agent in (NativeAgent(), TagAgent()))
    assert (native.dialect, tags.dialect) == ("native", "tags")
    assert len(native.turns) == len(script)
    assert sum(len(t.calls) for t in native.turns) == sum(len(m.calls) for m in script)
    assert all(len(t.results) == len(t.calls) for t in native.turns)
    same(native, tags)


def test_the_rows_of_a_good_run() -> None:
    messages = messages_of(trajectory_of(TagAgent().play(GOOD)))
    assert [m["role"] for m in messages] == ["system", "user", *["assistant", "tool"] * 4]
    assert messages[1]["content"] == QUERY
    assert {tuple(m) for m in messages} == {
        ("role", "content", "reasoning_content", "tool_calls", "tool_call_id", "name")
    }
    first = cast("list[dict[str, Json]]", messages[2]["tool_calls"])
    assert first == [
        {
            "id": "call_1",
            "type": "function",
            "function": {"name": "find_product", "arguments": '{"q":"blue canvas backpack"}'},
        }
    ]
    assert messages[2]["reasoning_content"] == GOOD[0].think
    assert (messages[3]["tool_call_id"], messages[3]["name"]) == ("call_1", "find_product")
    assert json.loads(str(messages[3]["content"])) == listing(1, 2)
    assert messages[-2]["content"] == "I recommend number 1."
    assert messages[-1]["content"] == "The interaction has been completed with status: success"


ARGUMENTS: JsonObject = {"q": "canvas bag", "page": 2}


@pytest.mark.parametrize(
    "written",
    [
        json.dumps(ARGUMENTS),
        json.dumps(ARGUMENTS, indent=2),
        json.dumps(json.dumps(ARGUMENTS)),
        ARGUMENTS,
        {"page": 2, "q": "canvas bag"},
    ],
    ids=["text", "indented", "encoded twice", "object", "another order"],
)
def test_arguments_in_any_form_are_one_text(written: Json) -> None:
    agent = NativeAgent()
    made = Move("I search for canvas bags now.", (find("canvas bag", page=2),))
    message = native_message(made)
    calls = cast("list[dict[str, JsonObject]]", message["tool_calls"])
    calls[0]["function"]["arguments"] = written
    agent.build.llm(agent.messages, message)
    agent.messages += [message]
    agent.turns = 1
    agent.act(made)
    agent.play(GOOD[2:])
    (call,) = trajectory_of(agent.build.trace).turns[0].calls
    assert call.arguments == '{"page":2,"q":"canvas bag"}'


def test_arguments_that_do_not_parse_stay_as_they_were_emitted() -> None:
    agent = NativeAgent()
    message = native_message(Move("I search for canvas bags now.", (find("canvas bag"),)))
    calls = cast("list[dict[str, JsonObject]]", message["tool_calls"])
    calls[0]["function"]["arguments"] = '{"q": "canvas'
    agent.build.llm(agent.messages, message)
    agent.messages += [message]
    agent.turns = 1
    agent.show(0, {"error": "the arguments are not a JSON object"})
    agent.play(GOOD[2:])
    turn = trajectory_of(agent.build.trace).turns[0]
    assert turn.calls[0].arguments == '{"q": "canvas'
    assert turn.results[0].content == '{"error":"the arguments are not a JSON object"}'


@pytest.mark.parametrize("place", ["reasoning_content", "reasoning", "think tags", "beside calls"])
def test_thinking_stands_in_one_place_wherever_it_was_put(place: str) -> None:
    agent = NativeAgent()
    thought = "I search for canvas bags now."
    message = native_message(Move("", (find("canvas bag"),)))
    if place == "think tags":
        message["content"] = f"<think>{thought}</think>"
    else:
        message["content" if place == "beside calls" else place] = thought
    agent.build.llm(agent.messages, message)
    agent.messages += [message]
    agent.turns = 1
    agent.act(Move("", (find("canvas bag"),)))
    agent.play(GOOD[2:])
    turn = trajectory_of(agent.build.trace).turns[0]
    assert (turn.reasoning, turn.content) == (thought, "")


def test_a_call_in_both_forms_is_one_call() -> None:
    agent = NativeAgent()
    move = Move("I search for canvas bags now.", (find("canvas bag"),))
    message = native_message(move) | {"content": tag_text(move)}
    agent.build.llm(agent.messages, message)
    agent.messages += [message]
    agent.turns = 1
    agent.act(move)
    agent.play(GOOD[2:])
    assert len(trajectory_of(agent.build.trace).turns[0].calls) == 1


def test_the_ids_of_calls_count_through_the_trajectory() -> None:
    moves = [Move("I look twice at once.", (find("bag"), find("bag", page=2))), *GOOD[2:]]
    made = trajectory_of(NativeAgent().play(moves))
    assert [c.id for t in made.turns for c in t.calls] == ["call_1", "call_2", "call_3", "call_4"]
    assert [r.call_id for t in made.turns for r in t.results] == [
        c.id for t in made.turns for c in t.calls
    ]


def test_text_that_no_row_can_hold_is_mended() -> None:
    odd = Move("A \ud800 thought \x00 of mine, long enough.", (find("b\x00g"),), "\ud83d")
    agent = NativeAgent()
    made = trajectory_of(agent.play([odd, Move("Done, I say.", (recommend(1), terminate()))]))
    text = json.dumps(messages_of(made), ensure_ascii=False)
    text.encode()
    assert "\\u0000" not in text
