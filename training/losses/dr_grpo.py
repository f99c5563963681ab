"""Dr. GRPO: group-relative policy optimisation without its two biases.

Z. Liu et al., "Understanding R1-Zero-Like Training" (2025): dividing by a group's standard
deviation favours questions that are nearly always or nearly never solved, and dividing by the
length of a completion favours long failures. Both divisions are left out: the advantage is
reward minus group mean, and the sum over tokens is divided by a constant. The importance ratio
is against the log-probabilities that the sampler gave, so that an update may lag behind; the
clipping is that of PPO, as in TRL's `loss_type="dr_grpo"`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from training.losses.kl import k3, log_ratio, mismatch_kl
from training.losses.tokens import check_mask, masked_sum


def advantages(rewards: Sequence[float]) -> list[float]:
    """Reward minus mean of the group, for the rollouts of one problem."""
    if not rewards:
        return []
    mean = sum(rewards) / len(rewards)
    return [reward - mean for reward in rewards]


def turn_advantages(
    outcomes: Sequence[float], turns: Sequence[Sequence[float]], *, weight: float
) -> list[list[float]]:
    """An advantage for each turn of each rollout of one problem.

    The outcome's advantage goes to every turn of its rollout. To it comes `weight` times what
    the turn led to, its own turn reward and those after it, minus the mean of that over the
    group's rollouts that had a turn of this number.
    """
    to_go = [_sums_to_go(rewards) for rewards in turns]
    longest = max((len(rewards) for rewards in turns), default=0)
    means = []
    for number in range(longest):
        here = [returns[number] for returns in to_go if number < len(returns)]
        means.append(sum(here) / len(here))
    return [
        [outcome + weight * (value - mean) for value, mean in zip(returns, means, strict=False)]
        for outcome, returns in zip(advantages(outcomes), to_go, strict=True)
    ]


def _sums_to_go(rewards: Sequence[float]) -> list[float]:
    total, sums = 0.0, []
    for reward in reversed(rewards):
        total += reward
        sums.append(total)
    return sums[::-1]


@dataclass(frozen=True, slots=True)
class PolicyLoss:
    """The loss, and what to watch beside it: all but `loss` are detached scalars.

    `kl` is to the reference, `mismatch_kl` from sampler to trainer, `clipped` the share of
    tokens whose gradient the clipping took away, `ratio` the mean importance ratio.
    """

    loss: Tensor
    kl: Tensor
    mismatch_kl: Tensor
    clipped: Tensor
    ratio: Tensor


def dr_grpo_loss(
    logprobs: Tensor,
    sampler: Tensor,
    advantage: Tensor,
    mask: Tensor,
    *,
    normaliser: float,
    reference: Tensor | None = None,
    beta: float = 0.0,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> PolicyLoss:
    """The loss of one micro-batch.

    `advantage` is [B], one a rollout, or [B, T], one a token (a turn's goes to its tokens).
    `mask` is set where the model wrote: prompts, tool results and padding are not.
    `normaliser` is a constant of the whole update, `rollouts × longest completion`, and not
    the number of tokens that there happen to be. `reference` with `beta` is the anchor.
    """
    check_mask(mask)
    mask = mask.bool()
    each = advantage[:, None] if advantage.dim() == 1 else advantage
    # Inside the mask alone: what a sampler says of tokens it did not draw may be anything.
    log = log_ratio(logprobs, sampler).masked_fill(~mask, 0.0)
    ratio = log.exp()
    clipped = ratio.clamp(1.0 - clip_low, 1.0 + clip_high)
    loss = -torch.minimum(ratio * each, clipped * each)
    anchor = torch.zeros_like(loss)
    if reference is not None:
        anchor = k3(logprobs, reference).masked_fill(~mask, 0.0)
        loss = loss + beta * anchor
    count = mask.sum().clamp(min=1)
    cut = ((ratio < 1.0 - clip_low) & (each < 0)) | ((ratio > 1.0 + clip_high) & (each > 0))
    return PolicyLoss(
        loss=masked_sum(loss, mask).sum() / normaliser,
        kl=(masked_sum(anchor, mask).sum() / count).detach(),
        mismatch_kl=mismatch_kl(sampler, logprobs, mask),
        clipped=(cut & mask).sum() / count,
        ratio=(masked_sum(ratio, mask).sum() / count).detach(),
    )
