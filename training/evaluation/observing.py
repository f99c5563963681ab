"""What a run tells of its model besides the outcome: steps, truncation, invented products.

Read from the record alone, which the gateway wrote outside the sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sandbox.provenance.calls import Call
from sandbox.provenance.emissions import read_emissions
from sandbox.trace import LlmEvent, ToolEvent, Trace
from scoring.types import Json, JsonObject

_NAMING = ("product_ids", "product_id")
"""Arguments that name products."""
_MAX_IDS = 100
"""Ids read from one call; the tools refuse calls with more than 50."""


@dataclass(frozen=True, slots=True)
class Observed:
    """Counts over one run.

    A step is an answered completion. An id is invented when a call names it and nothing that
    the model was given before holds it: no tool result, no message. `truncated` are
    completions that ended for want of room; `completion_tokens` are the provider's count.
    """

    steps: int = 0
    calls: int = 0
    named_ids: int = 0
    invented_ids: int = 0
    inventing_steps: int = 0
    truncated: int = 0
    completion_tokens: int = 0

    def to_json(self) -> JsonObject:
        """By name."""
        return {name: getattr(self, name) for name in self.__slots__}


def observe(trace: Trace) -> Observed:
    """Count what the model did in one run."""
    shown = _Shown()
    steps = calls = named = invented = inventing = truncated = tokens = 0
    for event in trace.events:
        if isinstance(event, ToolEvent):
            shown.add_result(event.result)
            continue
        if not isinstance(event, LlmEvent) or event.status != 200:
            continue
        prompt = trace.prompt(event)
        shown.add_messages(event.prompt, prompt)
        emitted = [emission.call for emission in read_emissions(event, prompt)]
        ids = [name for call in emitted for name in named_ids(call)]
        strange = sum(name not in shown for name in ids)
        steps += 1
        calls += len(emitted)
        named += len(ids)
        invented += strange
        inventing += bool(strange)
        truncated += any(choice.get("finish_reason") == "length" for choice in event.choices)
        tokens += event.usage.completion_tokens if event.usage else 0
    return Observed(steps, calls, named, invented, inventing, truncated, tokens)


def named_ids(call: Call) -> list[str]:
    """The product ids that a call names, in order and distinct."""
    texts = (call.text(argument) for argument in _NAMING)
    ids = (part.strip() for text in texts for part in text.split(","))
    return list(dict.fromkeys(part for part in ids if part))[:_MAX_IDS]


class _Shown:
    """What a model was given so far."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._read: set[int] = set()
        self._texts: list[str] = []

    def add_result(self, result: Json) -> None:
        self._ids.update(_scalars(result))

    def add_messages(self, indices: Iterable[int], messages: Iterable[JsonObject]) -> None:
        for index, message in zip(indices, messages, strict=True):
            if index in self._read or message.get("role") == "assistant":
                continue
            self._read.add(index)
            self._texts.extend(_scalars(message.get("content")))

    def __contains__(self, product_id: str) -> bool:
        if product_id in self._ids:
            return True
        whole = re.compile(rf"(?<!\w){re.escape(product_id)}(?!\w)")
        if any(whole.search(text) for text in self._texts):
            self._ids.add(product_id)
            return True
        return False


def _scalars(value: Json) -> Iterator[str]:
    """Texts and whole numbers in a JSON value. A stack, not recursion: it may be deep."""
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, int) and not isinstance(item, bool):
            yield str(item)
        elif isinstance(item, dict):
            left.extend(item.values())
        elif isinstance(item, list):
            left.extend(item)
