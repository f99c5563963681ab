"""The weight vector is valid for every input, and burns what it cannot pay."""

from __future__ import annotations

from typing import TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.exceptions import ScoringError
from scoring.weights import U16_MAX, Finisher, ranking, weight_vector


def race(count: int, *, first: int = 0) -> list[Finisher]:
    """Finishers hk0, hk1 …; the earlier the better."""
    return [Finisher(f"hk{i}", f"v{i}", 1.0 - i / 1000) for i in range(first, first + count)]


HOTKEYS = [f"hk{i}" for i in range(20)]


class Shares(TypedDict):
    top_share: float
    burn_share: float


@st.composite
def finishers(draw: st.DrawFn) -> list[Finisher]:
    scores = draw(st.lists(st.floats(0, 1), max_size=40))
    names = st.sampled_from([*HOTKEYS, "gone1", "gone2"])
    return [Finisher(draw(names), f"v{i}", score) for i, score in enumerate(scores)]


@given(
    finishers(),
    st.lists(st.sampled_from(HOTKEYS), min_size=1, max_size=20, unique=True),
    st.floats(0, 1),
)
def test_the_vector_is_always_a_valid_one_or_the_burn_is_too_small(
    raced: list[Finisher], hotkeys: list[str], top_share: float
) -> None:
    shares = Shares(top_share=top_share, burn_share=1 - top_share)
    try:
        weights = weight_vector(raced, hotkeys, **shares)
    except ScoringError:
        with pytest.raises(ScoringError, match="burn share"):
            weight_vector(raced, hotkeys, **shares)
        assert top_share > 0.5
        return
    assert len(weights) == len(hotkeys)
    assert all(type(w) is int and 0 <= w <= U16_MAX for w in weights)
    assert any(weights)
    paid = {f.miner_hotkey for f in ranking(raced)[: len(raced) // 2]}
    for uid, weight in enumerate(weights):
        assert weight == 0 or uid == 0 or hotkeys[uid] in paid


def test_too_few_finishers_burn_all() -> None:
    for raced in ([], race(1, first=3)):
        weights = weight_vector(raced, HOTKEYS, top_share=0.25, burn_share=0.75)
        assert weights == (U16_MAX, *[0] * 19)


def test_ties_are_broken_by_the_version_id() -> None:
    a, b = Finisher("hk1", "b", 0.5), Finisher("hk2", "a", 0.5)
    assert ranking([a, b]) == ranking([b, a]) == [b, a]


def test_a_top_miner_at_uid_0_gets_the_sum_and_stays_in_u16() -> None:
    weights = weight_vector(race(4), HOTKEYS, top_share=0.25, burn_share=0.75)
    assert weights[:3] == (U16_MAX, 1, 0)


def test_a_tail_miner_at_uid_0_loses_its_units_to_the_burn() -> None:
    raced = race(8)
    hotkeys = ["hk1", "hk0", "hk2", "hk3"]
    weights = weight_vector(raced, hotkeys, top_share=0.25, burn_share=0.75)
    assert weights == (U16_MAX, round(0.25 * (U16_MAX + 6) / 0.75), 2, 1)


def test_a_top_miner_that_left_is_not_replaced() -> None:
    weights = weight_vector(race(4), HOTKEYS[1:], top_share=0.25, burn_share=0.75)
    assert weights[0] == U16_MAX
    assert sum(weights[1:]) == 0  # hk1, the only tail miner, stands at uid 0 here


def test_nothing_left_standing_burns_all() -> None:
    weights = weight_vector(race(2), ["other"], top_share=1.0, burn_share=0.0)
    assert weights == (U16_MAX,)


def test_equal_shares_with_a_tail_stay_in_u16() -> None:
    weights = weight_vector(race(8, first=1), HOTKEYS, top_share=0.5, burn_share=0.5)
    assert weights[:2] == (U16_MAX, U16_MAX)


def test_the_input_order_does_not_matter() -> None:
    raced = race(9, first=1)
    shares = Shares(top_share=0.9, burn_share=0.1)
    assert weight_vector(raced, HOTKEYS, **shares) == weight_vector(
        list(reversed(raced)), HOTKEYS, **shares
    )


@pytest.mark.parametrize(
    ("top", "burn"), [(-0.1, 1.1), (float("nan"), 0.5), (0.5, float("inf")), (0.5, 0.4), (1.0, 1.0)]
)
def test_shares_that_are_none_are_refused(top: float, burn: float) -> None:
    with pytest.raises(ScoringError):
        weight_vector(race(4), HOTKEYS, top_share=top, burn_share=burn)


def test_an_empty_metagraph_and_a_score_that_is_no_number_are_refused() -> None:
    with pytest.raises(ScoringError, match="metagraph"):
        weight_vector(race(4), [], top_share=0.5, burn_share=0.5)
    with pytest.raises(ScoringError, match="v9"):
        weight_vector([Finisher("hk1", "v9", float("nan"))], HOTKEYS, top_share=0.5, burn_share=0.5)


def test_a_champion_stands_before_better_scores_while_it_finished() -> None:
    raced = race(4, first=1)
    protected = weight_vector(raced, HOTKEYS, top_share=0.25, burn_share=0.75, champion="v4")
    plain = weight_vector(raced, HOTKEYS, top_share=0.25, burn_share=0.75)
    absent = weight_vector(raced, HOTKEYS, top_share=0.25, burn_share=0.75, champion="v9")
    assert protected[4] == plain[1] > 1
    assert protected[1] == plain[2] == 1
    assert absent == plain
