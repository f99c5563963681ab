"""Masks checked: when a sample is made, against its text; before every update, by its form.

The first check writes down, without the renderer, what the model is to say in each turn, and
compares it with what the masked tokens decode to. The second needs ids alone: each masked run
begins right after `<|im_start|>assistant\\n`, ends with the end of a turn, and holds no token
that opens a message or an observation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import numpy as np
from tokenizers.normalizers import NFC

from scoring.types import Json
from training.exceptions import MaskError
from training.render.marks import harmless
from training.types import Ids, Mask, Sample

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

HEADER: Final = "<|im_start|>assistant\n"
_NFC: Final = NFC()


@dataclass(frozen=True, slots=True)
class Scaffold:
    """The ids that surround what a model says, under one tokenizer."""

    header: tuple[int, ...]
    end: int
    never: frozenset[int]

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase) -> Scaffold:
        """Under this tokenizer."""
        ids = cast("list[int]", tokenizer.encode(HEADER, add_special_tokens=False))
        start, end, *never = cast(
            "list[int]",
            tokenizer.convert_tokens_to_ids(
                ["<|im_start|>", "<|im_end|>", "<tool_response>", "</tool_response>"]
            ),
        )
        return cls(tuple(ids), end, frozenset((start, *never)))


def runs(mask: Mask) -> list[tuple[int, int]]:
    """Begin and end of each stretch of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def assert_mask(
    ids: Ids, mask: Mask, scaffold: Scaffold, *, whole_turns: bool = True, sampled: bool = False
) -> None:
    """Raise MaskError when the mask covers anything but whole turns of the model.

    With `whole_turns` false (rollouts that ran out of room) a turn need not have its end. Ids
    that were `sampled` may hold any mark: a weak policy says them. An observation among them
    is still told, by the end of the turn before it.
    """
    if len(ids) != len(mask):
        raise MaskError(f"{len(mask)} marks for {len(ids)} tokens")
    stretches = runs(mask)
    if not stretches:
        raise MaskError("the mask covers nothing: there is nothing to learn from")
    width = len(scaffold.header)
    never = np.isin(ids, list(scaffold.never))
    for begin, end in stretches:
        if begin < width or tuple(ids[begin - width : begin].tolist()) != scaffold.header:
            raise MaskError(f"the mask begins at token {begin}, where no turn of the model does")
        if not sampled and never[begin:end].any():
            raise MaskError(f"the mask from token {begin} on covers what others said")
        inner = ids[begin : end - 1] == scaffold.end
        if inner.any() or (whole_turns and int(ids[end - 1]) != scaffold.end):
            raise MaskError(f"the mask from token {begin} on is no turn with its end")


def assert_text(
    sample: Sample,
    messages: Sequence[Mapping[str, Json]],
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    """Raise MaskError unless the masked tokens decode to what the assistant says, turn by turn."""
    expected = [
        assistant_text(message, last=place + 1 == len(messages))
        for place, message in enumerate(messages)
        if message.get("role") == "assistant"
    ]
    stretches = runs(sample.mask)
    if len(stretches) != len(expected):
        raise MaskError(
            f"row {sample.row[:80]}: {len(stretches)} masked turns of {len(expected)} spoken"
        )
    for number, ((begin, end), text) in enumerate(zip(stretches, expected, strict=True), start=1):
        said = tokenizer.decode(sample.ids[begin:end].tolist(), skip_special_tokens=False)
        if said != _NFC.normalize_str(text):
            raise MaskError(
                f"row {sample.row[:80]}, turn {number}: the mask decodes to something else than"
                " what the assistant says"
            )


def assistant_text(message: Mapping[str, Json], *, last: bool) -> str:
    """What a model samples in one turn, as Qwen3's template writes it, with its end."""
    content = harmless(str(message.get("content") or ""))
    thinking = harmless(str(message.get("reasoning_content") or ""))
    text = content
    if thinking or last:
        text = f"<think>\n{thinking.strip(chr(10))}\n</think>\n\n" + content.lstrip("\n")
    for number, call in enumerate(
        cast("list[dict[str, dict[str, str]]]", message.get("tool_calls") or [])
    ):
        function = call["function"]
        gap = "\n" if number or content else ""
        name, arguments = harmless(function["name"]), harmless(function["arguments"])
        written = f'{{"name": "{name}", "arguments": {arguments}}}'
        text += f"{gap}<tool_call>\n{written}\n</tool_call>"
    return text + "<|im_end|>"
