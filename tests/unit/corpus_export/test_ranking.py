"""Each ranking signal and each tie rule, by candidates made for it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_export.ranking import (
    Candidate,
    Placed,
    RankingSettings,
    rank_problem,
    shape_distance,
)
from corpus_export.types import Features, Reason
from tests.unit.corpus_export.builders import features_like

SEARCH, VIEW, SHOP = "find_product", "view_product_information", "find_products_in_same_shop"
END = ("recommend_product", "terminate")
ONE = (SEARCH, *END)
OTHER = (SHOP, VIEW, VIEW, *END)


def candidate(key: str, axis: str = "A", features: Features | None = None) -> Candidate:
    return Candidate(key, axis, features or features_like())


def kept(*candidates: Candidate, settings: RankingSettings | None = None) -> list[str]:
    placed = rank_problem(candidates, "product", settings)
    return [p.candidate.key for p in placed if p.kept]


def best(better: Features, worse: Features) -> bool:
    """Whether `better` wins with either hash."""
    only = RankingSettings(keep=1)
    return (
        kept(candidate("a", features=better), candidate("b", features=worse), settings=only)
        == ["a"]
    ) and (
        kept(candidate("b", features=better), candidate("a", features=worse), settings=only)
        == ["b"]
    )


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (features_like(depth=5), features_like(depth=4)),
        (features_like(queries=3), features_like(queries=2)),
        (features_like(verified=True), features_like(verified=False)),
        (features_like(regularity=0.9), features_like(regularity=0.5)),
    ],
    ids=["depth", "queries", "verified", "regularity"],
)
def test_each_signal_ranks_where_the_others_are_equal(better: Features, worse: Features) -> None:
    assert best(better, worse)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (features_like(depth=5, queries=1), features_like(depth=4, queries=6)),
        (
            features_like(queries=3, verified=False),
            features_like(queries=2, verified=True),
        ),
        (
            features_like(verified=True, regularity=0.1),
            features_like(verified=False, regularity=1.0),
        ),
    ],
)
def test_the_signals_come_one_after_another_in_the_papers_order(
    better: Features, worse: Features
) -> None:
    assert best(better, worse)


@pytest.mark.parametrize(
    ("padded", "full"),
    [
        (features_like(depth=28), features_like(depth=RankingSettings().max_depth)),
        (features_like(queries=26), features_like(queries=RankingSettings().max_queries)),
    ],
    ids=["depth", "queries"],
)
def test_beyond_its_cap_a_signal_wins_nothing(padded: Features, full: Features) -> None:
    assert kept(candidate("b", features=padded), candidate("a", features=full)) == ["a"]


def test_a_second_is_kept_when_its_tools_differ_enough() -> None:
    first = candidate("a", features=features_like(depth=6, shape=ONE))
    alike = candidate("b", features=features_like(depth=5, shape=ONE))
    differs = candidate("c", features=features_like(depth=2, shape=OTHER))
    assert kept(first, alike, differs) == ["a", "c"]
    assert kept(first, alike) == ["a"]


def test_how_much_is_enough_is_a_setting() -> None:
    first = candidate("a", features=features_like(depth=6, shape=(SEARCH, VIEW, *END)))
    near = candidate("b", features=features_like(depth=5, shape=(SEARCH, SEARCH, *END)))
    assert shape_distance((SEARCH, VIEW, *END), (SEARCH, SEARCH, *END)) == 0.25
    assert kept(first, near, settings=RankingSettings(min_distance=0.25)) == ["a", "b"]
    assert kept(first, near, settings=RankingSettings(min_distance=0.26)) == ["a"]


def test_a_tie_goes_to_the_tools_that_differ_most_from_what_is_kept() -> None:
    first = candidate("z", features=features_like(depth=6, shape=ONE))
    near = candidate("a", features=features_like(shape=(VIEW, *ONE)))
    far = candidate("b", features=features_like(shape=OTHER))
    assert kept(first, near, far, settings=RankingSettings(min_distance=0.1)) == ["z", "b"]


def test_quality_comes_before_difference() -> None:
    first = candidate("z", features=features_like(depth=6, shape=ONE))
    near = candidate("a", features=features_like(depth=5, shape=(VIEW, *ONE)))
    far = candidate("b", features=features_like(depth=4, shape=OTHER))
    assert kept(first, near, far, settings=RankingSettings(min_distance=0.1)) == ["z", "a"]


def test_the_last_tie_goes_to_the_smaller_record_hash() -> None:
    assert kept(candidate("b"), candidate("a"), candidate("c")) == ["a"]


def test_a_bucket_may_keep_more_or_fewer() -> None:
    pair = (
        candidate("a", features=features_like(depth=6, shape=ONE)),
        candidate("b", features=features_like(shape=OTHER)),
    )
    settings = RankingSettings(keep=2, keep_in_bucket={"voucher": 1})
    assert [p.kept for p in rank_problem(pair, "voucher", settings)] == [True, False]
    assert [p.kept for p in rank_problem(pair, "shop", settings)] == [True, True]


def test_the_axes_are_ranked_apart() -> None:
    placed = rank_problem([candidate("a", "B"), candidate("b", "A"), candidate("c", "B")], "shop")
    assert [(p.candidate.axis, p.place, p.kept) for p in placed] == [
        ("A", 1, True),
        ("B", 1, True),
        ("B", 2, False),
    ]


def test_what_is_not_kept_has_a_reason() -> None:
    features = [features_like(depth=6, shape=ONE), features_like(shape=OTHER), features_like()]
    placed = rank_problem(
        [candidate(k, features=f) for k, f in zip("abc", features, strict=True)], ""
    )
    assert [p.reject.reason if p.reject else None for p in placed] == [
        None,
        None,
        Reason.RANKED_OUT,
    ]
    assert placed[-1].reject is not None
    assert placed[-1].reject.detail == "2 better ones kept"
    alike = rank_problem([candidate("a"), candidate("b")], "")[-1]
    assert alike.reject is not None
    assert "like those of a kept one" in alike.reject.detail


FEATURES = st.builds(
    features_like,
    depth=st.integers(0, 3),
    queries=st.integers(0, 2),
    verified=st.booleans(),
    regularity=st.sampled_from([0.5, 1.0]),
    shape=st.lists(st.sampled_from([SEARCH, VIEW, SHOP, *END]), max_size=5),
)
CANDIDATES = st.lists(st.tuples(st.sampled_from("AB"), FEATURES), max_size=12).map(
    lambda made: [Candidate(f"{n:02}", axis, f) for n, (axis, f) in enumerate(made)]
)


@given(CANDIDATES, st.integers(0, 3), st.randoms(use_true_random=False))
def test_the_order_of_the_input_decides_nothing(
    candidates: list[Candidate], keep: int, shuffle: random.Random
) -> None:
    settings = RankingSettings(keep=keep)
    placed = rank_problem(candidates, "shop", settings)
    again = rank_problem(shuffle.sample(candidates, len(candidates)), "shop", settings)
    assert placed == again
    assert sorted(p.candidate.key for p in placed) == [c.key for c in candidates]
    for axis in "AB":
        of_axis: list[Placed] = [p for p in placed if p.candidate.axis == axis]
        assert [p.place for p in of_axis] == list(range(1, len(of_axis) + 1))
        kept_here = [p.candidate.features.shape for p in of_axis if p.kept]
        assert len(kept_here) <= keep
        assert len(kept_here) == min(keep, 1) or not of_axis or len(kept_here) > 1
        assert all(
            shape_distance(one, other) >= settings.min_distance
            for i, one in enumerate(kept_here)
            for other in kept_here[:i]
        )
