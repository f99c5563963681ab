"""A small tokeniser of Qwen's make: byte-level BPE, its way to cut, its marks."""

from __future__ import annotations

from functools import lru_cache

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers as pre
from tokenizers.trainers import BpeTrainer

from corpus_export.pretokens import QWEN_SPLIT
from corpus_export.tokens import MARKS
from tests.unit.sandbox.provenance.traces import SYSTEM

TEXT = [
    SYSTEM,
    "I'm looking for a blue canvas backpack under 500 pesos",
    SYSTEM.upper(),
]


@lru_cache(maxsize=1)
def qwen_like() -> bytes:
    """The content of its `tokenizer.json`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre.Sequence(
        [
            pre.Split(Regex(QWEN_SPLIT), "isolated"),
            pre.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=600, initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    tokenizer.add_special_tokens([AddedToken(m, normalized=False) for m in MARKS[:2]])
    tokenizer.add_tokens([AddedToken(m, normalized=False) for m in MARKS[2:]])
    return tokenizer.to_str().encode()
