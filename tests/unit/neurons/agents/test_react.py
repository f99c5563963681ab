"""The ReAct baseline does what the model says, and survives what goes wrong around it.

The gateway here is a scripted server on loopback: it answers completions and tools in
the order in which the agent asks.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from neurons.agents import react
from sandbox.tools.schemas import TOOL_SCHEMAS
from scoring.attempt import Ending, read_attempt
from tests.unit.sandbox.agent_kit.wire import Wire, scripted


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    with scripted() as running:
        monkeypatch.setenv("SANDBOX_PROXY_URL", running.url)
        monkeypatch.setenv("SANDBOX_MODEL", "standin/shopper-1")
        yield running


def solve() -> list[dict[str, Any]]:
    """The agent's work, without its pauses."""
    return react.converse("a red mug", react.Gateway(time.monotonic() + 60, first_wait_s=0))


def completes(wire: Wire, *calls: tuple[str, Any], text: str = "hm") -> None:
    """The next answer is a completion with these calls; a dict is encoded, a text is not."""
    wire.say(
        {
            "choices": [
                {
                    "message": {
                        "role": "assistant",
                        "content": text,
                        "tool_calls": [
                            {
                                "id": f"c{n}",
                                "type": "function",
                                "function": {
                                    "name": name,
                                    "arguments": a if isinstance(a, str) else json.dumps(a),
                                },
                            }
                            for n, (name, a) in enumerate(calls)
                        ],
                    }
                }
            ]
        }
    )


def paths(wire: Wire) -> list[str]:
    return [path for _, path, _, _ in wire.seen]


def test_its_tools_are_those_of_the_arena() -> None:
    def shape(schemas: Any) -> dict[str, Any]:
        return {
            s["function"]["name"]: (
                {k: v["type"] for k, v in s["function"]["parameters"]["properties"].items()}
            )
            for s in schemas
        }

    assert shape(react.TOOLS) == shape(TOOL_SCHEMAS)


def test_it_carries_out_exactly_what_the_model_says(wire: Wire) -> None:
    completes(wire, ("find_product", {"q": "mug", "price": "-90"}))
    wire.say([{"product_id": "1"}])
    completes(
        wire, ("recommend_product", {"product_ids": "1"}), ("terminate", {"status": "success"})
    )
    wire.say("recommended")
    wire.say("ended")
    steps = solve()
    assert paths(wire) == [
        "/inference/chat/completions",
        "/tools/find_product",
        "/inference/chat/completions",
        "/tools/recommend_product",
        "/tools/terminate",
    ]
    assert wire.seen[1][2] == {"q": "mug", "price": "-90"}
    attempt = read_attempt(steps)
    assert attempt.ids == ("1",)
    assert attempt.ending is Ending.PROPER
    answers = [m for m in wire.seen[2][2]["messages"] if m["role"] == "tool"]
    assert json.loads(answers[0]["content"]) == [{"product_id": "1"}]


def test_it_recommends_nothing_of_its_own(wire: Wire) -> None:
    for _ in range(4):
        completes(wire, text="I cannot decide.")
    steps = solve()
    assert set(paths(wire)) == {"/inference/chat/completions"}
    assert read_attempt(steps).ids == ()


@pytest.mark.parametrize("arguments", ["{", "[1]", '"x"', "null{"])
def test_a_malformed_call_is_told_to_the_model_and_not_sent(wire: Wire, arguments: str) -> None:
    completes(wire, ("find_product", arguments))
    completes(wire, ("terminate", {"status": "failure"}))
    wire.say("ended")
    solve()
    assert paths(wire) == ["/inference/chat/completions"] * 2 + ["/tools/terminate"]
    told = wire.seen[1][2]["messages"][-1]
    assert "JSON object" in told["content"]


def test_an_unknown_tool_is_told_to_the_model(wire: Wire) -> None:
    completes(wire, ("open_shell", {}))
    completes(wire, ("terminate", {"status": "failure"}))
    wire.say("ended")
    solve()
    assert "open_shell" in wire.seen[1][2]["messages"][-1]["content"]


def test_429_and_5xx_are_waited_out(wire: Wire) -> None:
    wire.say({"error": "slow down"}, 429)
    wire.say({"error": "oops"}, 500)
    completes(wire, ("terminate", {"status": "failure"}))
    wire.say({"error": "busy"}, 503)
    wire.say("ended")
    steps = solve()
    assert len(steps) == 1
    assert steps[0]["completion"]["message"]["tool_call"][0]["result"] == "ended"


def test_a_refused_second_recommendation_is_handed_to_the_model(wire: Wire) -> None:
    completes(wire, ("recommend_product", {"product_ids": "2"}))
    wire.say({"error": "there was one"}, 409)
    completes(wire, ("terminate", {"status": "success"}))
    wire.say("ended")
    solve()
    assert "there was one" in wire.seen[2][2]["messages"][-1]["content"]


def test_a_model_that_stays_away_ends_the_run_with_the_steps_so_far(wire: Wire) -> None:
    completes(wire, ("find_product", {"q": "mug"}))
    wire.say([])
    wire.say({"error": "gone"}, 500)
    steps = solve()
    assert [s["extra_info"]["step"] for s in steps] == [1]


@pytest.mark.parametrize("answer", [{}, {"choices": []}, {"choices": [{}]}, [], "text"])
def test_a_completion_of_a_strange_shape_ends_the_run_in_order(wire: Wire, answer: Any) -> None:
    wire.say(answer)
    assert isinstance(solve(), list)


def test_a_long_conversation_drops_its_oldest_answers_and_keeps_its_calls() -> None:
    big = "x" * 150_000
    messages: list[dict[str, Any]] = [{"role": "user", "content": "q"}]
    for n in range(4):
        messages.append({"role": "assistant", "content": "t", "tool_calls": [{"id": str(n)}]})
        messages.append({"role": "tool", "tool_call_id": str(n), "content": big})
    react._forget(messages)
    kept = [m for m in messages if m["role"] == "tool"]
    assert ["dropped" in m["content"] for m in kept] == [True, True, False, False]
    assert sum(m["role"] == "assistant" for m in messages) == 4


def test_a_long_description_is_cut_in_what_the_model_reads() -> None:
    bounded = react._bounded([{"description": "d" * 5000, "title": "mug"}])
    assert len(bounded[0]["description"]) < 700
    assert bounded[0]["title"] == "mug"
