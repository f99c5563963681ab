"""Packing: samples side by side, none of which sees another, none cut, none lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedModel

from tests.unit.training.small import SIZE, TOKENIZER_TEXTS, sample_of, tokenizer_of
from training.attention import packed_attention
from training.backbone import random_qwen3
from training.forward import core_of, hidden_states
from training.packing import group_by_length, join, pack
from training.tokenizing.small import LEAST

TOKENIZER = tokenizer_of(TOKENIZER_TEXTS, LEAST + 50)
MODEL = random_qwen3(SIZE, TOKENIZER, seed=1).model
SLIDING = SIZE.model_copy(update={"sliding_layers": 1, "sliding_window": 3})
SLIDING_MODEL = random_qwen3(SLIDING, TOKENIZER, seed=1).model
SAMPLES = [
    sample_of([5, 6, 7, 8, 9], [0, 0, 1, 1, 1], "a"),
    sample_of([9, 8, 7], [0, 1, 1], "b"),
    sample_of([1, 2, 3, 4, 5, 6, 7], [0, 0, 0, 0, 0, 1, 1], "c"),
]


@given(st.lists(st.integers(1, 50), max_size=30), st.integers(1, 60))
def test_every_sample_is_in_one_group_and_groups_hold_what_fits(
    lengths: list[int], capacity: int
) -> None:
    groups = group_by_length(lengths, capacity)
    assert sorted(i for group in groups for i in group) == list(range(len(lengths)))
    for group in groups:
        assert sum(lengths[i] for i in group) <= capacity or len(group) == 1


def test_a_pack_holds_its_samples_as_they_are() -> None:
    (one,) = pack(SAMPLES, 100)
    assert one.members == (2, 0, 1)
    assert one.lengths == (7, 5, 3)
    assert one.starts == (0, 7, 12)
    assert one.positions.tolist() == [*range(7), *range(5), *range(3)]
    assert one.ids.tolist() == [1, 2, 3, 4, 5, 6, 7, 5, 6, 7, 8, 9, 9, 8, 7]
    assert one.mask.sum() == 7
    assert one.spread([1, 2, 3]).tolist() == [1] * 7 + [2] * 5 + [3] * 3


@torch.no_grad()
@pytest.mark.parametrize("model", [MODEL, SLIDING_MODEL], ids=["full", "sliding"])
def test_no_sample_sees_another(model: PreTrainedModel) -> None:
    together = join(SAMPLES)
    with packed_attention(core_of(model)):
        packed = hidden_states(model, together)[0]
        alone = [hidden_states(model, join([sample]))[0] for sample in SAMPLES]
    assert torch.allclose(packed, torch.cat(alone), atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("model", [MODEL, SLIDING_MODEL], ids=["full", "sliding"])
def test_packed_states_are_those_of_the_models_own_attention(model: PreTrainedModel) -> None:
    with packed_attention(core_of(model)):
        packed = hidden_states(model, join(SAMPLES))[0]
    own = [
        model.base_model(input_ids=torch.as_tensor(s.ids).long()[None]).last_hidden_state[0]
        for s in SAMPLES
    ]
    assert torch.allclose(packed, torch.cat(own), atol=1e-5)


@torch.no_grad()
def test_a_sliding_layer_sees_its_window_and_no_more() -> None:
    with packed_attention(core_of(SLIDING_MODEL)):
        core: Any = SLIDING_MODEL.base_model
        first = core.layers[0].self_attn
        seen: list[torch.Tensor] = []
        hook = first.register_forward_hook(lambda module, inputs, output: seen.append(output[0]))
        try:
            for ids in ([1, 2, 3, 4, 5, 6, 7], [7, 7, 7, 7, 5, 6, 7]):
                hidden_states(SLIDING_MODEL, join([sample_of(ids, [0] * 6 + [1], "a")]))
        finally:
            hook.remove()
    same = torch.isclose(seen[0], seen[1], atol=1e-6).all(-1)[0]
    assert same.tolist() == [False] * 6 + [True]


def test_no_gradient_flows_from_one_sample_to_another() -> None:
    together = join(SAMPLES)
    embedding = MODEL.get_input_embeddings()
    seen: list[torch.Tensor] = []

    def keep(module: object, inputs: object, output: torch.Tensor) -> torch.Tensor:
        output.retain_grad()
        seen.append(output)
        return output

    hook = embedding.register_forward_hook(keep)
    try:
        with packed_attention(core_of(MODEL)):
            states = hidden_states(MODEL, together)[0]
        torch.autograd.backward(states[5:8].sum())
    finally:
        hook.remove()
        MODEL.zero_grad()
    (shown,) = seen
    assert shown.grad is not None
    touched = shown.grad[0].abs().sum(-1) > 0
    assert touched.tolist() == [False] * 5 + [True] * 3 + [False] * 7


def test_attention_is_what_it_was_afterwards() -> None:
    before = MODEL.config._attn_implementation
    with pytest.raises(RuntimeError), packed_attention(core_of(MODEL)):
        raise RuntimeError
    assert MODEL.config._attn_implementation == before == "sdpa"


def test_lengths_that_do_not_fill_the_row_are_refused() -> None:
    wrong = join(SAMPLES)
    broken = type(wrong)(wrong.ids, wrong.positions, wrong.mask, (7, 5), (0, 1))
    with packed_attention(core_of(MODEL)), pytest.raises(ValueError, match="in a row of"):
        hidden_states(MODEL, broken)


def test_arrays_are_narrow() -> None:
    one = join(SAMPLES)
    assert one.ids.dtype == np.int32
    assert one.mask.dtype == np.bool_
