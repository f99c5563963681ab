"""One completion as it reads in the corpus: thinking, text and calls, whatever the dialect."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.provenance import WrittenCall, message_text, read_blocks
from sandbox.provenance.calls import Call
from sandbox.provenance.emissions import emitted_calls, without_prefill
from sandbox.trace import LlmEvent
from scoring.types import JsonObject

GAP = "\n\n"
"""Between parts of the thinking, or of the text, of one completion."""
MAX_CALLS = 256
"""Calls of one completion that are read; the gateway's token limit allows no more that mean
anything."""


@dataclass(frozen=True, slots=True)
class Speech:
    """What one choice says. `ids` are those that a native answer gives its calls."""

    reasoning: str
    content: str
    calls: tuple[tuple[WrittenCall, Call], ...]
    ids: tuple[str | None, ...]
    native: bool
    tagged: bool


def read_speech(message: JsonObject, prefill: str = "") -> Speech:
    """Read the message of one choice. Never raises on its content.

    Thinking is `reasoning_content` (or `reasoning`) and the `<think>` blocks. Where there
    is none, plain text beside calls is the thinking: that is where models without a
    thinking mode put it. `<response>` blocks and other text are content; an observation
    that a model writes for itself is neither.
    """
    calls = emitted_calls(message, prefill)[:MAX_CALLS]
    text = without_prefill(message_text(message.get("content")), prefill)
    blocks = read_blocks(text) if "<" in text else []
    thoughts = [_reasoning_field(message)]
    loose: list[str] = []
    answers: list[str] = []
    for block in blocks:
        if block.kind == "think":
            thoughts.append(block.body)
        elif block.kind == "text":
            loose.append(block.body)
        elif block.kind == "response":
            answers.append(block.body)
    if not blocks:
        loose.append(text)
    reasoning = _joined(thoughts)
    if not reasoning and calls:
        reasoning, loose = _joined(loose), []
    native_ids = _native_ids(message)
    return Speech(
        reasoning=reasoning,
        content=_joined([*loose, *answers]),
        calls=tuple(calls),
        ids=tuple((native_ids + [None] * len(calls))[: len(calls)]),
        native=bool(native_ids),
        tagged=any(block.kind != "text" for block in blocks),
    )


def read_speeches(event: LlmEvent, prefill: str = "") -> tuple[Speech, ...]:
    """The speech of every choice; none of a completion that failed or says nothing at all.

    Thinking alone is speech: a model that ran out of tokens said no more.
    """
    if event.status != 200:
        return ()
    speeches = tuple(read_speech(message_of(choice) or {}, prefill) for choice in event.choices)
    spoken = any(speech.reasoning or speech.content or speech.calls for speech in speeches)
    return speeches if spoken else ()


def message_of(choice: JsonObject) -> JsonObject | None:
    """The message of a choice, or None in a broken one."""
    message = choice.get("message") if isinstance(choice, dict) else None
    return message if isinstance(message, dict) else None


def _reasoning_field(message: JsonObject) -> str:
    for name in ("reasoning_content", "reasoning"):
        text = message_text(message.get(name))
        if text.strip():
            return text
    return ""


def _native_ids(message: JsonObject) -> list[str | None]:
    items = message.get("tool_calls")
    ids: list[str | None] = []
    for item in items if isinstance(items, list) else ():
        named = item.get("id") if isinstance(item, dict) else None
        ids.append(named if isinstance(named, str) else None)
    return ids


def _joined(texts: list[str]) -> str:
    return GAP.join(shown for text in texts if (shown := text.strip()))
