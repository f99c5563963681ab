"""Marks of the chat format inside text: made harmless before anything is tokenised.

A product's description may hold `<|im_end|>` or `</tool_response>`, and a tokenizer would
take it for the real thing. Each such mark loses its angle bracket to a look-alike; all
other text stays as it is, to the character. Training and serving both come through here.
"""

from __future__ import annotations

import re
from typing import Final

MARKS: Final[tuple[str, ...]] = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<tool_call>",
    "</tool_call>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)
"""The tokens that Qwen3's tokenizer adds to its vocabulary, in their order (151643 …)."""

_BRACKET: Final = "‹"
_MARK: Final = re.compile("<(?=(?:" + "|".join(re.escape(mark[1:]) for mark in MARKS) + "))")


_HALF: Final = re.compile("[\ud800-\udfff]")


def harmless(text: str) -> str:
    """The text without a mark in it: the `<` of each becomes `‹`. As long as before.

    Half surrogates, which no tokenizer takes, become U+FFFD.
    """
    if not text.isascii():
        text = _HALF.sub("�", text)
    return _MARK.sub(_BRACKET, text) if "<" in text else text
