"""A conversation as steps: the calls of each turn of the model, and what they returned."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sandbox.provenance.calls import Call
from sandbox.provenance.emissions import emitted_calls
from scoring.types import Json, JsonObject

_MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class Step:
    """One turn: calls in normal form, and the tool results that came back, decoded."""

    calls: tuple[Call, ...]
    results: tuple[Json, ...]


def steps_of(messages: Sequence[Mapping[str, Json]]) -> list[Step]:
    """The steps of a conversation, one for each message of the assistant, in order."""
    turns: list[tuple[tuple[Call, ...], list[Json]]] = []
    for message in messages:
        role = message.get("role")
        if role == "assistant":
            turns.append((tuple(call for _, call in emitted_calls(_present(message))), []))
        elif role == "tool" and turns:
            turns[-1][1].append(_decoded(message.get("content")))
    return [Step(calls, tuple(results)) for calls, results in turns]


def shown_ids(result: Json) -> Iterator[str]:
    """The product ids that a tool's result shows, in order; nothing below a sane depth."""
    left: list[tuple[Json, int]] = [(result, 0)]
    while left:
        value, depth = left.pop()
        if depth > _MAX_DEPTH:
            continue
        if isinstance(value, dict):
            found = value.get("product_id")
            if isinstance(found, str | int) and not isinstance(found, bool):
                yield str(found)
            left.extend((inner, depth + 1) for inner in reversed(list(value.values())))
        elif isinstance(value, list):
            left.extend((inner, depth + 1) for inner in reversed(value))


def failed(result: Json) -> bool:
    """Whether a tool answered with an error of its own."""
    return isinstance(result, dict) and "error" in result


def _present(message: Mapping[str, Json]) -> JsonObject:
    """Rows of a corpus have every field; those without a value are none."""
    return {name: value for name, value in message.items() if value is not None}


def _decoded(content: Json) -> Json:
    if not isinstance(content, str):
        return content
    try:
        value: Json = json.loads(content)
    except (ValueError, RecursionError):
        return content
    return value
