"""KTO: learning from single trajectories that are good or bad, without pairs.

K. Ethayarajh et al., "KTO: Model Alignment as Prospect Theoretic Optimization" (2024), eq. 7
and 8. A trajectory of an agent is not one completion: between the model's turns stand tool
results that it did not write. The log-probability of a trajectory is therefore the sum over
the masked tokens alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class KtoLoss:
    """The loss, and what to watch beside it; all but `loss` are detached.

    `kl` is the estimate z0 that was used. `chosen` and `rejected` are the mean rewards
    (β times log-ratio) of each kind, NaN where the batch has none of it.
    """

    loss: Tensor
    kl: Tensor
    chosen: Tensor
    rejected: Tensor


def kl_estimate(policy: Tensor, reference: Tensor) -> Tensor:
    """z0: how far the policy has moved, from mismatched pairs; a scalar without a gradient.

    Both are log-probabilities [B] of completions under prompts that are not theirs. Not below
    zero, as a divergence is not.
    """
    return (policy - reference).mean().clamp(min=0.0).detach()


def kto_loss(
    policy: Tensor,
    reference: Tensor,
    desirable: Tensor,
    kl: Tensor,
    *,
    beta: float,
    desirable_weight: float = 1.0,
    undesirable_weight: float = 1.0,
) -> KtoLoss:
    """The loss of a batch: the mean over its trajectories.

    `policy` and `reference` [B] are the summed log-probabilities of each trajectory's masked
    tokens; `desirable` [B] is whether it succeeded; `kl` is `kl_estimate`.
    """
    desirable = desirable.bool()
    ratio = policy - reference
    value = torch.where(desirable, ratio - kl, kl - ratio)
    weight = torch.where(desirable, desirable_weight, undesirable_weight)
    losses = weight * (1.0 - torch.sigmoid(beta * value))
    rewards = beta * ratio.detach()
    return KtoLoss(
        loss=losses.mean(),
        kl=kl,
        chosen=rewards[desirable].mean(),
        rejected=rewards[~desirable].mean(),
    )


def mismatched(count: int) -> list[int]:
    """Which trajectory's completion each prompt of a batch is paired with: its neighbour's.

    Completions that estimate z0 are thus those of the batch itself, under other prompts.
    Raises ValueError for fewer than two: a pair would be matched.
    """
    if count < 2:
        raise ValueError("a batch of one has no mismatched pair: KTO needs two or more")
    return [(number - 1) % count for number in range(count)]


def balanced_weights(labels: Sequence[bool]) -> tuple[float, float]:
    """Weights of desirable and undesirable so that both kinds count the same (eq. 8).

    The rarer kind is weighted up, the other keeps 1. Raises ValueError when one kind is
    missing: there is nothing to tell apart.
    """
    good = sum(labels)
    bad = len(labels) - good
    if not good or not bad:
        raise ValueError(f"{good} desirable and {bad} undesirable trajectories: both are needed")
    return max(1.0, bad / good), max(1.0, good / bad)
