"""A row taken apart into its steps, and put together again with new thoughts. Pure.

Only `reasoning_content` of assistant messages is ever written. `skeleton` is what has to
stay the same, to the byte: every call with its arguments, every observation, the order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from arena.runs.canonical import canonical
from scoring.types import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Step:
    """One assistant message: what it calls, and what came back, as the row has them."""

    calls: list[JsonObject]
    """`{"name", "arguments"}`, arguments as JSON text."""
    results: tuple[str, ...]


def query_of(messages: Sequence[JsonObject]) -> str:
    """The query that a row answers: its first user message."""
    first = next((m for m in messages if m.get("role") == "user"), None)
    return str(first["content"]) if first else ""


def steps_of(messages: Sequence[JsonObject]) -> tuple[Step, ...]:
    """The assistant messages of a row, each with the results that follow it."""
    steps: list[Step] = []
    for message in messages:
        if message.get("role") == "assistant":
            calls = [
                cast("JsonObject", {"name": f["name"], "arguments": f["arguments"]})
                for f in (call["function"] for call in _calls(message))
            ]
            steps.append(Step(calls, ()))
        elif message.get("role") == "tool" and steps:
            last = steps[-1]
            steps[-1] = Step(last.calls, (*last.results, str(message["content"])))
    return tuple(steps)


def with_thoughts(messages: Sequence[JsonObject], thoughts: Sequence[str]) -> list[JsonObject]:
    """The row with a thought before each step. Raises ValueError unless their number fits."""
    waiting = list(thoughts)
    rewritten: list[JsonObject] = []
    for message in messages:
        if message.get("role") == "assistant":
            if not waiting:
                raise ValueError("fewer thoughts than steps")
            message = {**message, "reasoning_content": waiting.pop(0)}
        rewritten.append(message)
    if waiting:
        raise ValueError("more thoughts than steps")
    return rewritten


def skeleton(messages: Sequence[JsonObject]) -> str:
    """SHA-256 over everything in a row but its thoughts, lower-case hex."""
    bare: list[Json] = [
        {key: value for key, value in message.items() if key != "reasoning_content"}
        for message in messages
    ]
    return hashlib.sha256(canonical(bare)).hexdigest()


def _calls(message: JsonObject) -> list[dict[str, JsonObject]]:
    return cast("list[dict[str, JsonObject]]", message.get("tool_calls") or [])
