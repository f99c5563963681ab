"""From the rollouts of a problem to what is learnt from them: groups, advantages, sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from training.losses.dr_grpo import turn_advantages
from training.rewards.scoring import Reward, Rewarded
from training.types import Ids, Logprobs, Mask, Sample, Trajectory


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """One sequence to learn from: a sample, the sampler's log-probabilities, advantages."""

    sample: Sample
    sampler: Logprobs
    advantages: Logprobs


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """What became of an update's rollouts."""

    rollouts: int = 0
    errors: int = 0
    truncated: int = 0
    successes: int = 0
    groups: int = 0
    solved: int = 0
    """Groups whose rollouts are worth the same, and succeed."""
    failed: int = 0
    """Groups whose rollouts are worth the same, and fail."""
    short: int = 0
    """Groups with fewer than two rollouts without an error."""
    reward: float = 0.0
    """Sum over the rollouts without an error."""
    turns: int = 0
    spoken: int = 0
    """Tokens that the policy sampled."""

    def plus(self, other: GroupCounts) -> GroupCounts:
        """Both together."""
        return GroupCounts(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    @property
    def learnt(self) -> int:
        """Groups that teach something."""
        return self.groups - self.solved - self.failed - self.short


def learn_from(
    trajectories: Sequence[Trajectory], reward: Reward, *, turn_weight: float
) -> tuple[list[Lesson], GroupCounts]:
    """The sequences of one problem's rollouts, none when they differ in nothing; the counts.

    A rollout that failed by no fault of the policy is left out of its group and counted: as a
    failure it would teach that what the host did was the policy's.
    """
    sound = [one for one in trajectories if one.outcome is not None]
    rewarded = [reward(one) for one in sound]
    alike = _alike(rewarded, turn_weight)
    won = sum(one.outcome.success for one in sound if one.outcome is not None)
    short = len(sound) < 2
    counts = GroupCounts(
        rollouts=len(trajectories),
        errors=len(trajectories) - len(sound),
        truncated=sum(one.truncated for one in trajectories),
        successes=won,
        groups=1,
        solved=int(not short and alike and won > 0),
        failed=int(not short and alike and won == 0),
        short=int(short),
        reward=sum(one.total for one in rewarded),
        turns=sum(len(one.turns) for one in sound),
        spoken=sum(len(turn.completion_ids) for one in sound for turn in one.turns),
    )
    if short or alike:
        return [], counts
    credits = turn_advantages(
        [one.total for one in rewarded], [one.turns for one in rewarded], weight=turn_weight
    )
    sequences = [
        sequence
        for number, (one, advantages) in enumerate(zip(sound, credits, strict=True))
        for sequence in _sequences(one, advantages, number)
    ]
    return sequences, counts


def _alike(rewarded: Sequence[Rewarded], turn_weight: float) -> bool:
    """Whether no rollout of the group is better than another in anything that counts."""
    totals = {round(one.total, 9) for one in rewarded}
    turns = {tuple(round(x, 9) for x in one.turns) if turn_weight else () for one in rewarded}
    return len(totals) <= 1 and len(turns) <= 1


def _sequences(trajectory: Trajectory, credits: Sequence[float], number: int) -> list[Lesson]:
    """A sequence for each segment; each token has the advantage of the turn it is of."""
    found = []
    for place, segment in enumerate(trajectory.segments):
        if not segment.mask.any():
            continue
        found.append(
            Lesson(
                sample=Sample(
                    segment.ids,
                    segment.mask,
                    f"{trajectory.problem_id}#{number}.{place}",
                    trajectory.cluster,
                ),
                sampler=segment.logprobs,
                advantages=_of_tokens(segment.turn_of, segment.mask, credits),
            )
        )
    return found


def _of_tokens(turn_of: Ids, mask: Mask, credits: Sequence[float]) -> Logprobs:
    table = np.asarray([*credits, 0.0], dtype=np.float32)  # -1 is the last: no turn's token
    return np.where(mask, table[turn_of], np.float32(0.0)).astype(np.float32)
