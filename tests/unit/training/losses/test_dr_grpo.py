from __future__ import annotations

import importlib
import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from training.losses.dr_grpo import advantages, dr_grpo_loss, turn_advantages
from training.losses.kl import k3, mismatch_kl

torch.set_num_threads(1)

LN2 = math.log(2)


def tensor(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows)


def test_an_advantage_is_reward_minus_mean_and_not_divided_by_the_deviation() -> None:
    assert advantages([1, 0, 0, 0]) == [0.75, -0.25, -0.25, -0.25]
    # A group of another spread keeps its own scale: dividing would give +-1 both times.
    assert advantages([1.5, 0.5]) == [0.5, -0.5]
    assert advantages([0.1, -0.1]) == pytest.approx([0.1, -0.1])


def test_a_group_without_a_difference_teaches_nothing() -> None:
    assert advantages([1, 1, 1]) == [0, 0, 0]
    assert advantages([]) == []


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=16))
def test_advantages_of_a_group_sum_to_zero(rewards: list[float]) -> None:
    assert sum(advantages(rewards)) == pytest.approx(0, abs=1e-9)


def test_a_turn_is_credited_with_what_it_led_to() -> None:
    # Outcomes 1 and 0: advantages +0.5 and -0.5 for every turn.
    # Turn rewards to go: [3, 2] and [1]; means over the group: 2 at turn 0, 2 at turn 1.
    given_ = turn_advantages([1, 0], [[1, 2], [1]], weight=0.5)
    assert given_ == [[0.5 + 0.5 * (3 - 2), 0.5 + 0.5 * (2 - 2)], [-0.5 + 0.5 * (1 - 2)]]


def test_without_a_weight_every_turn_has_the_advantage_of_its_rollout() -> None:
    assert turn_advantages([1, 0], [[4, 2], [1]], weight=0) == [[0.5, 0.5], [-0.5]]


def test_two_rollouts_of_one_outcome_differ_by_their_turns() -> None:
    better, worse = turn_advantages([0, 0], [[0.5, 0.0], [0.0, 0.0]], weight=1)
    assert better == [0.25, 0.0]
    assert worse == [-0.25, 0.0]


def test_k3_is_worked_out_by_hand() -> None:
    # reference/policy = 2: 2 - 1 - ln 2; the other way round: 1/2 - 1 + ln 2.
    out = k3(torch.tensor([0.0, LN2, 1.0]), torch.tensor([LN2, 0.0, 1.0]))
    assert out.tolist() == pytest.approx([1 - LN2, LN2 - 0.5, 0.0])


@given(st.floats(-50, 0), st.floats(-50, 0))
def test_k3_is_finite_and_never_negative(policy: float, reference: float) -> None:
    value = k3(torch.tensor(policy), torch.tensor(reference)).item()
    assert math.isfinite(value)
    assert value >= -1e-6


def test_the_mismatch_of_sampler_and_trainer_is_a_mean_over_masked_tokens() -> None:
    sampler, trainer = tensor([9, 0.0, LN2]), tensor([0, LN2, 0.0])
    value = mismatch_kl(sampler, trainer, torch.tensor([[0, 1, 1]]))
    assert value.item() == pytest.approx(((1 - LN2) + (LN2 - 0.5)) / 2)


def test_the_loss_on_fresh_samples_is_minus_the_advantage_of_each_token_over_a_constant() -> None:
    logprobs = tensor([0, -1.0, -2.0, -3.0], [0, -1.0, -1.0, -1.0])
    mask = torch.tensor([[0, 1, 1, 1], [0, 1, 0, 0]])
    out = dr_grpo_loss(logprobs, logprobs, torch.tensor([0.5, -0.5]), mask, normaliser=2 * 10)
    # Ratio 1: -(0.5 * 3 tokens - 0.5 * 1 token) / 20. By tokens present it were -1/4, and a
    # mean over each row's length would give 0.
    assert out.loss.item() == pytest.approx(-(1.5 - 0.5) / 20)
    assert out.ratio.item() == 1
    assert out.clipped.item() == 0
    assert out.mismatch_kl.item() == 0


def test_its_gradient_is_the_policy_gradient() -> None:
    logprobs = tensor([0, -1.0, -2.0]).requires_grad_()
    mask = torch.tensor([[0, 1, 1]])
    out = dr_grpo_loss(logprobs, logprobs.detach(), torch.tensor([0.75]), mask, normaliser=10)
    torch.autograd.backward(out.loss)
    assert logprobs.grad is not None
    assert logprobs.grad[0].tolist() == pytest.approx([0, -0.075, -0.075])


