"""A small tokenizer for small models, trained on a corpus's own text.

Same family as Qwen3's (byte-level, the same marks), cut otherwise, so that a model of a few
million parameters can learn to copy:

- digits in groups of three from the left, every group a token: a product id of ten digits is
  four tokens, the same four wherever it stands, against ten with one for each digit;
- a JSON key with the punctuation around it is one piece, since observations repeat their
  keys for every product;
- `phrases`, texts that stand unchanged in every sample (the system text, the tools), are one
  token each. Decoding gives them back to the letter: nothing is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Final

from tokenizers import Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers as pre
from tokenizers.trainers import BpeTrainer

from training.exceptions import TokenizerError
from training.render.marks import MARKS
from training.tokenizing.family import assemble

_KEY = r'"?[\]}]*,? ?[\[{]*"[a-z_]{1,40}": ?[\[{]*"?'
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|{digits}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPLIT: Final = _KEY + "|" + _WORDS.replace("{digits}", r"\p{N}{1,3}")
"""How a trained small tokenizer cuts."""
_LEARNING_SPLIT: Final = _KEY + "|" + _WORDS.replace("{digits}", r"\p{N}")
"""How text is cut to learn from: no merge of digits is learnt, all groups are given."""
LEAST: Final = 256 + 1100 + len(MARKS)
"""Bytes, groups of two and three digits, marks: no vocabulary is smaller."""


def train_small(
    texts: Iterable[str], vocabulary_size: int, phrases: Sequence[str] = ()
) -> Tokenizer:
    """A tokenizer of at most `vocabulary_size` tokens. The same texts give the same one.

    Raises TokenizerError when the size leaves no room to learn anything.
    """
    room = vocabulary_size - LEAST - len(phrases)
    if room <= 0:
        raise TokenizerError(
            f"a vocabulary of {vocabulary_size} leaves no room to learn",
            remedy=f"more than {LEAST + len(phrases)}",
        )
    learner = Tokenizer(models.BPE())
    learner.normalizer = normalizers.NFC()
    learner.pre_tokenizer = pre.Sequence(
        [
            pre.Split(Regex(_LEARNING_SPLIT), "isolated"),
            pre.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    learner.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=256 + room,
        min_frequency=2,
        initial_alphabet=sorted(pre.ByteLevel.alphabet()),
        show_progress=False,
    )
    learner.train_from_iterator(_without(texts, phrases), trainer)
    vocabulary, merges = _learnt(learner)
    for length in (2, 3):
        for digits in product("0123456789", repeat=length):
            vocabulary.setdefault("".join(digits), len(vocabulary))
    return assemble(vocabulary, merges, SPLIT, whole_pieces=True, phrases=phrases)


def _without(texts: Iterable[str], phrases: Sequence[str]) -> Iterable[str]:
    """The texts where neither phrases nor marks stand: those are tokens already."""
    for text in texts:
        rest = text
        for known in (*phrases, *MARKS):
            rest = rest.replace(known, "\n")
        yield rest


def _learnt(learner: Tokenizer) -> tuple[dict[str, int], list[tuple[str, str]]]:
    model = json.loads(learner.to_str())["model"]
    vocabulary: dict[str, int] = model["vocab"]
    merges = [(pair[0], pair[1]) for pair in model["merges"]]
    return dict(sorted(vocabulary.items(), key=lambda item: item[1])), merges
