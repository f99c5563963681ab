from __future__ import annotations

import pytest

from tests.unit.training.dr_grpo.rollouts import group, rollout
from training.dr_grpo.groups import GroupCounts, learn_from
from training.rewards.scoring import OutcomeReward, Rewarded
from training.types import Stop, Trajectory


def outcome_only(trajectories: list[Trajectory]) -> tuple[list[list[float]], GroupCounts]:
    lessons, counts = learn_from(trajectories, OutcomeReward(), turn_weight=0)
    return [sorted(set(lesson.advantages.tolist())) for lesson in lessons], counts


def test_every_sampled_token_has_its_rollouts_advantage_and_no_other_token_has_one() -> None:
    lessons, counts = learn_from(group([True, False]), OutcomeReward(), turn_weight=0)
    for lesson, advantage in zip(lessons, (0.5, -0.5), strict=True):
        assert set(lesson.advantages[lesson.sample.mask].tolist()) == {advantage}
        assert not lesson.advantages[~lesson.sample.mask].any()
        assert not lesson.sampler[~lesson.sample.mask].any()
    assert (counts.rollouts, counts.successes, counts.learnt) == (2, 1, 1)


@pytest.mark.parametrize(("wins", "solved", "failed"), [([True] * 3, 1, 0), ([False] * 3, 0, 1)])
def test_a_group_that_came_out_alike_is_dropped_and_counted(
    wins: list[bool | None], solved: int, failed: int
) -> None:
    lessons, counts = outcome_only(group(wins))
    assert lessons == []
    assert (counts.solved, counts.failed, counts.learnt) == (solved, failed, 0)


def test_a_rollout_that_failed_by_no_fault_of_the_policy_is_no_failure() -> None:
    lessons, counts = outcome_only(group([True, None, False]))
    # The mean is over two rollouts: with a failure for the third it were 1/3.
    assert lessons == [[0.0, 0.5], [-0.5, 0.0]]
    assert (counts.rollouts, counts.errors) == (3, 1)
    lessons, counts = outcome_only(group([True, None, None]))
    assert lessons == []
    assert (counts.short, counts.learnt) == (1, 0)


def test_a_turn_that_could_not_extend_the_last_begins_a_sequence_of_its_own() -> None:
    trajectories = [rollout(True, broken=True), rollout(False, seed=1)]
    lessons, _ = outcome_only(trajectories)
    assert lessons == [[0.0, 0.5], [0.0, 0.5], [-0.5, 0.0]]


def test_turns_are_credited_apart() -> None:
    credits = iter([(0.25, 0.75), (0.0, 0.0)])

    def reward(one: Trajectory) -> Rewarded:
        return Rewarded(0.0, next(credits))

    lessons, counts = learn_from(group([False, False]), reward, turn_weight=1.0)
    first = lessons[0]
    (segment,) = group([False])[0].segments
    by_turn = [first.advantages[segment.turn_of == turn].tolist() for turn in (0, 1)]
    assert set(by_turn[0]) == {0.5}
    assert set(by_turn[1]) == {0.375}
    assert counts.learnt == 1


def test_truncation_is_counted() -> None:
    cut = [rollout(False, stop=Stop.LENGTH), rollout(True, seed=1)]
    assert outcome_only(cut)[1].truncated == 1


def test_counts_of_groups_add_up() -> None:
    one, other = outcome_only(group([True, False]))[1], outcome_only(group([False, False]))[1]
    both = one.plus(other)
    assert (both.rollouts, both.groups, both.learnt, both.failed) == (4, 2, 1, 1)
