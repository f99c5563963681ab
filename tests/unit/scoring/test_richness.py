"""Agentic richness weighs a score; it never lifts one."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.exceptions import ScoringError
from scoring.richness import enriched

fractions = st.floats(0, 1)


@given(fractions, fractions, fractions)
def test_it_never_lifts_a_run_and_stays_a_fraction(
    score: float, ratio: float, share: float
) -> None:
    assert 0.0 <= enriched(score, ratio, share) <= score


@given(fractions, fractions)
def test_a_failed_run_stays_at_zero(ratio: float, share: float) -> None:
    assert enriched(0.0, ratio, share) == 0.0


@given(fractions, fractions)
def test_off_or_wholly_agentic_it_changes_nothing(score: float, other: float) -> None:
    assert enriched(score, other, 0.0) == score
    assert enriched(score, 1.0, other) == score


def test_the_share_is_what_a_run_without_any_agency_loses() -> None:
    assert enriched(0.8, 0.0, 0.25) == pytest.approx(0.6)
    assert enriched(0.8, 0.5, 0.25) == pytest.approx(0.7)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.01, 1.01, True])
def test_what_is_no_fraction_is_refused(bad: float) -> None:
    for values in ((bad, 0.5, 0.5), (0.5, bad, 0.5), (0.5, 0.5, bad)):
        with pytest.raises(ScoringError):
            enriched(*values)
