"""Models of random weights: by their seed, and with what all tokens share."""

from __future__ import annotations

import torch

from tests.unit.training.small import SIZE, TOKENIZER_TEXTS, tokenizer_of
from training.backbone import random_qwen3
from training.recipe import SizeSettings
from training.tokenizing.small import LEAST

TOKENIZER = tokenizer_of(TOKENIZER_TEXTS, LEAST + 100)


def embedding(size: SizeSettings) -> torch.Tensor:
    model = random_qwen3(size, TOKENIZER, seed=1).model
    return model.get_input_embeddings().weight.detach().clone()  # type: ignore[operator]


def test_one_vector_is_shared_by_all_tokens_where_the_recipe_wants_it() -> None:
    plain = embedding(SIZE)
    shifted = embedding(SIZE.model_copy(update={"initial_mean": 0.1}))
    difference = shifted - plain
    assert torch.allclose(difference, difference[:1].expand_as(difference), atol=1e-6)
    assert 0.03 < float(difference[0].std()) < 0.3
    assert torch.equal(shifted, embedding(SIZE.model_copy(update={"initial_mean": 0.1})))
