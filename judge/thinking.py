"""What the model itself thought, read from the recorded completions and nothing else.

An agent returns a dialogue of its own making, and may write any thoughts into it. Here
only what stands in the answer of a model provider is thinking; `narrations` tells the
texts of a dialogue that no completion holds, which code wrote. Pure; it reads `sandbox`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from sandbox.provenance.emissions import prefilled_text, without_prefill
from sandbox.provenance.tags import message_text, read_blocks
from sandbox.trace import Event, LlmEvent, ToolEvent, Trace
from scoring.types import Json, JsonObject

GAP = "\n\n"
"""Between the parts of one choice's thinking."""
MAX_STEPS = 10_000


class ThoughtKind(StrEnum):
    """Where in a completion a thought stands."""

    REASONING = "reasoning"
    """In `reasoning_content` (or `reasoning`), apart from the answer."""
    TAGGED = "tagged"
    """Inside `<think>` tags."""
    BESIDE_CALLS = "beside_calls"
    """Plain content of an answer that also calls tools."""
    ANSWER = "answer"
    """Plain content of an answer that calls nothing: often an echo of what code put in."""


@dataclass(frozen=True, slots=True)
class Part:
    """One stretch of thinking: `[start, end)` of `Thinking.text`."""

    kind: ThoughtKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Thinking:
    """All thinking of one choice of one completion, as one text: the field `think:CHOICE`."""

    event: int
    choice: int
    text: str
    parts: tuple[Part, ...]

    @property
    def field(self) -> str:
        """How a citation names this text."""
        return f"think:{self.choice}"


@dataclass(frozen=True, slots=True)
class Narration:
    """A thought in the agent's dialogue. `recorded` says that a completion holds it."""

    step: int
    text: str
    recorded: bool


def read_thinking(trace: Trace) -> list[Thinking]:
    """The thinking of every answered completion, in order; choices without any are left out."""
    return [thinking for event in trace.llm() for thinking in thinking_of(trace, event)]


def thinking_of(trace: Trace, event: LlmEvent) -> list[Thinking]:
    """The thinking of one completion, choice by choice. A failed one has none."""
    if event.status != 200:
        return []
    prefill = prefilled_text(prompt_messages(trace, event)[-1:])
    found = []
    for index, choice in enumerate(event.choices):
        message = choice.get("message") if isinstance(choice, dict) else None
        if isinstance(message, dict):
            thinking = _thinking(event.seq, index, message, prefill)
            if thinking.parts:
                found.append(thinking)
    return found


def prompt_messages(trace: Trace, event: LlmEvent) -> list[JsonObject]:
    """The messages that `event` sent; indices that name none are left out."""
    n = len(trace.messages)
    return [trace.messages[i] for i in event.prompt if 0 <= i < n]


def field_text(trace: Trace, event: Event, field: str) -> str | None:
    """The whole raw text that a citation's `field` names, or None when there is no such text.

    `think:CHOICE`, `content:CHOICE` of a completion; `arguments`, `result` of a tool call,
    as compact JSON.
    """
    if isinstance(event, ToolEvent):
        if field == "result":
            return compact(event.result)
        return compact(event.arguments) if field == "arguments" else None
    name, _, number = field.partition(":")
    if not isinstance(event, LlmEvent) or not (number.isascii() and number.isdigit()):
        return None
    choice = int(number[:9])
    if name == "think":
        return next((t.text for t in thinking_of(trace, event) if t.choice == choice), None)
    if name == "content" and choice < len(event.choices):
        message = event.choices[choice].get("message")
        return message_text(message.get("content")) if isinstance(message, dict) else None
    return None


def compact(value: Json) -> str:
    """A value as compact JSON text: what citations of tool calls count their offsets in."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError):
        return ""


def narrations(trace: Trace, dialogue: Sequence[Any] | None) -> list[Narration]:
    """The thoughts of the agent's dialogue, each with whether a completion holds it.

    Compared word by word; never raises on the dialogue's content.
    """
    steps = dialogue[:MAX_STEPS] if isinstance(dialogue, list | tuple) else ()
    recorded = "\x00".join(
        [""] + [f" {_words(text)} " for event in trace.llm() for text in _texts(event)] + [""]
    )
    found = []
    for number, step in enumerate(steps, start=1):
        found += [
            Narration(number, text, f" {_words(text)} " in recorded)
            for text in dict.fromkeys(_dialogue_thoughts(step))
        ]
    return found


def _thinking(seq: int, index: int, message: JsonObject, prefill: str) -> Thinking:
    pieces: list[tuple[ThoughtKind, str]] = []
    for name in ("reasoning_content", "reasoning"):
        text = message_text(message.get(name))
        if text.strip():
            pieces.append((ThoughtKind.REASONING, text))
            break  # some providers say it twice
    content = without_prefill(message_text(message.get("content")), prefill)
    blocks = read_blocks(content) if "<" in content else []
    calls = bool(message.get("tool_calls")) or any(b.kind == "tool_call" for b in blocks)
    plain = ThoughtKind.BESIDE_CALLS if calls else ThoughtKind.ANSWER
    if not blocks:
        pieces.append((plain, content))
    for block in blocks:
        if block.kind == "think":
            pieces.append((ThoughtKind.TAGGED, block.body))
        elif block.kind in ("text", "response"):
            pieces.append((plain, block.body))
    return _joined(seq, index, pieces)


def _joined(seq: int, index: int, pieces: list[tuple[ThoughtKind, str]]) -> Thinking:
    parts: list[Part] = []
    texts: list[str] = []
    at = 0
    for kind, text in pieces:
        shown = text.strip()
        if not shown:
            continue
        if texts:
            at += len(GAP)
        parts.append(Part(kind, at, at + len(shown)))
        texts.append(shown)
        at += len(shown)
    return Thinking(seq, index, GAP.join(texts), tuple(parts))


def _texts(event: LlmEvent) -> Iterator[str]:
    if event.status != 200:
        return
    for choice in event.choices:
        message = choice.get("message") if isinstance(choice, dict) else None
        if isinstance(message, dict):
            for name in ("reasoning_content", "reasoning", "content"):
                text = message_text(message.get(name))
                yield text
                if "<" in text:
                    yield from (block.body for block in read_blocks(text))


def _dialogue_thoughts(step: Any) -> Iterator[str]:
    completion = step.get("completion") if isinstance(step, dict) else None
    if not isinstance(completion, dict):
        return
    message = completion.get("message")
    said = [completion.get("reasoning_content")]
    if isinstance(message, dict):
        said.append(message.get("think"))
    for text in said:
        if isinstance(text, str) and text.strip():
            yield text
    if not (isinstance(message, dict) and message.get("think")):
        content = message_text(cast("object", completion.get("content")))
        yield from (b.body for b in read_blocks(content) if b.kind == "think" and b.body.strip())


def _words(text: str) -> str:
    return " ".join(text.split())
