"""Estimates of a Kullback-Leibler divergence from samples, a value per token.

J. Schulman, "Approximating KL Divergence" (2020).
"""

from __future__ import annotations

import torch
from torch import Tensor

from training.losses.tokens import masked_sum

_WIDEST = 20.0
"""Differences of log-probabilities are cut here before they are raised: e^20 is 4.9e8, and a
token that far away tells of a broken model, not of a divergence."""


def k3(logprobs: Tensor, reference: Tensor) -> Tensor:
    """KL(policy ‖ reference) per token of the policy: `r - 1 - log r`, r = reference/policy.

    Unbiased under samples of the policy, never negative, of low variance. Its gradient is
    that of the anchor of GRPO: TRL uses the same.
    """
    difference = (reference - logprobs).clamp(-_WIDEST, _WIDEST)
    return difference.expm1() - difference


def mismatch_kl(sampler: Tensor, trainer: Tensor, mask: Tensor) -> Tensor:
    """KL(sampler ‖ trainer), the mean over masked tokens: what sampler and trainer disagree.

    Both are the log-probabilities of the tokens that the sampler drew. It is near 0 when the
    same weights sampled and train; it grows with stale weights and other kernels. NaN when
    there is no token.
    """
    count = mask.bool().sum()
    return masked_sum(k3(sampler.detach(), trainer.detach()), mask).sum() / count


def log_ratio(logprobs: Tensor, sampler: Tensor) -> Tensor:
    """Logarithm of the importance ratio, cut so that its exponential stays finite."""
    return torch.clamp(logprobs - sampler, -_WIDEST, _WIDEST)
