"""The margin decays from its start to its floor, and can always be reached."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.exceptions import SeasonError
from arena.season.promotion import beats, margin, required_score
from arena.season.rules import SeasonRules
from tests.unit.arena.season.driving import START

RULES = SeasonRules()
ages = st.timedeltas(timedelta(0), timedelta(days=4000))


@pytest.mark.parametrize(
    ("days", "expected"), [(0, 0.10), (7, 0.055), (14, 0.0325), (28, 0.015625), (365, 0.01)]
)
def test_it_halves_every_week_above_its_floor(days: int, expected: float) -> None:
    assert margin(START, START + timedelta(days=days), RULES) == pytest.approx(expected)


@given(ages, ages)
def test_it_only_falls_and_stays_above_its_floor(one: timedelta, two: timedelta) -> None:
    younger, older = sorted((one, two))
    at = [margin(START, START + age, RULES) for age in (younger, older)]
    assert RULES.margin_floor <= at[1] <= at[0] <= RULES.margin_initial


def test_a_title_of_the_future_is_refused() -> None:
    with pytest.raises(SeasonError) as refused:
        margin(START, START - timedelta(seconds=1), RULES)
    assert refused.value.code == "season.clock_went_back"


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_required_score_is_within_reach(champion: float, share: float) -> None:
    assert champion <= required_score(champion, share) <= 1.0 + 1e-12


@given(st.floats(0, 1), st.floats(0, 1))
def test_an_equal_score_never_wins(score: float, share: float) -> None:
    assert not beats(score, score, share)


def test_the_margin_is_a_share_of_the_room_above() -> None:
    assert required_score(0.5, 0.1) == pytest.approx(0.55)
    assert beats(0.56, 0.5, 0.1)
    assert not beats(0.54, 0.5, 0.1)
    assert not beats(1.0, 1.0, 0.0)
