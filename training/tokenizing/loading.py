"""A tokenizer by directory or hub name, checked to be one that the rendering can use."""

from __future__ import annotations

import hashlib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final

from training.exceptions import TokenizerError
from training.tokenizing.family import END_OF_TURN

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

NEEDED: Final = (
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)


def load_tokenizer(name_or_path: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer in a directory, or of a model's name on the hub.

    Raises TokenizerError when there is none, or when a mark of the chat format is no single
    token of it.
    """
    from transformers import AutoTokenizer

    where = str(name_or_path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(where)
    except Exception as error:  # the library raises nothing narrower
        raise TokenizerError(
            f"{where} gives no tokenizer: {' '.join(str(error).split())[:200]}",
            remedy="name a directory that holds tokenizer.json, or a model of the hub",
        ) from error
    return checked(tokenizer, where)


def checked(tokenizer: PreTrainedTokenizerBase, where: str) -> PreTrainedTokenizerBase:
    """The tokenizer, when it is of Qwen3's family; its end of text is the end of a turn.

    Raises TokenizerError.
    """
    for mark in NEEDED:
        ids = tokenizer.encode(mark, add_special_tokens=False)
        if tokenizer.convert_ids_to_tokens(ids) != [mark]:
            raise TokenizerError(
                f"{where}: {mark} is no token of it, so it is not of the Qwen3 family",
                remedy="train and serve models of that family",
            )
    tokenizer.eos_token = END_OF_TURN
    return tokenizer


def tokenizer_hash(tokenizer: PreTrainedTokenizerBase) -> str:
    """SHA-256 of what decides how text becomes ids."""
    content: str = tokenizer.backend_tokenizer.to_str()
    return hashlib.sha256(content.encode()).hexdigest()
