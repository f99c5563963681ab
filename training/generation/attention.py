"""Attention of one new token over a cache whose heads several query heads share.

Transformers repeats keys and values for each query head before it attends, and with a mask
it always does: for one token a row, that copies the whole cache at each layer of each step.
The heads of a group can as well be taken as so many queries of their one key head: the same
numbers, and nothing is copied. Longer pieces go the usual way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

NAME: Final = "cached_groups"


def cached_groups(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **more: Any,
) -> tuple[Tensor, None]:
    """Attention of [rows, heads, width, size] over a cache; answers [rows, width, heads, size]."""
    rows, heads, width, size = query.shape
    key_heads = key.shape[1]
    if width > 1 or heads == key_heads:
        done: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout, scaling, **more
        )
        return done
    grouped = query.reshape(rows, key_heads, heads // key_heads, size)
    out = scaled_dot_product_attention(grouped, key, value, attn_mask=attention_mask, scale=scaling)
    return out.reshape(rows, 1, heads, size), None


ALL_ATTENTION_FUNCTIONS.register(NAME, cached_groups)


@contextmanager
def cached_attention(model: Any) -> Iterator[None]:
    """Within it the model attends so; after it, as it did before."""
    before = model.config._attn_implementation
    model.config._attn_implementation = NAME
    try:
        yield
    finally:
        model.config._attn_implementation = before
