"""The rewards of a recipe: `outcome`, `tool_match`, `turn_level`, `process`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, cast

from scoring.titles import NoTitles, TitleSimilarity
from scoring.types import Json, JsonObject, Problem
from training.exceptions import RewardError
from training.rewards.progress import Products, turn_rewards
from training.rewards.steps import Step, steps_of
from training.rewards.tool_match import TeacherSteps, best_match
from training.types import Trajectory


class RewardKind(StrEnum):
    """What a rollout is rewarded for. Values stand in recipes."""

    OUTCOME = "outcome"
    """Strict success, 1 or 0."""
    TOOL_MATCH = "tool_match"
    """Strict success, and a share of the match with a teacher's calls."""
    TURN_LEVEL = "turn_level"
    """Strict success for the whole, and each turn's own credit."""
    PROCESS = "process"
    """Strict success for the whole, and what a trained head expects after each turn."""


@dataclass(frozen=True, slots=True)
class Rewarded:
    """What one rollout is worth: as a whole, and each of its turns beside that."""

    total: float
    turns: tuple[float, ...]


class Reward(Protocol):
    """Rewards one finished rollout."""

    def __call__(self, trajectory: Trajectory, /) -> Rewarded:
        """Its reward. Raises RewardError when it cannot be given."""
        ...


def outcome_reward(trajectory: Trajectory) -> float:
    """1 for strict success, else 0. Raises RewardError for a rollout without an outcome:
    what failed by nobody's choice is no example of anything."""
    if trajectory.outcome is None:
        raise RewardError(f"a rollout of {trajectory.problem_id[:80]} has no outcome")
    return float(trajectory.outcome.success)


@dataclass(frozen=True, slots=True)
class OutcomeReward:
    """Strict success alone."""

    def __call__(self, trajectory: Trajectory) -> Rewarded:
        """1 or 0, and nothing for turns."""
        return Rewarded(outcome_reward(trajectory), (0.0,) * len(trajectory.turns))


@dataclass(frozen=True, slots=True)
class ToolMatchReward:
    """Strict success plus `weight` times the match with a teacher's trajectory."""

    teachers: TeacherSteps
    weight: float = 0.5

    def __call__(self, trajectory: Trajectory) -> Rewarded:
        """From 0 to 1 + weight. A problem that no teacher solved has its outcome alone."""
        total = outcome_reward(trajectory)
        teachers = self.teachers.get(trajectory.problem_id)
        if teachers:
            total += self.weight * best_match(steps_of(trajectory.messages), teachers)
        return Rewarded(total, (0.0,) * len(trajectory.turns))


@dataclass(frozen=True, slots=True)
class TurnLevelReward:
    """Strict success, and for each turn what it brought to light."""

    problems: Mapping[str, Problem]
    catalog: Products
    titles: TitleSimilarity | None = None

    def __call__(self, trajectory: Trajectory) -> Rewarded:
        """The outcome, and a credit for each turn. Raises RewardError."""
        problem = self.problems.get(trajectory.problem_id)
        if problem is None:
            raise RewardError(f"problem {trajectory.problem_id[:80]} is not at hand")
        found = turn_rewards(
            problem, steps_of(trajectory.messages), self.catalog, self.titles or NoTitles()
        )
        return Rewarded(outcome_reward(trajectory), fitted(found, len(trajectory.turns)))


def fitted(rewards: Sequence[float], turns: int) -> tuple[float, ...]:
    """Rewards of steps for so many turns: a turn that was cut off says nothing, and has 0."""
    return (*rewards[:turns], *(0.0,) * (turns - len(rewards)))


def read_teachers(rows: Iterable[Mapping[str, Json]]) -> TeacherSteps:
    """The steps of the rows that succeeded, by problem. Raises RewardError when none did."""
    found: dict[str, list[list[Step]]] = {}
    for row in rows:
        if row.get("success") is True:
            messages = cast("list[JsonObject]", row["messages"])
            found.setdefault(str(row["problem_id"]), []).append(steps_of(messages))
    if not found:
        raise RewardError(
            "there is no trajectory of a teacher that succeeded",
            remedy="give rows of teacher rollouts with --teacher",
        )
    return found
