"""What came of a race, as data: the scores of its racers and who holds the title. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from statistics import fmean, median
from typing import cast

from arena.season.commands import ProblemOutcome
from scoring.richness import enriched
from scoring.types import Bucket, Json, JsonObject


class Decision(StrEnum):
    """What a race did to the title. Stable: events hold it."""

    PROMOTED = "promoted"
    """A challenger was ahead by the margin."""
    VACANT = "vacant"
    """Nobody held the title: the best finisher took it."""
    DEFENDED = "defended"
    """No challenger was ahead by the margin. An equal score is not ahead."""
    NO_FINISHER = "no_finisher"
    """No challenger has a score."""
    CHAMPION_INCOMPLETE = "champion_incomplete"
    """The champion has no score, by no fault of its own: nothing to compare with."""
    CHAMPION_ABSENT = "champion_absent"
    """Who holds the title now did not run in this race."""
    NOTHING_SOLVED = "nothing_solved"
    """The title is vacant, and nobody scored above 0."""


@dataclass(frozen=True, slots=True)
class RaceProblem:
    """A drawn problem."""

    problem_id: str
    bucket: Bucket


@dataclass(slots=True)
class Sheet:
    """One validator's outcomes of one racer, by problem id."""

    outcomes: dict[str, ProblemOutcome] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)

    def add(self, problem_id: str, outcome: ProblemOutcome, richness_share: float) -> None:
        """Enter an outcome. Raises ScoringError for a coefficient or ratio that is none."""
        coefficient = enriched(outcome.coefficient, outcome.agentic_ratio, richness_share)
        self.outcomes[problem_id] = outcome
        self.scores[problem_id] = coefficient if outcome.success else 0.0


@dataclass(frozen=True, slots=True)
class RacerResult:
    """A racer's race. Without enough complete validators it has no numbers, not lower ones.

    `score` is the median over its validators of the mean over all drawn problems of
    success times coefficient; `asr` and the buckets' scores are medians of the same kind.
    """

    version: str
    validators: int
    score: float | None
    asr: float | None
    by_bucket: Mapping[Bucket, float]

    @property
    def complete(self) -> bool:
        """Whether there is a score."""
        return self.score is not None

    def to_json(self) -> JsonObject:
        """As the journal holds it."""
        return {
            "version": self.version,
            "validators": self.validators,
            "score": self.score,
            "asr": self.asr,
            "by_bucket": {bucket.value: score for bucket, score in self.by_bucket.items()},
        }

    @classmethod
    def from_json(cls, value: Json) -> RacerResult:
        """Read what `to_json` wrote."""
        data = cast("JsonObject", value)
        buckets = cast("dict[str, float]", data["by_bucket"])
        return cls(
            str(data["version"]),
            cast("int", data["validators"]),
            cast("float | None", data["score"]),
            cast("float | None", data["asr"]),
            {Bucket(name): score for name, score in buckets.items()},
        )


@dataclass(frozen=True, slots=True)
class TitleDecision:
    """Who holds the title after a race, and by which figures.

    `margin` and `required` stand where a champion with a score was challenged.
    """

    decision: Decision
    champion: str | None
    margin: float | None = None
    required: float | None = None

    def to_json(self) -> JsonObject:
        """As the journal holds it."""
        return {
            "decision": self.decision.value,
            "champion": self.champion,
            "margin": self.margin,
            "required": self.required,
        }

    @classmethod
    def from_json(cls, value: Json) -> TitleDecision:
        """Read what `to_json` wrote."""
        data = cast("JsonObject", value)
        return cls(
            Decision(str(data["decision"])),
            cast("str | None", data["champion"]),
            cast("float | None", data["margin"]),
            cast("float | None", data["required"]),
        )


@dataclass(frozen=True, slots=True)
class RaceResult:
    """A closed race."""

    race_id: str
    closes_at: datetime
    closed_at: datetime
    racers: tuple[RacerResult, ...]
    title: TitleDecision
    on_time: bool
    """Whether everybody had all outcomes before the deadline."""


def racer_result(
    version: str,
    sheets: Mapping[str, Sheet],
    problems: tuple[RaceProblem, ...],
    needed: int,
) -> RacerResult:
    """The medians over the validators that have all outcomes, if they are `needed` or more."""
    full = [sheet for sheet in sheets.values() if len(sheet.scores) == len(problems)]
    if len(full) < needed:
        return RacerResult(version, len(full), None, None, {})
    by_bucket = {
        bucket: median(fmean(sheet.scores[p] for p in ids) for sheet in full)
        for bucket in Bucket
        if (ids := [p.problem_id for p in problems if p.bucket is bucket])
    }
    return RacerResult(
        version,
        len(full),
        median(fmean(sheet.scores.values()) for sheet in full),
        median(fmean(o.success for o in sheet.outcomes.values()) for sheet in full),
        by_bucket,
    )
