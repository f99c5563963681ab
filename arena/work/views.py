"""What the queue shows: states at one moment, for pages, for the API and for the calendar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from arena.work.types import Evaluation, EvaluationState, RunState
from scoring.exceptions import ErrorInfo, Fault


class ProblemState(StrEnum):
    """How far a validator says it is with a problem; the names are those of the public API."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    SKIPPED = "SKIPPED"


def finishes(state: RunState, failure: ErrorInfo | None) -> bool:
    """Whether a run that ended so counts for its evaluation: it was whole, and what failed in
    it was the agent. No fault of a validator or of the platform ever counts."""
    return state is RunState.SUCCESS or (failure is not None and failure.fault is Fault.AGENT)


@dataclass(frozen=True, slots=True)
class EvaluationView:
    """An evaluation and how far it is."""

    evaluation: Evaluation
    state: EvaluationState
    taken: int
    """Validators that hold it or have finished it; never more than are needed."""
    finished: int
    opened_at: datetime
    ended_at: datetime | None

    @property
    def held(self) -> int:
        """Validators at work on it."""
        return self.taken - self.finished

    @property
    def wanted(self) -> int:
        """Seats that are free."""
        return self.evaluation.needed - self.taken if self.state is EvaluationState.OPEN else 0


@dataclass(frozen=True, slots=True)
class RunView:
    """A validator's turn. Times are the arena's."""

    run_id: UUID
    evaluation_id: UUID
    validator: str
    attempt: int
    """Its how many-th turn at this evaluation, from 1."""
    state: RunState
    lease: timedelta
    claimed_at: datetime
    started_at: datetime | None
    """When it was first heard of after the claim."""
    heard_at: datetime
    expires_at: datetime
    ended_at: datetime | None
    retry_at: datetime | None
    """After a failure: when this validator may claim the evaluation again."""
    counted: int
    """Records that came during this turn."""
    failure: ErrorInfo | None

    @property
    def finishes(self) -> bool:
        """Whether it counts for its evaluation."""
        return finishes(self.state, self.failure)


@dataclass(frozen=True, slots=True)
class ProblemProgress:
    """How far a run is with one problem, as its validator says."""

    problem_id: str
    state: ProblemState
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Completion:
    """How a run ended, and what that makes of its evaluation."""

    run: RunView
    evaluation: EvaluationView


@dataclass(frozen=True, slots=True)
class ValidatorResult:
    """What counts of one validator's work at an evaluation."""

    validator: str
    records: Mapping[str, str]
    """Problem id to the hash of the record that counts, in hex."""
    finished: bool
    """It has all problems, and its run has ended as whole."""


@dataclass(frozen=True, slots=True)
class EvaluationResults:
    """All that counts of an evaluation."""

    evaluation: EvaluationView
    validators: tuple[ValidatorResult, ...]
    """By name; also those that are not done."""

    @property
    def finished(self) -> tuple[ValidatorResult, ...]:
        """Those whose results are whole."""
        return tuple(result for result in self.validators if result.finished)
