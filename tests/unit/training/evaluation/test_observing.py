from __future__ import annotations

import json
from typing import Any

from sandbox.trace import LlmEvent, ToolEvent, Trace, Usage
from scoring.types import JsonObject
from training.evaluation.observing import observe


def llm(seq: int, prompt: tuple[int, ...], *calls: tuple[str, Any], finish: str = "stop",
        status: int = 200) -> LlmEvent:  # fmt: skip
    written: list[Any] = [
        {"id": "c", "type": "function",
         "function": {"name": name, "arguments": json.dumps(arguments)}}
        for name, arguments in calls
    ]  # fmt: skip
    message: JsonObject = {"role": "assistant", "content": "", "tool_calls": written}
    choices: tuple[JsonObject, ...] = ({"index": 0, "message": message, "finish_reason": finish},)
    return LlmEvent(
        seq=seq, started_ms=0, elapsed_ms=0, waited_ms=0, model="m", server="s", standin=False,
        prompt=prompt, params={}, status=status, choices=choices if status == 200 else (),
        usage=Usage(1, 7),
    )  # fmt: skip


def tool(seq: int, result: Any) -> ToolEvent:
    return ToolEvent(
        seq=seq, started_ms=0, elapsed_ms=0, via="tools", name="find_product", arguments={},
        status=200, result=result,
    )  # fmt: skip


QUERY: JsonObject = {"role": "user", "content": "a mug like product 900, but blue"}


def view(ids: str) -> tuple[str, Any]:
    return "view_product_information", {"product_ids": ids}


def test_an_id_is_invented_when_nothing_before_the_call_showed_it() -> None:
    trace = Trace(
        messages=(QUERY,),
        events=(
            llm(0, (0,), ("find_product", {"q": "mug"})),
            tool(1, [{"product_id": "11", "price": 5}, {"product_id": 12}]),
            llm(2, (0,), view("11, 12,900"), view("77,78")),
            tool(3, []),
            llm(4, (0,), ("recommend_product", {"product_ids": "77"})),
        ),
    )
    seen = observe(trace)
    assert (seen.steps, seen.calls, seen.named_ids) == (3, 4, 6)
    assert (seen.invented_ids, seen.inventing_steps) == (3, 2)
    assert seen.completion_tokens == 21


def test_what_is_shown_only_later_was_invented() -> None:
    trace = Trace((QUERY,), (llm(0, (0,), view("11")), tool(1, [{"product_id": "11"}])))
    assert observe(trace).invented_ids == 1


def test_an_id_within_a_longer_number_is_not_shown() -> None:
    trace = Trace((QUERY,), (llm(0, (0,), view("90")),))
    assert observe(trace).invented_ids == 1


def test_what_the_model_said_itself_shows_nothing() -> None:
    said: JsonObject = {"role": "assistant", "content": "perhaps 55"}
    told: JsonObject = {"role": "tool", "content": '[{"product_id": "56"}]'}
    trace = Trace((QUERY, said, told), (llm(0, (0, 1, 2), view("55,56")),))
    assert observe(trace).invented_ids == 1


def test_completions_without_room_are_counted_and_failed_ones_are_no_steps() -> None:
    events = (llm(0, (0,), finish="length"), llm(1, (0,), status=502), llm(2, (0,)))
    seen = observe(Trace((QUERY,), events))
    assert (seen.steps, seen.truncated) == (2, 1)


def test_results_nested_beyond_reason_are_read() -> None:
    deep: Any = "11"
    for _ in range(5000):
        deep = [deep]
    trace = Trace((QUERY,), (tool(0, deep), llm(1, (0,), view("11"))))
    assert observe(trace).invented_ids == 0
