"""What a judge says of a trace: a quality, the gate that decided, and where it stands written.

The quality is one of five, by the decision tree of the public network (notes of the
paper, section on the reasoning judge):

    0.1  no inference call of at least 30 completion tokens
    0.3  there is one, and no thinking refers to tool results
    0.5  it refers to them, and names no specific datum
    0.7  it names one, and compares no candidates
    0.9  it compares two candidates or more in one step, with a reason

Length and rhetoric count for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from scoring.exceptions import ErrorInfo
from scoring.types import Json, JsonObject

VERDICT_SCHEMA = 1


class Gate(StrEnum):
    """The question of the decision tree at which a trace stopped."""

    INFERENCE = "inference"
    REFERENCE = "reference"
    DATUM = "datum"
    COMPARISON = "comparison"
    PASSED = "passed"

    @property
    def quality(self) -> float:
        """The quality of a trace that stops here."""
        return QUALITIES[self]


QUALITIES: dict[Gate, float] = {
    Gate.INFERENCE: 0.1,
    Gate.REFERENCE: 0.3,
    Gate.DATUM: 0.5,
    Gate.COMPARISON: 0.7,
    Gate.PASSED: 0.9,
}


@dataclass(frozen=True, slots=True)
class Span:
    """A citation: `quote` stands at [start, end) of a text field of the trace event `event`.

    `event` is the event's `seq`. `field` names the text: `think:CHOICE` for the thinking
    of a completion's choice, `content:CHOICE` for its whole text, `result` for a tool's
    result as compact JSON. Offsets count code points.
    """

    event: int
    field: str
    start: int
    end: int
    quote: str

    def to_json(self) -> JsonObject:
        """The JSON object that records hold."""
        return {
            "event": self.event,
            "field": self.field,
            "start": self.start,
            "end": self.end,
            "quote": self.quote,
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> Span:
        """Read what `to_json` wrote."""
        return cls(**value)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judgement whose citations were checked against the trace.

    `capped_from` is the quality that the model gave where the facts allow less; `judges`
    are the models that decided, `standin` says that a rule-based one took part.
    """

    quality: float
    gate: Gate
    evidence: tuple[Span, ...]
    judges: tuple[str, ...]
    prompt_version: str
    standin: bool = False
    capped_from: float | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    failures: tuple[str, ...] = ()
    """Codes of the calls that failed on the way, in order."""

    def to_json(self) -> JsonObject:
        """The JSON object that records hold."""
        return {
            "schema": VERDICT_SCHEMA,
            "quality": self.quality,
            "gate": self.gate.value,
            "evidence": [span.to_json() for span in self.evidence],
            "judges": list(self.judges),
            "prompt_version": self.prompt_version,
            "standin": self.standin,
            "capped_from": self.capped_from,
            "calls": self.calls,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost_usd": self.cost_usd,
            "failures": list(self.failures),
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> Verdict:
        """Read what `to_json` wrote. Raises ValueError on another schema."""
        fields: dict[str, Json] = dict(value)
        if fields.pop("schema", None) != VERDICT_SCHEMA:
            raise ValueError(f"verdict schema {value.get('schema')!r}, expected {VERDICT_SCHEMA}")
        gate = Gate(cast("str", fields.pop("gate")))
        spans = cast("list[JsonObject]", fields.pop("evidence"))
        judges = cast("list[str]", fields.pop("judges"))
        failures = cast("list[str]", fields.pop("failures"))
        return cls(
            gate=gate,
            evidence=tuple(Span.from_json(span) for span in spans),
            judges=tuple(judges),
            failures=tuple(failures),
            **fields,  # type: ignore[arg-type]
        )


@dataclass(frozen=True, slots=True)
class Unjudged:
    """No verdict, and why. Judged later from the stored trace; averaged nowhere."""

    reason: ErrorInfo
    calls: int = 0
    failures: tuple[str, ...] = ()
    """Codes of the calls that failed, in order."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0

    def to_json(self) -> JsonObject:
        """The JSON object that records hold."""
        return {
            "schema": VERDICT_SCHEMA,
            "unjudged": dict(self.reason.to_json()),
            "calls": self.calls,
            "failures": list(self.failures),
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost_usd": self.cost_usd,
        }


Judgement = Verdict | Unjudged
