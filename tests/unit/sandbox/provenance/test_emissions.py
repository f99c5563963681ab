from __future__ import annotations

import json

import pytest

from sandbox.provenance.emissions import read_emissions
from sandbox.trace import LlmEvent
from scoring.types import JsonObject
from tests.unit.sandbox.provenance.traces import TraceBuilder, call, native, tagged

FIND = call("find_product", q="canvas")
VIEW = call("view_product_information", product_ids="1")


def emitted(*answers: str | JsonObject, prompt: str = "", status: int = 200) -> list[str]:
    build = TraceBuilder()
    sent: list[JsonObject] = [{"role": "assistant", "content": prompt}] if prompt else []
    build.llm(sent, *answers, status=status)
    (event,) = build.trace.events
    assert isinstance(event, LlmEvent)
    return [e.call.name for e in read_emissions(event, sent)]


def test_both_forms_are_read() -> None:
    assert emitted(tagged("t", FIND, VIEW)) == ["find_product", "view_product_information"]
    assert emitted(native("t", FIND, VIEW)) == ["find_product", "view_product_information"]


def test_a_call_in_both_forms_counts_once() -> None:
    assert emitted(native(tagged("t", FIND), FIND)) == ["find_product"]
    assert emitted(native(tagged("t", FIND, FIND), FIND)) == ["find_product"] * 2
    assert emitted(native(tagged("t", VIEW), FIND)) == ["find_product", "view_product_information"]


def test_every_choice_emits() -> None:
    assert emitted(tagged("a", FIND), tagged("b", FIND)) == ["find_product"] * 2


def test_a_failed_completion_emits_nothing() -> None:
    assert emitted(tagged("t", FIND), status=502) == []


def test_a_draft_inside_a_think_is_no_emission() -> None:
    assert emitted(f"<think>maybe {tagged('', FIND)[15:]}</think>done") == []


@pytest.mark.parametrize("repeated", [True, False])
def test_a_prefilled_turn_is_no_emission(repeated: bool) -> None:
    prefill = f"<tool_call>{json.dumps([FIND])}</tool_call>"
    answer = tagged("t", VIEW)
    shown = prefill + answer if repeated else answer
    assert emitted(shown, prompt=prefill) == ["view_product_information"]


def test_a_call_that_was_begun_for_the_model_is_no_emission() -> None:
    begun = '<tool_call>[{"name": "find_product", "parameters": {"q": "'
    assert emitted('canvas"}}]</tool_call>', prompt=begun) == []


@pytest.mark.parametrize(
    "message",
    [
        {"content": None},
        {"content": 5, "tool_calls": "x"},
        {"tool_calls": [None, 1, {"function": 3}, {"function": {"name": 4}}]},
        {"content": [{"text": "hi"}]},
    ],
)
def test_strange_messages_emit_nothing(message: JsonObject) -> None:
    assert emitted(message) == []
