"""What is drawn, and the log-probability that is told of it."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from training.generation import drawing
from training.generation.drawing import draw

LOGITS = torch.tensor([2.0, 0.5, 1.0, -1.0, 1.5])


def rows(count: int, value: float) -> torch.Tensor:
    return torch.full((count,), value)


def even(count: int) -> torch.Tensor:
    """Numbers that cut [0, 1) into equal parts, so that counts are shares."""
    return (torch.arange(count, dtype=torch.float64) + 0.5) / count


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
def test_tokens_come_as_often_as_the_distribution_at_the_temperature_says(
    temperature: float,
) -> None:
    count = 10_000
    drawn = draw(LOGITS.expand(count, -1), rows(count, temperature), rows(count, 1.0), even(count))
    shares = torch.bincount(drawn.ids, minlength=5) / count
    assert torch.allclose(shares, torch.softmax(LOGITS / temperature, -1), atol=2e-4)


def test_the_log_probability_is_that_at_the_temperature_whatever_top_p_cuts() -> None:
    expected = torch.log_softmax(LOGITS / 0.7, -1)
    for top_p in (1.0, 0.6):
        drawn = draw(LOGITS.expand(50, -1), rows(50, 0.7), rows(50, top_p), even(50))
        assert torch.allclose(drawn.logprobs, expected[drawn.ids])


def test_the_nucleus_is_the_smallest_set_that_has_top_p_and_keeps_its_proportions() -> None:
    count = 10_000
    probabilities = torch.softmax(LOGITS, -1)
    # The two likeliest have 0.71 together; the third brings them over 0.8.
    drawn = draw(LOGITS.expand(count, -1), rows(count, 1.0), rows(count, 0.8), even(count))
    kept = torch.tensor([0, 2, 4])
    assert set(drawn.ids.tolist()) == {0, 2, 4}
    shares = torch.bincount(drawn.ids, minlength=5)[kept] / count
    assert torch.allclose(shares, probabilities[kept] / probabilities[kept].sum(), atol=2e-4)


def test_a_nucleus_wider_than_what_is_tried_first_is_found_by_sorting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logits = torch.randn(200, generator=torch.Generator().manual_seed(0)).expand(400, -1)
    told = (rows(400, 1.0), rows(400, 0.9), even(400))
    whole = draw(logits, *told).ids
    monkeypatch.setattr(drawing, "NUCLEUS_TRIED", 3)
    assert torch.equal(draw(logits, *told).ids, whole)


def test_a_top_p_of_nothing_is_the_likeliest_token() -> None:
    drawn = draw(LOGITS.expand(20, -1), rows(20, 1.0), rows(20, 0.0), even(20))
    assert set(drawn.ids.tolist()) == {0}


def test_temperature_zero_takes_the_likeliest_and_tells_its_plain_log_probability() -> None:
    drawn = draw(LOGITS[None], rows(1, 0.0), rows(1, 1.0), even(1))
    assert drawn.ids.item() == 0
    assert drawn.logprobs.item() == pytest.approx(torch.log_softmax(LOGITS, -1)[0].item())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.0, 2.0), min_size=1, max_size=6),
    st.floats(0.0, 1.0, exclude_max=True),
    st.floats(0.0, 1.0),
)
def test_a_row_draws_the_same_whatever_stands_beside_it(
    temperatures: list[float], number: float, top_p: float
) -> None:
    alone = draw(
        LOGITS[None], torch.tensor([0.8]), torch.tensor([top_p]),
        torch.tensor([number], dtype=torch.float64),
    )  # fmt: skip
    count = len(temperatures) + 1
    beside = draw(
        torch.stack([LOGITS, *(LOGITS * -t for t in temperatures)]),
        torch.tensor([0.8, *temperatures]),
        torch.tensor([top_p, *(0.5 for _ in temperatures)]),
        torch.cat([torch.tensor([number], dtype=torch.float64), even(count - 1)]),
    )
    assert alone.ids[0] == beside.ids[0]
    assert alone.logprobs[0] == beside.logprobs[0]


def test_numbers_at_the_edges_draw_tokens_that_can_be_drawn() -> None:
    logits = torch.tensor([[-torch.inf, 1.0, 0.0, -torch.inf]]).expand(2, -1)
    edges = torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64)
    assert draw(logits, rows(2, 1.0), rows(2, 1.0), edges).ids.tolist() == [1, 2]


def test_a_row_that_is_no_number_is_told_by_its_log_probability() -> None:
    logits = torch.stack([LOGITS, LOGITS * torch.nan])
    drawn = draw(logits, rows(2, 1.0), rows(2, 1.0), even(2))
    assert torch.isfinite(drawn.logprobs).tolist() == [True, False]
