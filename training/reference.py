"""The model that a policy is held to, and log-probabilities of packs under either.

An adapted model carries its reference within: itself, without the adapter. A model that is
trained whole needs a frozen copy of what it was.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from training.attention import packed_attention
from training.forward import computing_in, core_of, head_of, hidden_states, on_device
from training.losses.tokens import masked_logprobs
from training.packing import Pack


class Reference:
    """What a policy was when its training began."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._policy: Any = model
        self._copy: torch.nn.Module | None = None
        if not hasattr(model, "disable_adapter"):
            self._copy = copy.deepcopy(model).eval().requires_grad_(False)

    @contextmanager
    def model(self) -> Iterator[torch.nn.Module]:
        """The reference, in eval mode, for as long as the context lasts."""
        if self._copy is not None:
            yield self._copy
            return
        training = self._policy.training
        self._policy.eval()
        try:
            with self._policy.disable_adapter():
                yield self._policy
        finally:
            self._policy.train(training)

    def logprobs(self, pack: Pack, dtype: torch.dtype, *, temperature: float = 1.0) -> Tensor:
        """As `pack_logprobs` of the reference, without a gradient."""
        with self.model() as model:
            return measured_logprobs(model, pack, dtype, temperature=temperature)


def pack_logprobs(model: torch.nn.Module, pack: Pack, *, temperature: float = 1.0) -> Tensor:
    """Log-probabilities [T] of a pack's masked tokens, 0 elsewhere.

    Within `packed_attention` and mixed precision only.
    """
    hidden = hidden_states(model, pack)
    ids = on_device(pack.ids, hidden.device)[None]
    mask = on_device(pack.mask, hidden.device)[None]
    return masked_logprobs(hidden, head_of(model), ids, mask, temperature=temperature)[0]


def measured_logprobs(
    model: torch.nn.Module, pack: Pack, dtype: torch.dtype, *, temperature: float = 1.0
) -> Tensor:
    """The same for measuring: no gradient, in a context of its own."""
    device = next(model.parameters()).device
    with torch.no_grad(), packed_attention(core_of(model)), computing_in(dtype, device):
        return pack_logprobs(model, pack, temperature=temperature)


def member_sums(values: Tensor, pack: Pack) -> Tensor:
    """The sum of `values` [T] over each member of a pack, [members]."""
    return torch.stack([part.sum() for part in torch.split(values, list(pack.lengths))])
