from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from tests.unit.training.dr_grpo.rollouts import rollout
from tests.unit.training.generation.models import tiny_model
from training.exceptions import OtherBaseError, RewardError
from training.reference import Reference
from training.rewards.process import (
    TARGETS,
    Example,
    HeadSettings,
    ProcessHead,
    ProcessReward,
    auc,
    head_loss,
    load_head,
    save_head,
    targets_of,
    train_head,
    turn_ends,
    turn_states,
)
from training.types import Sample


def examples(count: int, *, telling: bool) -> list[Example]:
    """Trajectories whose first coordinate tells of success, or of nothing."""
    generator = torch.Generator().manual_seed(1)
    made = []
    for number in range(count):
        states = torch.randn(3, 6, generator=generator)
        success = float(number % 2)
        if telling:
            states[:, 0] = 4.0 * success - 2.0
        targets = torch.full((len(TARGETS),), math.nan)
        targets[-1] = success
        made.append(Example(states, targets, f"c{number}"))
    return made


def test_a_head_learns_what_hidden_states_tell_and_is_measured_on_clusters_it_never_saw() -> None:
    head, measured = train_head(examples(120, telling=True), HeadSettings(epochs=20))
    assert measured is not None
    assert measured.auc == 1
    assert measured.brier < measured.constant / 2
    assert not any(p.requires_grad for p in head.parameters())


def test_a_head_that_can_know_nothing_is_no_better_than_the_rate() -> None:
    _, measured = train_head(examples(120, telling=False), HeadSettings(epochs=3))
    assert measured is not None
    assert measured.auc is not None
    assert 0.3 < measured.auc < 0.7
    assert measured.brier > 0.8 * measured.constant


def test_one_seed_gives_one_head() -> None:
    one, other = (train_head(examples(20, telling=True), HeadSettings(epochs=2))[0] for _ in "ab")
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_trajectories_that_came_out_alike_teach_nothing() -> None:
    with pytest.raises(RewardError, match="came out alike"):
        train_head(examples(20, telling=True)[::2], HeadSettings())


def test_the_loss_leaves_out_axes_that_a_problem_does_not_state() -> None:
    # Logit 0 says 1/2 of a share of 1: ln 2. The other is not stated.
    loss = head_loss(torch.zeros(1, 2), torch.tensor([[1.0, math.nan]]))
    assert loss.item() == pytest.approx(math.log(2))
    assert head_loss(torch.zeros(1, 1), torch.tensor([[math.nan]])).item() == 0


def test_targets_are_the_axes_of_the_outcome_and_success() -> None:
    found = targets_of({"outcome": {"price": 0.5}, "success": True})
    assert found[TARGETS.index("price")] == 0.5
    assert found[-1] == 1
    assert found[TARGETS.index("title")].isnan()


def test_auc_is_worked_out_by_hand() -> None:
    # Pairs of a success and a failure: .9>.5, .9>.1, .5=.5, .5>.1.
    assert auc([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0]) == pytest.approx(3.5 / 4)
    assert auc([0.5], [1]) is None


def test_states_are_those_where_turns_end_whatever_pack_they_fell_into() -> None:
    model = tiny_model(1)
    samples = [
        Sample(segment.ids, segment.mask, str(seed), "c")
        for seed in range(3)
        for segment in rollout(True, seed=seed).segments
    ]
    together = turn_states(model, samples, 10_000, torch.float32)
    for sample, here in zip(samples, together, strict=True):
        ids = torch.as_tensor(sample.ids).long()[None]
        with torch.no_grad():
            hidden = model.model(input_ids=ids).last_hidden_state[0]
        torch.testing.assert_close(here, hidden[turn_ends(sample)], atol=1e-4, rtol=1e-4)
        assert len(here) == 2


def test_a_turn_is_credited_with_what_it_adds_to_the_expected_success() -> None:
    model = tiny_model(1)
    torch.manual_seed(0)
    head = ProcessHead(32, 8)
    reward = ProcessReward(head, Reference(model), 1000, torch.float32)
    one = rollout(False, turns=3)
    expected = [value for value in reward.expected(one) if value is not None]
    given = reward(one)
    assert given.total == 0
    assert given.turns[0] == 0
    assert sum(given.turns) == pytest.approx(expected[-1] - expected[0])
    assert len(given.turns) == 3


def test_a_head_is_read_back_and_refused_for_another_backbone(tmp_path: Path) -> None:
    head = ProcessHead(6, 4)
    save_head(head, tmp_path / "head", "base-a", {})
    again = load_head(tmp_path / "head", "base-a")
    states = torch.randn(2, 6)
    assert torch.equal(again(states), head(states))
    with pytest.raises(OtherBaseError, match="another backbone"):
        load_head(tmp_path / "head", "base-b")
