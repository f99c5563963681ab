"""The held-out loss, and how many tokens the model would have chosen itself.

All with the true tokens before each (teacher forcing). The digits of what is recommended are
counted on their own: they cannot be guessed, only copied, and one wrong digit is a product
that does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray

from training.attention import packed_attention
from training.forward import computing_in, core_of, head_of, hidden_states, on_device
from training.packing import Pack, pack
from training.types import Mask, Sample

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Measured: TypeAlias = NDArray[Any]
CHUNK: Final = 1_024
RECOMMEND: Final = "recommend_product"


class HeldOut:
    """Samples that are measured on, never learnt from."""

    def __init__(
        self,
        samples: Sequence[Sample],
        tokenizer: PreTrainedTokenizerBase,
        capacity: int,
        dtype: torch.dtype,
    ) -> None:
        self._samples = samples
        self._packs = pack(samples, capacity)
        self._dtype = dtype
        digits = _digit_tokens(tokenizer)
        self._recommended = [recommended_digits(s, tokenizer, digits) for s in samples]

    def __call__(self, model: torch.nn.Module) -> dict[str, float]:
        """The measurements; the model is to be in eval mode."""
        loss = right = count = 0.0
        digits = digits_right = rows = rows_right = 0
        for one in self._packs:
            nll, hits = self._measured(model, one)
            loss += float(nll.sum())
            right += int(hits.sum())
            count += len(hits)
            at = 0
            for member in one.members:
                sample = self._samples[member]
                spoken = int(sample.mask.sum())
                wanted = self._recommended[member][sample.mask]
                found = hits[at : at + spoken][wanted]
                at += spoken
                digits += len(found)
                digits_right += int(found.sum())
                rows += bool(len(found))
                rows_right += bool(len(found) and found.all())
        measured = {"held_out_loss": loss / count, "held_out_accuracy": right / count}
        if digits:
            measured["held_out_recommended_digits"] = digits_right / digits
            measured["held_out_recommended_whole"] = rows_right / rows
        return measured

    def _measured(self, model: torch.nn.Module, one: Pack) -> tuple[Measured, Measured]:
        """Negative log-likelihood of each masked token, and whether it was the likeliest."""
        core = core_of(model)
        device = next(model.parameters()).device
        with torch.no_grad(), packed_attention(core), computing_in(self._dtype, device):
            hidden = hidden_states(model, one)[0]
            places = np.flatnonzero(one.mask)
            head = head_of(model)
            wanted = on_device(one.ids[places], device)
            states = hidden[on_device(places - 1, device)]
            losses, hits = [], []
            for begin in range(0, len(places), CHUNK):
                logits = head(states[begin : begin + CHUNK]).float()
                target = wanted[begin : begin + CHUNK]
                losses.append(torch.nn.functional.cross_entropy(logits, target, reduction="none"))
                hits.append(logits.argmax(-1) == target)
        return torch.cat(losses).cpu().numpy(), torch.cat(hits).cpu().numpy()


def recommended_digits(
    sample: Sample, tokenizer: PreTrainedTokenizerBase, digits: Mask | None = None
) -> Mask:
    """Where the digits of the recommended ids stand in a sample: within the last such call."""
    known = _digit_tokens(tokenizer) if digits is None else digits
    found = np.zeros(len(sample), dtype=np.bool_)
    opens, closes = cast(
        "list[int]", tokenizer.convert_tokens_to_ids(["<tool_call>", "</tool_call>"])
    )
    begins = np.flatnonzero((sample.ids == opens) & sample.mask)
    ends = np.flatnonzero((sample.ids == closes) & sample.mask)
    for begin, end in zip(begins, ends, strict=False):
        head = tokenizer.decode(sample.ids[begin : begin + 16].tolist())
        if f'"name": "{RECOMMEND}"' in head:
            found[:] = False
            found[begin:end] = known[sample.ids[begin:end]]
    return found


def _digit_tokens(tokenizer: PreTrainedTokenizerBase) -> Mask:
    """Which tokens are digits and nothing else."""
    names = cast("list[str | None]", tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))))
    return np.asarray([_is_digits(name or "") for name in names], dtype=np.bool_)


def _is_digits(name: str) -> bool:
    return name.isascii() and name.isdigit()
