from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from training.losses.tokens import logprobs_of, masked_logprobs, masked_sum, sft_loss

torch.set_num_threads(1)


def test_a_token_is_predicted_by_the_logits_before_it() -> None:
    # Two words. At position 0 the odds are 3:1 for word 1, at position 1 they are 1:1.
    logits = torch.tensor([[[0.0, math.log(3)], [5.0, 5.0], [9.0, -9.0]]])
    ids = torch.tensor([[0, 1, 0]])
    out = logprobs_of(logits, ids)
    assert out[0].tolist() == pytest.approx([0.0, math.log(3 / 4), math.log(1 / 2)])


def test_a_temperature_divides_the_logits() -> None:
    logits = torch.tensor([[[0.0, math.log(9)], [0.0, 0.0]]])
    # At temperature 2 odds of 9:1 become 3:1.
    out = logprobs_of(logits, torch.tensor([[0, 1]]), temperature=2.0)
    assert out[0, 1].item() == pytest.approx(math.log(3 / 4))


@given(seed=st.integers(0, 1000), chunk=st.integers(1, 7))
@settings(max_examples=25, deadline=None)
def test_chunks_of_masked_tokens_give_the_same_values_and_gradients(seed: int, chunk: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    head = torch.nn.Linear(4, 11, bias=False)
    hidden = torch.randn(2, 6, 4, generator=generator, requires_grad=True)
    ids = torch.randint(0, 11, (2, 6), generator=generator)
    mask = torch.rand(2, 6, generator=generator) < 0.5
    mask[:, 0] = False
    whole = logprobs_of(head(hidden), ids).masked_fill(~mask, 0.0)
    (gradient,) = torch.autograd.grad(whole.sum(), hidden)
    parts = masked_logprobs(hidden, head, ids, mask, chunk=chunk)
    (other,) = torch.autograd.grad(parts.sum(), hidden)
    torch.testing.assert_close(parts, whole)
    torch.testing.assert_close(other, gradient)


def test_rows_without_a_masked_token_still_have_a_gradient_of_zero() -> None:
    hidden = torch.randn(1, 3, 4, requires_grad=True)
    head = torch.nn.Linear(4, 5)
    mask = torch.zeros(1, 3, dtype=torch.bool)
    out = masked_logprobs(hidden, head, torch.zeros(1, 3, dtype=torch.long), mask)
    (gradient,) = torch.autograd.grad(out.sum(), hidden)
    assert not gradient.any()


def test_a_mask_over_the_first_token_is_refused() -> None:
    mask = torch.tensor([[True, True]])
    with pytest.raises(ValueError, match="first token"):
        masked_logprobs(torch.zeros(1, 2, 4), torch.nn.Linear(4, 5), mask.long(), mask)


def test_what_is_masked_may_be_no_number() -> None:
    values = torch.tensor([[1.0, float("nan"), 2.0]])
    assert masked_sum(values, torch.tensor([[1, 0, 1]])).tolist() == [3.0]


def test_the_supervised_loss_is_the_mean_over_the_tokens_of_the_whole_update() -> None:
    logprobs = torch.tensor([[0.0, -1.0, -2.0], [0.0, -3.0, -9.0]])
    mask = torch.tensor([[0, 1, 1], [0, 1, 0]])
    # (1 + 2) + 3 over three tokens
    assert sft_loss(logprobs, mask, normaliser=3).item() == pytest.approx(2.0)
    # the second row counts three times: (3 + 9) / 3
    weights = torch.tensor([1.0, 3.0])
    assert sft_loss(logprobs, mask, normaliser=3, weights=weights).item() == pytest.approx(4.0)


def test_micro_batches_add_up_to_the_whole_update() -> None:
    logprobs = torch.tensor([[0.0, -1.0, -2.0], [0.0, -3.0, -9.0]])
    mask = torch.tensor([[0, 1, 1], [0, 1, 0]])
    whole = sft_loss(logprobs, mask, normaliser=3)
    parts = [sft_loss(logprobs[i : i + 1], mask[i : i + 1], normaliser=3) for i in (0, 1)]
    assert sum(parts).item() == pytest.approx(whole.item())  # type: ignore[union-attr]


def test_an_update_without_a_token_is_refused() -> None:
    with pytest.raises(ValueError, match="no token"):
        sft_loss(torch.zeros(1, 2), torch.zeros(1, 2), normaliser=0)
