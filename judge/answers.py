"""What a judge model answers, read: structured output, or JSON with talk around it.

Pure. An answer that is cut off, that holds no verdict or that contradicts itself is
broken; nothing is guessed from it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import cast

from judge.citations import MAX_CITATIONS, Citation
from judge.verdict import QUALITIES, Gate
from scoring.types import Json, JsonObject

MAX_ANSWER = 200_000
MAX_STARTS = 200
"""Opening braces tried in a text without structure."""
_DECODER = json.JSONDecoder(strict=False)


class AnswerError(ValueError):
    """An answer that is no verdict; the message says why in a few plain words."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A verdict as a model gave it, unchecked."""

    gate: Gate
    citations: tuple[Citation, ...]
    reason: str


ANSWER_SCHEMA: JsonObject = {
    "type": "object",
    "additionalProperties": False,
    "required": ["reason", "gate", "evidence"],
    "properties": {
        "reason": {"type": "string", "description": "Two sentences at most."},
        "gate": {
            "type": "string",
            "enum": [gate.value for gate in Gate],
            "description": "The first question that was answered with no; passed if none.",
        },
        "evidence": {
            "type": "array",
            "description": "Exact quotes that carry the verdict.",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["event", "field", "quote"],
                "properties": {
                    "event": {"type": "integer"},
                    "field": {"type": "string"},
                    "quote": {"type": "string"},
                },
            },
        },
    },
}


def read_answer(text: str) -> Answer:
    """Read a model's answer. Raises AnswerError."""
    if not text.strip():
        raise AnswerError("the answer is empty")
    if len(text) > MAX_ANSWER:
        raise AnswerError(f"the answer has more than {MAX_ANSWER:,} characters")
    found = [value for value in _objects(text) if "gate" in value or "quality" in value]
    if not found:
        cut = text.count("{") > text.count("}")
        raise AnswerError("the JSON is cut off" if cut else "there is no JSON verdict in it")
    answers = [_answer(value) for value in found]
    if any(a.gate is not answers[-1].gate for a in answers):
        raise AnswerError("there are several verdicts in it, and they differ")
    return answers[-1]


def _objects(text: str) -> list[JsonObject]:
    """The outermost JSON objects in a text, in order; those of a thought come first."""
    text = text.rpartition("</think>")[2]
    found: list[JsonObject] = []
    at = text.find("{")
    for _ in range(MAX_STARTS):
        if at < 0:
            break
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        if isinstance(value, dict):
            found.append(cast("JsonObject", value))
        at = text.find("{", end)
    return found


def _answer(value: JsonObject) -> Answer:
    gates = [gate for gate in (_gate(value.get("gate")), _by_quality(value.get("quality"))) if gate]
    if not gates:
        raise AnswerError("gate is none of " + ", ".join(gate.value for gate in Gate))
    # Where the two disagree, the model is held to the less it said.
    gate = min(gates, key=lambda g: g.quality)
    reason = value.get("reason")
    return Answer(
        gate, _citations(value.get("evidence")), reason if isinstance(reason, str) else ""
    )


def _gate(value: Json) -> Gate | None:
    if not isinstance(value, str):
        return None
    try:
        return Gate(value.strip().lower())
    except ValueError:
        return None


def _by_quality(value: Json) -> Gate | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return next((g for g, q in QUALITIES.items() if math.isclose(q, value, abs_tol=1e-9)), None)


def _citations(value: Json) -> tuple[Citation, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise AnswerError("evidence is no list")
    citations = []
    for item in value[: MAX_CITATIONS + 1]:
        if not isinstance(item, dict):
            raise AnswerError("a citation is no object")
        event, field, quote = item.get("event"), item.get("field"), item.get("quote")
        if isinstance(event, bool) or not isinstance(event, int):
            raise AnswerError("a citation names no event by its number")
        if not isinstance(field, str) or not isinstance(quote, str):
            raise AnswerError("a citation needs field and quote as texts")
        citations.append(
            Citation(
                event, field.strip(), quote, _offset(item.get("start")), _offset(item.get("end"))
            )
        )
    return tuple(citations)


def _offset(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
