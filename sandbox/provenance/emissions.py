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
        native = native_calls(message)
        text = without_prefill(message_text(message.get("content")), prefill)
        emitted += (Emission(event.seq, index, call) for call in _union(native, text_calls(text)))
    return emitted[:MAX_EMISSIONS]


def native_calls(message: JsonObject) -> list[Call]:
    """The `tool_calls` of an assistant message, normalised."""
    items = message.get("tool_calls")
    written = [read_call(i) for i in items] if isinstance(items, list) else []
    return [_normal(w) for w in written if w is not None]


def text_calls(text: str) -> list[Call]:
    """The calls in `<tool_call>` blocks of a text, normalised. Drafts inside a think are none."""
    blocks = (block for block in read_blocks(text) if block.kind == "tool_call")
    return [call for block in blocks for call in block_calls(block.body)]


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


def _union(native: list[Call], text: list[Call]) -> list[Call]:
    """Native calls, then those text calls that do not stand among them."""
    seen = Counter(call.key for call in native)
    union = list(native)
    for call in text:
        if seen[call.key] > 0:
            seen[call.key] -= 1
        else:
            union.append(call)
    return union
