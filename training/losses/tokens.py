"""From hidden states to the log-probabilities of tokens, and the loss of supervised learning.

With Qwen3's 151,936 words the logits of one sequence of 14,336 tokens take 8.7 GB in single
precision. Only masked tokens need any, and of these a chunk at a time: the backward pass makes
each chunk's logits again.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

CHUNK = 1_024
"""Tokens whose logits exist at the same time."""


def logprobs_of(logits: Tensor, ids: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Log-probability of each of `ids` [B, T] given those before it, from `logits` [B, T, V].

    The first of each row is 0: nothing predicts it. `temperature` is the sampler's.
    """
    scaled = logits[:, :-1].float() / temperature
    chosen = scaled.gather(-1, ids[:, 1:, None]).squeeze(-1)
    return torch.nn.functional.pad(chosen - scaled.logsumexp(-1), (1, 0))


def masked_logprobs(
    hidden: Tensor,
    head: Callable[[Tensor], Tensor],
    ids: Tensor,
    mask: Tensor,
    *,
    temperature: float = 1.0,
    chunk: int = CHUNK,
) -> Tensor:
    """The same from `hidden` states [B, T, H] and the model's `head`, where `mask` is set.

    Elsewhere 0. Logits exist for `chunk` tokens at a time, in both directions.
    """
    check_mask(mask)
    rows, columns = mask.nonzero(as_tuple=True)
    before = hidden[rows, columns - 1]
    wanted = ids[rows, columns]

    def some(states: Tensor, targets: Tensor) -> Tensor:
        scaled = head(states).float() / temperature
        return scaled.gather(-1, targets[:, None]).squeeze(-1) - scaled.logsumexp(-1)

    parts = [
        checkpoint(some, before[at : at + chunk], wanted[at : at + chunk], use_reentrant=False)
        for at in range(0, len(rows), chunk)
    ]
    out = torch.zeros(ids.shape, dtype=torch.float32, device=hidden.device)
    if not parts:
        return out + 0.0 * hidden.sum()  # a row without any such token: still a graph
    return out.index_put((rows, columns), torch.cat(parts))


def check_mask(mask: Tensor) -> None:
    """Raises ValueError for a mask that claims the first token, which nothing predicts."""
    if bool(mask[:, 0].any()):
        raise ValueError("the mask covers the first token, which nothing predicts")


def masked_sum(values: Tensor, mask: Tensor) -> Tensor:
    """Sum of `values` where `mask` is set, per row. What is masked may be NaN."""
    return values.masked_fill(~mask.bool(), 0.0).sum(-1)


def sft_loss(
    logprobs: Tensor, mask: Tensor, *, normaliser: float, weights: Tensor | None = None
) -> Tensor:
    """Negative log-likelihood of the masked tokens, divided by `normaliser`.

    `normaliser` is the number of masked tokens of the whole update, over all its
    micro-batches and machines: each token then counts the same however rows fell into
    batches. `weights` [B] makes rows count more or less.
    """
    if normaliser <= 0:
        raise ValueError("there is no token to learn from")
    rows = masked_sum(logprobs, mask)
    return -(rows if weights is None else rows * weights).sum() / normaliser
