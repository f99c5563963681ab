"""What the decision says, as data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias, cast

from sandbox.provenance.dictation import DictationKind
from scoring.types import Json, JsonObject

Axis: TypeAlias = Literal["A", "B"]


PROVENANCE_VERSION = "1"
"""Raised with every change that can move a run to the other axis, or its counts: records
hold it, and who decides again needs the same rules."""


class Reason(StrEnum):
    """Why a run is axis B. Stable: records hold them."""

    EMPTY = "axis.empty"
    """Nothing was dispatched."""
    UNMATCHED = "axis.unmatched_dispatch"
    """Code made a tool call that no model had emitted."""
    RECOMMENDATION = "axis.recommendation_not_emitted"
    """The recommendation is not the last one that a model emitted."""
    INVENTED_TOOL = "axis.invented_tool"
    """The agent offered tools of its own."""
    NO_RETRIEVAL = "axis.no_retrieval"
    """Nothing that the model called looked anything up."""
    DICTATED = "axis.dictated"
    """The harness told the model which call to emit."""
    TOO_LARGE = "axis.too_large"
    """More events than a run can have within any limits."""


@dataclass(frozen=True, slots=True)
class UnmatchedDispatch:
    """A tool call that code made. `seq` is its event's; None for the dialogue's recommendation."""

    seq: int | None
    name: str


@dataclass(frozen=True, slots=True)
class DictatedEmission:
    """An emission that was not the model's. `seq` is its completion's."""

    seq: int
    name: str
    kind: DictationKind


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who made the tool calls of a run: the model (axis A) or the agent's code (B).

    `reasons` is empty exactly on axis A. `dispatched` counts tool calls, a request
    repeated after a failure once, and the recommendation where only the dialogue holds it.
    `agentic_ratio` is matched ÷ (dispatched − covered): 1.0 when all was covered, 0.0
    when nothing was dispatched.
    """

    axis: Axis
    reasons: tuple[Reason, ...] = ()
    emitted: int = 0
    matched: int = 0
    covered: int = 0
    dispatched: int = 0
    agentic_ratio: float = 0.0
    unmatched: tuple[UnmatchedDispatch, ...] = ()
    dictated: tuple[DictatedEmission, ...] = ()

    def to_json(self) -> JsonObject:
        """The JSON object that records hold."""
        unmatched: list[JsonObject] = [{"seq": u.seq, "name": u.name} for u in self.unmatched]
        dictated: list[JsonObject] = [
            {"seq": d.seq, "name": d.name, "kind": d.kind.value} for d in self.dictated
        ]
        return {
            "version": PROVENANCE_VERSION,
            "axis": self.axis,
            "reasons": [reason.value for reason in self.reasons],
            "emitted": self.emitted,
            "matched": self.matched,
            "covered": self.covered,
            "dispatched": self.dispatched,
            "agentic_ratio": self.agentic_ratio,
            "unmatched": cast("Json", unmatched),
            "dictated": cast("Json", dictated),
        }
