"""The nouns of the queue. Pure.

An *evaluation* is one agent version on one set of problems, wanted from X validators; its id
is the `race_id` of its records. A *run* is one validator's turn at it, held by a lease. The
states and their names are those of the public API (`oro-sdk` 7).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from scoring.exceptions import ErrorInfo


class EvaluationKind(StrEnum):
    """What an evaluation decides; the `phase` of its records."""

    QUALIFYING = "qualifying"
    RACE = "race"


class EvaluationState(StrEnum):
    """Whether validators are wanted still."""

    OPEN = "OPEN"
    CLOSED = "CLOSED"
    CANCELLED = "CANCELLED"


class RunState(StrEnum):
    """One validator's turn. CLAIMED and RUNNING are held by a lease, the others are final."""

    CLAIMED = "CLAIMED"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    STALE = "STALE"
    """Its lease ran out: the evaluation is another's, or the same validator's again."""
    CANCELLED = "CANCELLED"

    @property
    def held(self) -> bool:
        """Whether a lease holds it."""
        return self in (RunState.CLAIMED, RunState.RUNNING)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What is wanted. `problems` are ids in the order of the draw: the denominator."""

    evaluation_id: UUID
    version: UUID
    kind: EvaluationKind
    season_race: str | None
    """The race of the season that it belongs to; None for qualifying."""
    problems: tuple[str, ...]
    needed: int
    """From how many validators."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A run that a validator holds until `expires_at`, unless it says before that it lives."""

    run_id: UUID
    evaluation: Evaluation
    validator: str
    expires_at: datetime
    resumed: bool = False
    """The validator held this evaluation before: what it has stored of it counts on."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended. `failure` is None after SUCCESS; its fault decides what follows."""

    state: RunState
    failure: ErrorInfo | None = None
