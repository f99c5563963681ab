"""Counting tokens fast: text is cut as the tokeniser cuts it, and each piece counted once.

A byte-level BPE never merges across the pieces that its regular expression cuts, so a text's
tokens are the sum over its pieces, and pieces repeat. Counting so takes an eighth of the time
of encoding. Only for tokenisers that cut exactly as Qwen's do; others encode.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

import regex
from tokenizers import Tokenizer

QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Qwen2, Qwen2.5 and Qwen3 cut a text."""
_ASCII_SPLIT = re.compile(
    r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]"
    r"| ?[^\sA-Za-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    re.ASCII,
)
"""The same for ASCII, where Python's own engine is three times as fast."""
_ANY_SPLIT = regex.compile(QWEN_SPLIT)
_OLD = unicodedata.ucd_3_2_0
"""Engines differ on letters that Unicode got later than one of them; not on those of 2002."""
MAX_PIECES = 200_000
"""Pieces that are remembered, about 20 MB; then all are forgotten."""


class PieceCounter:
    """Counts the tokens of texts, piece by piece."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
        longest_first = sorted(added, key=len, reverse=True)
        self._added = re.compile("|".join(re.escape(content) for content in longest_first))
        self._known: dict[str, int] = {}
        self._settled: set[str] = set()
        """Characters that every engine takes alike."""

    def count(self, text: str) -> int:
        """The tokens of `text`, as many as the tokeniser gives."""
        parts = self._added.split(text)
        return len(parts) - 1 + sum(self._of_part(part) for part in parts if part)

    def _of_part(self, text: str) -> int:
        if text.isascii():
            pieces = _ASCII_SPLIT.findall(text)
        elif not self._all_settled(text):
            return self._encoded(text)
        else:
            pieces = _ANY_SPLIT.findall(unicodedata.normalize("NFC", text))
        known = self._known
        count = 0
        for piece in pieces:
            tokens = known.get(piece)
            count += self._learn(piece) if tokens is None else tokens
        return count

    def _all_settled(self, text: str) -> bool:
        new = set(text) - self._settled
        self._settled.update(c for c in new if not _is_disputed(c))
        return new <= self._settled

    def _learn(self, piece: str) -> int:
        if len(self._known) >= MAX_PIECES:
            self._known.clear()
        tokens = self._known[piece] = self._encoded(piece)
        return tokens

    def _encoded(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False))


def _is_disputed(character: str) -> bool:
    """Whether it is a letter or a number to some engine only: a young one, or none at all."""
    young = _OLD.category(character) == "Cn"
    return young and unicodedata.category(character)[0] in "LNC"


def cuts_like_qwen(content: bytes) -> bool:
    """Whether the `tokenizer.json` with this content cuts as `PieceCounter` does."""
    try:
        value: dict[str, Any] = json.loads(content)
        split, to_bytes = value["pre_tokenizer"]["pretokenizers"]
        added = value["added_tokens"]
        return (
            value["model"]["type"] == "BPE"
            and value["normalizer"] == {"type": "NFC"}
            and (split["type"], to_bytes["type"]) == ("Split", "ByteLevel")
            and split["pattern"] == {"Regex": QWEN_SPLIT}
            and (split["behavior"], split["invert"]) == ("Isolated", False)
            and not to_bytes["use_regex"]
            and not to_bytes["add_prefix_space"]
            and bool(added)
            and not any(a["single_word"] or a["lstrip"] or a["rstrip"] for a in added)
        )
    except (ValueError, KeyError, TypeError):
        return False
