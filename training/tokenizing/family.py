"""What makes a tokenizer one of the Qwen3 family: its marks, its parts and its settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers
from tokenizers import pre_tokenizers as pre
from tokenizers.models import BPE

from training.render.marks import MARKS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

END_OF_TEXT: Final = "<|endoftext|>"
END_OF_TURN: Final = "<|im_end|>"
SPECIAL: Final = 14
"""So many of `MARKS`, from the first, are special tokens; the tags of thinking and tools after
them are plain added tokens, so that decoding shows them."""
MAX_LENGTH: Final = 131_072


def assemble(
    vocabulary: dict[str, int],
    merges: Sequence[tuple[str, str]],
    split: str,
    *,
    whole_pieces: bool = False,
    phrases: Sequence[str] = (),
) -> Tokenizer:
    """A byte-level BPE as Qwen3's: NFC, cut by the expression `split`, bytes, then the marks.

    With `whole_pieces` a piece that stands in the vocabulary is one token whatever the merges
    say. `phrases` become tokens of their own after the marks.
    """
    tokenizer = Tokenizer(
        BPE(vocab=vocabulary, merges=list(merges), fuse_unk=False, ignore_merges=whole_pieces)
    )
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre.Sequence(
        [
            pre.Split(Regex(split), "isolated"),
            pre.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(m, normalized=False) for m in MARKS[:SPECIAL]])
    tokenizer.add_tokens([AddedToken(m, normalized=False) for m in (*MARKS[SPECIAL:], *phrases)])
    return tokenizer


def wrap(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    """The tokenizer as transformers takes it; `save_pretrained` writes what can be loaded."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        eos_token=END_OF_TURN,
        pad_token=END_OF_TEXT,
        model_max_length=MAX_LENGTH,
        clean_up_tokenization_spaces=False,
    )
