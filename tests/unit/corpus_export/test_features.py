"""Each signal that ranks, by trajectories made for it."""

from __future__ import annotations

import json

import pytest

from corpus_export.features import features, turn_shape
from corpus_export.tokens import open_tokens
from corpus_export.types import Features
from tests.unit.corpus_export.builders import (
    GOOD,
    Called,
    Move,
    NativeAgent,
    find,
    recommend,
    terminate,
    trajectory,
    trajectory_of,
    view,
)

DONE = (recommend(1), terminate())


def of(*moves: Move) -> Features:
    return features(trajectory(*moves), open_tokens(None))


def check(product_id: int) -> Called:
    return Called("check_product_match", {"product_id": product_id, "requirements": "{}"}, {})


def test_depth_is_turns_that_think_and_call() -> None:
    moves = (
        Move("A thought.", (find("a"),)),
        Move("", (find("b"),)),
        Move("Only a thought."),
        Move("", (find("c"),), "Words beside a call."),
        Move("A thought.", DONE),
    )
    assert of(*moves).depth == 3


@pytest.mark.parametrize(
    ("calls", "count"),
    [
        ((find("blue bag"), find("Blue  BAG"), find("bag blue"), find("blue+bag")), 1),
        ((find("blue bag"), find("blue bag", page=2), find("blue bag", price="-9")), 1),
        ((find("blue bag"), find("red bag")), 2),
        ((find("a"), view(1), find("")), 1),
        (
            (
                Called(
                    "find_products_in_same_shop",
                    {"product_queries": json.dumps([{"q": "a"}, {"q": "b"}, {"q": "A"}])},
                    {},
                ),
                find("a"),
            ),
            2,
        ),
    ],
)
def test_queries_are_distinct_by_their_words(calls: tuple[Called, ...], count: int) -> None:
    assert of(Move("x", calls), Move("x", DONE)).queries == count


@pytest.mark.parametrize(
    ("before", "verified"),
    [
        ((view(1, 3), view(2)), True),
        ((check(1), check(2)), True),
        ((view(1),), False),
        ((find("x", 1, 2),), False),
    ],
)
def test_verified_means_each_recommended_product_was_looked_at_before(
    before: tuple[Called, ...], verified: bool
) -> None:
    assert of(Move("x", before), Move("x", (recommend(1, 2),))).verified is verified


def test_a_look_after_or_beside_the_recommendation_verifies_nothing() -> None:
    assert not of(Move("x", (view(1), recommend(1))), Move("x", (view(1),))).verified
    assert not of(Move("x", (view(1),))).verified


def test_regularity_is_the_share_of_turns_of_the_commonest_shape() -> None:
    steady = [Move("x", (find("a"),)) for _ in range(3)]
    assert of(*steady).regularity == 1.0
    assert of(*steady, Move("x", DONE)).regularity == 0.75
    assert of(*steady, Move("", (find("a"),)), Move("x"), Move("x", DONE)).regularity == 0.5


def test_a_turns_shape_is_its_parts() -> None:
    moves = (Move("x", (find("a"),)), Move("x", DONE, "y"), Move("", (), "y"), Move("", (view(1),)))
    assert [turn_shape(t) for t in trajectory(*moves).turns] == ["TC", "TWM", "W", "C"]


def test_the_shape_is_the_sequence_of_tools() -> None:
    found = of(*GOOD)
    assert found.shape == (
        "find_product",
        "view_product_information",
        "recommend_product",
        "terminate",
    )
    assert (found.turns, found.calls) == (4, 4)
    assert found.tokens > 500


def test_both_dialects_and_the_script_have_the_same_features() -> None:
    made = features(trajectory_of(NativeAgent().play(GOOD)), open_tokens(None))
    assert (made.depth, made.queries, made.verified, made.regularity) == (4, 1, True, 0.75)


def test_arguments_that_do_not_parse_search_and_verify_nothing() -> None:
    odd = Called("find_product", {"q": ["a", {"b": 1}]}, [])
    assert of(Move("x", (odd,)), Move("x", DONE)).queries == 0
