"""Small things for tests of training: a tokenizer, conversations, recipes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from corpus_export.normalise import SYSTEM_TEXT
from scoring.types import JsonObject
from training.recipe import SizeSettings
from training.tokenizing.family import wrap
from training.tokenizing.loading import checked
from training.tokenizing.small import train_small
from training.types import Sample

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TOKENIZER_TEXTS = (
    SYSTEM_TEXT,
    '[{"product_id": "2393280632", "title": "blue canvas backpack", "price": 1015.01}]',
    '{"name": "recommend_product", "arguments": {"product_ids":"2393280632"}}',
)

SIZE = SizeSettings(hidden=32, layers=2, heads=2, kv_heads=1, head_width=16, feed_forward=48)
"""The smallest model that has everything: 50,000 weights and the vocabulary."""


def tokenizer_of(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerBase:
    """A trained small tokenizer, as transformers takes it."""
    return checked(wrap(train_small(texts, vocabulary)), "trained")


def call(name: str, arguments: str) -> JsonObject:
    """A tool call as rows hold it."""
    function: JsonObject = {"name": name, "arguments": arguments}
    return {"id": "call_1", "type": "function", "function": function}


def conversation(query: str = "a blue backpack", product: str = "2393280632") -> list[JsonObject]:
    """Search, recommend, terminate: thinking in the first turn, none in the second."""
    return [
        {"role": "system", "content": SYSTEM_TEXT},
        {"role": "user", "content": query},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "I search.",
            "tool_calls": [call("find_product", '{"q":"blue backpack"}')],
        },
        {"role": "tool", "content": f'[{{"product_id": "{product}"}}]', "tool_call_id": "call_1"},
        {
            "role": "assistant",
            "content": "This one.",
            "tool_calls": [
                call("recommend_product", f'{{"product_ids":"{product}"}}'),
                call("terminate", '{"status":"success"}'),
            ],
        },
        {"role": "tool", "content": "done", "tool_call_id": "call_2"},
        {"role": "tool", "content": "over", "tool_call_id": "call_3"},
    ]


def row(number: int = 0, **changes: Any) -> JsonObject:
    """A row as far as rendering reads it."""
    made: JsonObject = {
        "messages": list(conversation(product=str(1_000_000_000 + number))),
        "tools": "[]",
        "bucket": "product",
        "cluster": f"c{number}",
        "problem_id": f"p{number}",
        "record_hash": f"{number:064x}",
    }
    return made | changes


def sample_of(ids: list[int], mask: list[int], name: str = "r", weight: float = 1.0) -> Sample:
    """A sample of these tokens."""
    return Sample(
        np.asarray(ids, dtype=np.int32),
        np.asarray(mask, dtype=np.bool_),
        row=name,
        cluster=f"c-{name}",
        weight=weight,
    )
