"""What a model emitted: the tool calls in one answered completion.

Only what the provider's answer holds counts. A prefilled assistant turn was written
by the harness, also where the provider repeats it in its answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.provenance.calls import Call, normalise
from sandbox.provenance.tags import (
    WrittenCall,
    message_text,
    read_blocks,
    read_call,
    read_tool_calls,
)
from sandbox.trace import LlmEvent
from scoring.types import JsonObject

MAX_EMISSIONS = 2000
"""Emissions read from one completion; what follows pays nothing."""


@dataclass(frozen=True, slots=True)
class Emission:
    """One tool call in the answer of the completion with sequence number `seq`."""

    seq: int
    choice: int
    call: Call


def read_emissions(event: LlmEvent, prompt: Sequence[JsonObject]) -> list[Emission]:
    """The calls that the model emitted in `event`, choice by choice, in order.

    `prompt` are the messages sent. A call in both forms (native `tool_calls` and
    `<tool_call>` text) counts once. A failed completion emits nothing.
    """
    if event.status != 200:
        return []
    prefill = prefilled_text(prompt)
    emitted: list[Emission] = []
    for index, choice in enumerate(event.choices):
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict):
            continue
        calls = (call for _, call in emitted_calls(message, prefill))
        emitted += (Emission(event.seq, index, call) for call in calls)
    return emitted[:MAX_EMISSIONS]


def emitted_calls(message: JsonObject, prefill: str = "") -> list[tuple[WrittenCall, Call]]:
    """The calls of one choice's message, each as it was written and in normal form.

    Native calls first, then those of `<tool_call>` text that do not stand among them.
    Drafts inside a think are none.
    """
    items = message.get("tool_calls")
    native = [read_call(i) for i in items] if isinstance(items, list) else []
    text = without_prefill(message_text(message.get("content")), prefill)
    blocks = (block for block in read_blocks(text) if block.kind == "tool_call")
    tagged = [written for block in blocks for written in read_tool_calls(block.body)]
    return _union(
        [(w, _normal(w)) for w in native if w is not None], [(w, _normal(w)) for w in tagged]
    )


def native_calls(message: JsonObject) -> list[Call]:
    """The `tool_calls` of an assistant message, normalised."""
    items = message.get("tool_calls")
    written = [read_call(i) for i in items] if isinstance(items, list) else []
    return [_normal(w) for w in written if w is not None]


def block_calls(body: str) -> list[Call]:
    """The calls in the body of one `<tool_call>` block, normalised."""
    return [_normal(written) for written in read_tool_calls(body)]


def prefilled_text(prompt: Sequence[JsonObject]) -> str:
    """The text of an assistant turn that ends the prompt, for the model to go on with."""
    last = prompt[-1] if prompt else None
    if not isinstance(last, dict) or last.get("role") != "assistant":
        return ""
    return message_text(last.get("content"))


def without_prefill(text: str, prefill: str) -> str:
    """`text` without a repetition of the prefilled turn at its start."""
    start = prefill.strip()
    if start and text.lstrip().startswith(start):
        return text.lstrip()[len(start) :]
    return text


def _normal(written: WrittenCall) -> Call:
    return normalise(written.name, written.arguments)


def _union(
    native: list[tuple[WrittenCall, Call]], text: list[tuple[WrittenCall, Call]]
) -> list[tuple[WrittenCall, Call]]:
    """Native calls, then those text calls that do not stand among them."""
    seen = Counter(call.key for _, call in native)
    union = list(native)
    for written, call in text:
        if seen[call.key] > 0:
            seen[call.key] -= 1
        else:
            union.append((written, call))
    return union
