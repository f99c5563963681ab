"""One forward pass over a pack: hidden states, and the head that makes logits of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from training.packing import Pack


def core_of(model: torch.nn.Module) -> PreTrainedModel:
    """The transformers model inside of an adapter's, or itself."""
    whole: Any = model
    inner = whole.get_base_model() if hasattr(whole, "get_base_model") else whole
    assert isinstance(inner, PreTrainedModel)
    return inner


def head_of(model: torch.nn.Module) -> Callable[[Tensor], Tensor]:
    """What makes logits of hidden states."""
    core: Any = core_of(model)
    head = core.get_output_embeddings()
    return lambda hidden: torch.as_tensor(head(hidden))


def hidden_states(model: torch.nn.Module, pack: Pack) -> Tensor:
    """The last hidden states [1, T, H] of a pack, none of whose samples sees another.

    Within `packed_attention` only: any other attention would let them.
    """
    core: Any = core_of(model)
    device = core.get_input_embeddings().weight.device
    out = core.base_model(
        input_ids=on_device(pack.ids, device)[None],
        position_ids=on_device(pack.positions, device)[None],
        use_cache=False,
        lengths=pack.lengths,
    )
    return torch.as_tensor(out.last_hidden_state)


def on_device(values: Any, device: torch.device) -> Tensor:
    """A numpy array as a tensor; ids and positions as int64."""
    tensor = torch.as_tensor(values)
    if tensor.dtype is torch.int32:
        tensor = tensor.long()
    return tensor.to(device)


def computing_in(dtype: torch.dtype, device: torch.device) -> AbstractContextManager[Any]:
    """Mixed precision where `dtype` is a half; float32 computes as it is."""
    if dtype is torch.float32:
        return nullcontext()
    return torch.autocast(device.type, dtype=dtype)
