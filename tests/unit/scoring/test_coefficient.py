"""The reasoning coefficient."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.coefficient import coefficient
from scoring.exceptions import ScoringError

QUALITIES = st.floats(allow_nan=False)


@given(QUALITIES, QUALITIES)
def test_it_is_monotone_and_bounded(a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert 0.3 <= coefficient(low) <= coefficient(high) <= 1.0


@given(st.floats(0, 1))
def test_it_has_four_decimals(quality: float) -> None:
    assert coefficient(quality) == round(coefficient(quality), 4)


def test_it_is_full_from_0_80_on() -> None:
    assert coefficient(0.8) == coefficient(math.inf) == 1.0
    assert coefficient(0.799) < 1.0
    assert coefficient(-math.inf) == 0.3


@pytest.mark.parametrize("quality", [math.nan, True])
def test_what_is_no_number_is_refused(quality: float) -> None:
    with pytest.raises(ScoringError):
        coefficient(quality)
