"""Whether written thoughts hold: what a judge's facts say of them, step by step. Pure.

The row is read as if the gateway had recorded it, so that the same code that bounds a
judge's verdict decides here: ids that were never shown are invented, text that stands in
the prompt is copied, and the highest gate is what the data bear out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import cast

from corpus_export.rewriting.assembly import query_of
from judge.facts import Facts, read_facts
from sandbox.trace import Event, LlmEvent, ToolEvent, Trace
from scoring.types import Json, JsonObject

_MARKUP = re.compile(r"<\|?/?[a-z_]{2,20}\|?>", re.IGNORECASE)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_SMALL = 100
"""Counts, ranks and percentages are not looked up."""
MODEL = "rewriter"


def as_trace(messages: Sequence[JsonObject]) -> Trace:
    """A row as a trace: each assistant message a completion, each result a tool's answer."""
    events: list[Event] = []
    called: dict[str, tuple[str, str]] = {}
    for place, message in enumerate(messages):
        seq = len(events)
        if message.get("role") == "assistant":
            for call in cast("list[dict[str, JsonObject]]", message.get("tool_calls") or []):
                function = call["function"]
                called[str(call["id"])] = str(function["name"]), str(function["arguments"])
            choice: JsonObject = {"index": 0, "message": message, "finish_reason": "tool_calls"}
            events.append(
                LlmEvent(
                    seq=seq,
                    started_ms=seq,
                    elapsed_ms=0,
                    waited_ms=0,
                    model=MODEL,
                    server=MODEL,
                    standin=False,
                    prompt=tuple(range(place)),
                    params={},
                    status=200,
                    choices=(choice,),
                )
            )
        elif message.get("role") == "tool":
            name, arguments = called.get(str(message.get("tool_call_id")), ("", "{}"))
            parsed = _parsed(arguments)
            events.append(
                ToolEvent(
                    seq=seq,
                    started_ms=seq,
                    elapsed_ms=0,
                    via="tools",
                    name=name,
                    arguments=parsed if isinstance(parsed, dict) else {},
                    status=200,
                    result=_parsed(str(message["content"])),
                )
            )
    return Trace(messages=tuple(messages), events=tuple(events))


def facts_of(messages: Sequence[JsonObject]) -> Facts:
    """The judge's facts of a row."""
    return read_facts(as_trace(messages), query_of(messages))


def faults(messages: Sequence[JsonObject], min_quality: float) -> list[str]:
    """Why the thoughts of a row cannot be used, a short phrase each; empty when they hold.

    No phrase holds text of a thought but its numbers: it is shown to the model again.
    """
    found: list[str] = []
    facts = facts_of(messages)
    thoughts = [str(m.get("reasoning_content") or "") for m in messages if _speaks(m)]
    for number, thought in enumerate(thoughts, 1):
        if _MARKUP.search(thought):
            found.append(f"thought {number} contains markup")
    by_event = {step.event: step for step in facts.steps}
    spoken = [event.seq for event in as_trace(messages).llm()]
    for number, event in enumerate(spoken, 1):
        step = by_event.get(event)
        if step and step.unknown:
            found.append(f"thought {number} names an id that no earlier step showed")
        if step and step.copied:
            found.append(f"thought {number} repeats text that was put before the model")
    found += _invented(messages)
    if not found and facts.ceiling < min_quality:
        found.append(
            f"the thoughts reach {facts.gate.value} only: name data of earlier observations and"
            " compare candidates by them"
        )
    return found


def _invented(messages: Sequence[JsonObject]) -> Iterator[str]:
    """Numbers of a thought that stand in no earlier message."""
    shown: set[float] = set()
    number = 0
    for message in messages:
        if _speaks(message):
            number += 1
            for text in _NUMBER.findall(str(message.get("reasoning_content") or "")):
                value = float(text.replace(",", ""))
                if value >= _SMALL and value not in shown:
                    yield f"thought {number} has the number {text[:30]}, which nothing showed"
                    break
        for text in (str(message.get("content") or ""), *_arguments(message)):
            shown.update(float(x.replace(",", "")) for x in _NUMBER.findall(text))


def _arguments(message: JsonObject) -> Iterator[str]:
    for call in cast("list[dict[str, JsonObject]]", message.get("tool_calls") or []):
        yield str(call["function"]["arguments"])


def _speaks(message: JsonObject) -> bool:
    return message.get("role") == "assistant"


def _parsed(text: str) -> Json:
    try:
        return cast("Json", json.loads(text))
    except (ValueError, RecursionError):
        return text
