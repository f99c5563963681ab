"""The distilled agent shows its model what the corpus showed it, and does what it says.

The gateway here is a scripted server on loopback: it answers completions and tools in
the order in which the agent asks.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from corpus_export.normalise import SYSTEM_TEXT
from corpus_export.rows import TOOLS
from neurons.agents import distilled
from scoring.attempt import Ending, read_attempt
from tests.unit.sandbox.agent_kit.wire import Wire, scripted


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    with scripted() as running:
        monkeypatch.setenv("SANDBOX_PROXY_URL", running.url)
        monkeypatch.setenv("SANDBOX_MODEL", "tiny")
        yield running


def solve() -> list[dict[str, Any]]:
    door = distilled.Door(time.monotonic() + 60, waits_s=(0.0,))
    return distilled.converse("a red mug", door)


def says(wire: Wire, *calls: tuple[str, Any], thinking: str = "hm", text: str | None = None) -> Any:
    """The next answer is this message; a dict of arguments is encoded, a text is not."""
    message: dict[str, Any] = {"role": "assistant", "content": text, "reasoning_content": thinking}
    message["tool_calls"] = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": given if isinstance(given, str) else json.dumps(given),
            },
        }
        for number, (name, given) in enumerate(calls, start=1)
    ]
    wire.say({"choices": [{"message": message}]})
    return message


def sent(wire: Wire) -> list[dict[str, Any]]:
    """The bodies of the completions that were asked for."""
    return [body for _, path, body, _ in wire.seen if "chat/completions" in path]


def paths(wire: Wire) -> list[str]:
    return [path for _, path, _, _ in wire.seen]


def test_the_system_text_and_the_tools_are_those_of_the_corpus_to_the_letter() -> None:
    assert distilled.SYSTEM == SYSTEM_TEXT
    assert json.dumps(distilled.TOOLS) == json.dumps(json.loads(TOOLS))


def test_it_carries_out_what_the_model_says_and_hands_its_words_back(wire: Wire) -> None:
    message = says(wire, ("find_product", {"q": "mug", "price": "-90"}))
    wire.say([{"product_id": "1", "price": 99.0}])
    says(wire, ("recommend_product", {"product_ids": "1"}), ("terminate", {"status": "success"}))
    wire.say("Having recommended the products to the user: 1.")
    wire.say("done")
    steps = solve()
    first, second = sent(wire)
    assert [m["role"] for m in first["messages"]] == ["system", "user"]
    assert first["messages"][1]["content"] == "a red mug"
    echoed, observed = second["messages"][2:]
    assert echoed == message | {"content": ""}
    assert observed["content"] == '[{"product_id":"1","price":99.0}]'
    assert read_attempt(steps).ending is Ending.PROPER
    assert read_attempt(steps).ids == ("1",)


def test_a_turn_without_a_call_is_the_end(wire: Wire) -> None:
    says(wire, text="I found nothing.")
    assert len(solve()) == 1
    assert len(wire.seen) == 1


def test_nothing_after_terminate_is_carried_out(wire: Wire) -> None:
    says(wire, ("terminate", {"status": "failure"}), ("find_product", {"q": "x"}))
    wire.say("done")
    solve()
    assert [path for path in paths(wire) if "tools" in path] == ["/tools/terminate"]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("find_product", '{"q": ', "not a JSON object"),
        ("find_product", '"red"', "not a JSON object"),
        ("buy", {}, "there is no tool"),
    ],
)
def test_a_call_that_cannot_be_made_is_answered_with_its_error(
    wire: Wire, name: str, arguments: Any, said: str
) -> None:
    says(wire, (name, arguments))
    says(wire, text="I give up.")
    solve()
    assert said in sent(wire)[1]["messages"][-1]["content"]
    assert not [path for path in paths(wire) if "tools" in path]


def test_marks_of_the_chat_format_in_product_texts_are_made_harmless_as_in_training() -> None:
    pytest.importorskip("renderers")
    from training.render.marks import MARKS, harmless

    for mark in MARKS:
        text = f"a {mark} b <b>bold</b> 3 < 4"
        assert distilled.observed(text) == harmless(text)


def test_long_texts_and_lists_are_shown_as_the_baseline_shows_them() -> None:
    shown = json.loads(distilled.observed([{"description": "x" * 5_000}] * 100))
    assert len(shown) == 60
    assert len(shown[0]["description"]) == 603


def test_passing_failures_are_asked_again_and_lasting_ones_end_the_work(wire: Wire) -> None:
    wire.say({"error": {}}, 503)
    says(wire, ("find_product", {"q": "mug"}))
    wire.say({"error": {}}, 502)
    wire.say([])
    wire.say({"error": {"message": "context length"}}, 400)
    assert len(solve()) == 1
