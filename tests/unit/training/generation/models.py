"""A Qwen3 of a few thousand random weights, and what it must say, computed the plain way."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

VOCABULARY = 97
CONTEXT = 256


def tiny_model(seed: int = 0, **changes: Any) -> Qwen3ForCausalLM:
    """In eval mode; sharp enough for its choices to differ."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    config = Qwen3Config(
        **{
            "vocab_size": VOCABULARY,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "max_position_embeddings": CONTEXT,
            "initializer_range": 0.3,
            **changes,
        }
    )
    model: Any = Qwen3ForCausalLM
    made: Qwen3ForCausalLM = model(config).eval()
    return made


def prompt(length: int, seed: int) -> list[int]:
    """Random tokens."""
    rng = random.Random(seed)
    return [rng.randrange(VOCABULARY) for _ in range(length)]


def plain_logprobs(
    model: Qwen3ForCausalLM, given: Sequence[int], said: Sequence[int], temperature: float
) -> list[float]:
    """The log-probabilities of `said` after `given`, by one pass without any cache."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*given, *said]]), use_cache=False).logits[0]
    scaled = torch.log_softmax(logits.float() / temperature, dim=-1)
    start = len(given) - 1
    return [float(scaled[start + i, token]) for i, token in enumerate(said)]