def test_a_ratio_beyond_the_clip_gives_no_gradient_in_the_direction_of_its_advantage() -> None:
    # Ratios 2 and 1/2; clip 0.2. Advantage +1: min(2, 1.2) and min(0.5, 0.8).
    logprobs = tensor([0, LN2, -LN2]).requires_grad_()
    mask = torch.tensor([[0, 1, 1]])
    out = dr_grpo_loss(logprobs, torch.zeros(1, 3), torch.tensor([1.0]), mask, normaliser=1)
    assert out.loss.item() == pytest.approx(-(1.2 + 0.5))
    assert out.clipped.item() == pytest.approx(0.5)
    torch.autograd.backward(out.loss)
    assert logprobs.grad is not None
    assert logprobs.grad[0].tolist() == pytest.approx([0, 0, -0.5])
    # Advantage -1: -min(-2, -1.2) - min(-0.5, -0.8) = 2 + 0.8
    out = dr_grpo_loss(logprobs, torch.zeros(1, 3), torch.tensor([-1.0]), mask, normaliser=1)
    assert out.loss.item() == pytest.approx(2 + 0.8)


def test_tokens_of_tools_and_padding_count_for_nothing() -> None:
    logprobs = torch.full((1, 4), -1.0).requires_grad_()
    mask = torch.tensor([[0, 1, 0, 1]])
    sampler = tensor([0, -1.0, float("nan"), -1.0])
    out = dr_grpo_loss(
        logprobs,
        sampler,
        torch.tensor([1.0]),
        mask,
        normaliser=4,
        reference=tensor([0, -1.0, float("inf"), -1.0]),
        beta=0.1,
    )
    torch.autograd.backward(out.loss)
    assert out.loss.item() == pytest.approx(-0.5)
    assert logprobs.grad is not None
    assert logprobs.grad[0].tolist() == pytest.approx([0, -0.25, 0, -0.25])
    assert out.kl.item() == 0


def test_an_advantage_of_each_token_takes_the_place_of_one_a_rollout() -> None:
    logprobs, mask = tensor([0, -1.0, -1.0]), torch.tensor([[0, 1, 1]])
    each = tensor([9.0, 0.5, -0.25])
    out = dr_grpo_loss(logprobs, logprobs, each, mask, normaliser=1)
    assert out.loss.item() == pytest.approx(-0.25)


def test_the_anchor_pulls_towards_the_reference() -> None:
    logprobs, mask = tensor([0, 0.0]).requires_grad_(), torch.tensor([[0, 1]])
    out = dr_grpo_loss(
        logprobs,
        logprobs.detach(),
        torch.tensor([0.0]),
        mask,
        normaliser=1,
        reference=tensor([0, LN2]),
        beta=0.1,
    )
    assert out.loss.item() == pytest.approx(0.1 * (1 - LN2))
    assert out.kl.item() == pytest.approx(1 - LN2)
    torch.autograd.backward(out.loss)
    assert logprobs.grad is not None
    assert logprobs.grad[0, 1].item() == pytest.approx(0.1 * (1 - 2))


@pytest.mark.filterwarnings("ignore")
def test_it_is_the_loss_of_trl() -> None:
    """TRL's own function, with a trainer that holds only what the function asks of it."""
    GRPOTrainer: Any = importlib.import_module("trl").GRPOTrainer  # noqa: N806

    generator = torch.Generator().manual_seed(7)
    now, old, reference = (-torch.rand(3, 5, generator=generator) * 3 for _ in range(3))
    mask = torch.tensor([[1, 1, 0, 1, 1], [1, 0, 0, 0, 0], [1, 1, 1, 0, 1]])
    advantage = torch.tensor([0.6, -0.3, -0.3])
    trainer = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *_, **__: (now, torch.zeros(3, 5), None),
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level="token",
        beta=0.1,
        args=SimpleNamespace(use_bias_correction_kl=False, delta=None),
        loss_type="dr_grpo",
        epsilon_low=0.2,
        epsilon_high=0.3,
        use_vllm=False,
        max_completion_length=8,
        model=SimpleNamespace(training=False),
        _entropy_bonus_enabled=False,
        _metrics=_Metrics(),
        accelerator=SimpleNamespace(reduce=lambda x, reduction: x, gather=lambda x: x),
    )
    prompt = torch.ones(3, 1, dtype=torch.long)
    inputs = {
        "prompt_ids": prompt,
        "prompt_mask": prompt,
        "completion_ids": torch.zeros(3, 5, dtype=torch.long),
        "completion_mask": torch.ones(3, 5, dtype=torch.long),
        "tool_mask": mask,
        "advantages": advantage,
        "old_per_token_logps": old,
        "ref_per_token_logps": reference,
    }
    theirs = GRPOTrainer._compute_loss(trainer, None, inputs)

    def with_prompt(rows: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.pad(rows, (1, 0))

    ours = dr_grpo_loss(
        with_prompt(now),
        with_prompt(old),
        advantage,
        with_prompt(mask),
        normaliser=3 * 8,
        reference=with_prompt(reference),
        beta=0.1,
        clip_low=0.2,
        clip_high=0.3,
    )
    torch.testing.assert_close(ours.loss, theirs)


class _Metrics(dict[str, Any]):
    def __missing__(self, mode: str) -> Any:
        return _Lists()


class _Lists(dict[str, list[float]]):
    def __missing__(self, name: str) -> list[float]:
        return []
