"""The state of an agent version, from season and queue. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from arena.season.state import Entrant, Season
from arena.work.types import EvaluationKind, EvaluationState
from arena.work.views import EvaluationView


class VersionState(StrEnum):
    """The SDK's AgentVersionState."""

    RECEIVED = "RECEIVED"
    """Admitted; no validator is wanted for it yet."""
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    """Validators are at work on it, or have finished and it is being decided."""
    ELIGIBLE = "ELIGIBLE"
    """It qualified, and may race."""
    DISCARDED = "DISCARDED"
    """It did not qualify, or is disqualified."""
    CANCELLED = "CANCELLED"
    """Its hotkey has left, or nobody could evaluate it."""


def version_state(entrant: Entrant | None, evaluations: Sequence[EvaluationView]) -> VersionState:
    """The state of a version with these evaluations."""
    if entrant is not None:
        if entrant.disqualified is not None or (
            entrant.qualifying is not None and not entrant.qualified
        ):
            return VersionState.DISCARDED
        if entrant.left:
            return VersionState.CANCELLED
        if entrant.qualified:
            return VersionState.ELIGIBLE
    qualifying = qualifying_of(evaluations)
    if qualifying is None:
        return VersionState.RECEIVED
    if qualifying.state is EvaluationState.CANCELLED:
        return VersionState.CANCELLED
    if qualifying.state is EvaluationState.OPEN and not qualifying.taken:
        return VersionState.QUEUED
    return VersionState.RUNNING


def qualifying_of(evaluations: Sequence[EvaluationView]) -> EvaluationView | None:
    """The evaluation that qualifies a version; the last one when there are several."""
    found = [e for e in evaluations if e.evaluation.kind is EvaluationKind.QUALIFYING]
    return found[-1] if found else None


@dataclass(frozen=True, slots=True)
class Elimination:
    """When a version was out, and of which race: it has raced, and did not win."""

    at: datetime
    race_id: str


def elimination(season: Season, version: str) -> Elimination | None:
    """None for one that never raced, holds the title, or races again."""
    entrant = season.entrants.get(version)
    racing = {v for race in (season.open, season.running) if race for v in race.racers}
    if entrant is None or not entrant.raced or version == season.champion:
        return None
    if version in season.waiting or version in racing:
        return None
    last = next(r for r in reversed(season.results) if r.race_id == entrant.raced[-1])
    return Elimination(last.closed_at, last.race_id)


def race_score(season: Season, version: str) -> float | None:
    """A version's score in the last race in which it has one."""
    for result in reversed(season.results):
        for racer in result.racers:
            if racer.version == version and racer.score is not None:
                return racer.score
    return None


def not_selectable(season: Season, entrant: Entrant | None) -> str | None:
    """Why a version cannot be selected for a race, in the SDK's words; None when it can."""
    if entrant is None or entrant.left:
        return "not_eligible"
    if entrant.disqualified is not None:
        return "discarded"
    if entrant.qualifying is not None and not entrant.qualified:
        return "below_threshold"
    if elimination(season, entrant.version) is not None:
        return "eliminated"
    return None if entrant.qualified else "not_eligible"
