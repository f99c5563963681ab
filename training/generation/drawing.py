"""One token for each row of logits: temperature, top-p, and the log-probability it had.

The draw is by inversion: a uniform number, given from outside, picks the token whose
stretch of the cumulative distribution it falls into. So what one row draws depends on its
own logits and its own number, and on nothing that stands beside it in the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

NUCLEUS_TRIED: Final = 512
"""Tokens among which a nucleus is looked for first: sorting a vocabulary of 152,000 for each
token takes longer than a small model does. Where they do not suffice, all are sorted."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Tokens, and the logarithm of each one's probability at its row's temperature."""

    ids: Tensor
    logprobs: Tensor


def draw(logits: Tensor, temperature: Tensor, top_p: Tensor, uniform: Tensor) -> Drawn:
    """Draw one token for each row.

    `logits` is (rows, vocabulary); `temperature`, `top_p` and `uniform` (in [0, 1), float64)
    have one value a row. Temperature 0 takes the likeliest token, and its log-probability is
    that at temperature 1. Log-probabilities are of the whole distribution, before top-p cut
    it (`training.types.Generated`). A row that is not finite has NaN as its log-probability.
    """
    greedy = temperature <= 0
    scaled = logits.float() / torch.where(greedy, 1.0, temperature)[:, None]
    logprobs = torch.log_softmax(scaled, dim=-1)
    ids = logits.argmax(dim=-1)
    if not bool(greedy.all()):
        # In double precision: over a large vocabulary a sum of floats loses the last tokens.
        probabilities = logprobs.double().exp()
        whole = _invert(probabilities.cumsum(dim=-1), uniform)
        cut = top_p < 1
        if bool((cut & ~greedy).any()):
            whole = torch.where(cut, _from_nucleus(probabilities, top_p, uniform), whole)
        ids = torch.where(greedy, ids, whole)
    return Drawn(ids, logprobs.gather(-1, ids[:, None])[:, 0])


def _from_nucleus(probabilities: Tensor, top_p: Tensor, uniform: Tensor) -> Tensor:
    """A token of the smallest set of likeliest ones that together have `top_p`."""
    tried = min(NUCLEUS_TRIED, probabilities.shape[-1])
    ranked, ids = probabilities.topk(tried, dim=-1)
    if bool((ranked.sum(dim=-1) < top_p).any()):
        ranked, ids = probabilities.sort(dim=-1, descending=True)
    before = ranked.cumsum(dim=-1) - ranked
    # The likeliest token is always in: with a top_p of 0 nothing else is.
    inside = before < top_p[:, None]
    inside[:, 0] = True
    place = _invert((ranked * inside).cumsum(dim=-1), uniform)
    return ids.gather(-1, place[:, None])[:, 0]


def _invert(cumulative: Tensor, uniform: Tensor) -> Tensor:
    """The first place whose cumulative probability is above the row's number."""
    target = uniform.to(cumulative) * cumulative[:, -1]
    place = torch.searchsorted(cumulative, target[:, None], right=True)[:, 0]
    return place.clamp(max=cumulative.shape[-1] - 1)
