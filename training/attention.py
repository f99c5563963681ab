"""Attention over packed samples: each attends to itself alone, and causally.

Registered with transformers under a name of its own, so that the models' own code runs. A
mask of all pairs of a row is never made: on a GPU one kernel takes all samples by their
lengths (torch's `varlen_attn`), elsewhere each sample is a call of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

NAME: Final = "packed_samples"
_HALF: Final = frozenset({torch.float16, torch.bfloat16})


def packed_samples(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    *,
    sliding_window: int | None = None,
    lengths: tuple[int, ...] | None = None,
    **more: Any,
) -> tuple[Tensor, None]:
    """Attention of one row [1, heads, T, width] that holds samples of these `lengths`.

    Without `lengths` the row is one sample. With a `sliding_window` a token sees itself and
    what comes within the window before it. Answers [1, T, heads, width].
    """
    lengths = lengths or (query.shape[2],)
    if len(lengths) == 1 and sliding_window is None:
        done: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout, scaling, **more
        )
        return done
    if sum(lengths) != query.shape[2] or query.shape[0] != 1:
        raise ValueError(f"samples of {sum(lengths)} tokens in a row of {query.shape[2]}")
    if query.is_cuda and query.dtype in _HALF and dropout == 0.0:
        return _one_kernel(query, key, value, scaling, lengths, sliding_window), None
    if sliding_window is not None:
        return _near(query, key, value, scaling, lengths, sliding_window, dropout), None
    pieces = [torch.split(states, list(lengths), dim=2) for states in (query, key, value)]
    parts = [
        scaled_dot_product_attention(
            q, k, v, dropout_p=dropout, scale=scaling, is_causal=True, enable_gqa=True
        )
        for q, k, v in zip(*pieces, strict=True)
    ]
    return torch.cat(parts, dim=2).transpose(1, 2).contiguous(), None


def _near(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scaling: float | None,
    lengths: tuple[int, ...],
    window: int,
    dropout: float,
) -> Tensor:
    """Attention to the last few tokens alone: one product for each place in the window, so
    that time and memory go with T times the window and not with T squared."""
    width = query.shape[-1]
    groups = query.shape[1] // key.shape[1]
    key, value = (states.repeat_interleave(groups, dim=1) for states in (key, value))
    begins = torch.repeat_interleave(
        torch.tensor([0, *accumulate(lengths)][:-1]), torch.tensor(lengths)
    ).to(query.device)
    places = torch.arange(query.shape[2], device=query.device)
    behind = [(places - back).clamp(min=0) for back in range(min(window, max(lengths)))]
    outside = torch.stack([places - back < begins for back in range(len(behind))], dim=-1)
    scale = width**-0.5 if scaling is None else scaling
    scores = torch.stack([(query * key[:, :, at]).sum(-1) for at in behind], dim=-1) * scale
    scores = scores.float().masked_fill(outside, -torch.inf)
    weights = torch.dropout(scores.softmax(-1), dropout, train=True).to(value.dtype)
    out = sum(weights[..., back, None] * value[:, :, at] for back, at in enumerate(behind))
    return torch.as_tensor(out).transpose(1, 2).contiguous()


def _one_kernel(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scaling: float | None,
    lengths: tuple[int, ...],
    window: int | None,
) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    ends = torch.tensor([0, *accumulate(lengths)], dtype=torch.int32, device=query.device)
    longest = max(lengths)
    out: Any = varlen_attn(
        query[0].transpose(0, 1).contiguous(),
        key[0].transpose(0, 1).contiguous(),
        value[0].transpose(0, 1).contiguous(),
        ends,
        ends,
        longest,
        longest,
        scale=scaling,
        window_size=(-1 if window is None else window - 1, 0),
        enable_gqa=True,
    )
    return torch.as_tensor(out)[None]


ALL_ATTENTION_FUNCTIONS.register(NAME, packed_samples)


@contextmanager
def packed_attention(model: PreTrainedModel) -> Iterator[None]:
    """Within it the model's attention takes packs; after it, what it took before."""
    config: Any = model.config
    before = config._attn_implementation
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = before
