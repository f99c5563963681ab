"""Requests are alike when they ask for the same, not when they use the same template."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from arena.problems.likeness import (
    Neighbours,
    likeness,
    listing_bag,
    sketch_of,
    wording_bag,
)
from scoring.types import PriceBand
from tests.unit.arena.problems.leaks import asked, wanted, with_voucher

BAGS = st.dictionaries(
    st.sampled_from(
        [
            "steel",
            "stele",
            "bottle",
            "botle",
            "bottles",
            "500ml",
            "a12",
            "red",
            "lamp",
            "lamps",
            "garden",
        ]
    ),
    st.sampled_from((1.0, 2.0, 4.0)),
)


@given(BAGS, BAGS)
def test_likeness_is_symmetric_and_a_share(one: dict[str, float], other: dict[str, float]) -> None:
    assert likeness(one, other) == likeness(other, one)
    assert 0.0 <= likeness(one, other) <= 1.0


@given(BAGS)
def test_a_bag_is_like_itself_or_says_too_little(bag: dict[str, float]) -> None:
    assert likeness(bag, dict(reversed(bag.items()))) == (1.0 if sum(bag.values()) >= 3 else 0.0)


def test_a_misspelt_word_counts_as_the_word() -> None:
    one = {"stainless": 1.0, "bottle": 1.0, "insulated": 2.0}
    assert likeness(one, {"stainles": 1.0, "bottle": 1.0, "insulated": 2.0}) == 1.0
    assert likeness(one, {"garden": 1.0, "bottle": 1.0, "hose": 2.0}) < 0.3


def test_a_template_makes_nobody_alike() -> None:
    template = (
        "I'm looking for {}, with free shipping and cash on delivery, priced below 500 pesos."
    )
    band = PriceBand(None, 500.0)
    texts = ("a wooden coin bank shaped like a pig", "brake pads for a yamaha sniper 150")
    one, other = (
        wording_bag(asked(str(i), template.format(text), wanted(str(i), text, price=band)))
        for i, text in enumerate(texts)
    )
    assert likeness(one, other) == 0.0
    assert not {"free", "ship", "price", "500", "peso", "look"} & (one.keys() | other.keys())


def test_the_rules_of_a_voucher_are_not_what_is_asked_for() -> None:
    problem = asked("1", "A steel bottle of 500 ml.", wanted("1", "steel bottle"))
    told = (
        "\n\nMy budget is only `425`, but I have a voucher with the following rules:\n"
        "1. The voucher applies to all products.\n"
        "2. It is valid only when the total price of the products exceeds `170`.\n"
        "3. It provides a fixed discount of `34`."
    )
    longer = with_voucher(asked("1", problem.query + told, *problem.rewards))
    assert wording_bag(longer) == wording_bag(problem)


def test_constraints_weigh_more_than_words_and_numbers_more_than_either() -> None:
    bag = listing_bag(wanted("1", "Garden hose XT500 green", options={"length": "15m"}))
    assert bag["hose"] == 1.0
    assert bag["xt500"] == 2.0
    assert bag["15000mm"] == 4.0


def test_brands_do_not_count() -> None:
    reward = wanted("1", "Kestrelle garden hose", attributes={"brand": "Kestrelle"})
    assert listing_bag(reward).keys() == {"garden", "hose"}


def test_like_bags_find_each_other_and_others_mostly_do_not() -> None:
    near = Neighbours()
    bags = [{f"word{i}-{j}": 1.0 for j in range(12)} for i in range(200)]
    for i, bag in enumerate(bags):
        sketch = sketch_of(bag)
        assert sketch is not None
        near.add(i, sketch)
    for i, bag in enumerate(bags):
        changed = sketch_of({**dict(list(bag.items())[:11]), "other": 1.0})
        assert changed is not None
        assert i in near.find(changed)
        assert len(near.find(changed)) < 10


def test_a_bag_that_says_too_little_has_no_sketch() -> None:
    assert sketch_of({}) is None
    assert sketch_of({"mug": 1.0, "red": 1.0}) is None


def test_misspelt_words_are_paired_alike_from_either_side() -> None:
    one = {"steel": 2.0, "bottleab": 1.0, "bottles": 2.0}
    other = {"steel": 2.0, "bottle": 1.0}
    assert likeness(one, other) == likeness(other, one) > 0.5
