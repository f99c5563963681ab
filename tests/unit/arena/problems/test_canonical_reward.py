"""The canonical reward forgets order, case, unit, shop and brand, and nothing that matters."""

from __future__ import annotations

from arena.problems.canonical_reward import Stated, canonical, canonical_whole, constraints_of
from scoring.types import PriceBand, Reward
from tests.unit.arena.problems.leaks import wanted

BELT = wanted(
    "1",
    "Mens belt",
    options={"color_family": "Coffee Brown", "size": "waist: 44", "weight": "1.5kg"},
    attributes={"belt_material": "Leather", "fa_pattern": "plain", "belt_style": "Western rodeo"},
    service=("COD",),
)
SAME = Reward(
    "2",
    title=("Another shop's strap",),
    sku_options=({"weight": "1500 g", "Size": "WAIST:44", "color": "brown coffee"},),
    attributes=(
        {"belt_style": ("western  rodeo",), "brand": ("Otherbrand",)},
        {"pattern": ("Plain",), "material_filter": ("leather",)},
    ),
    service=("COD",),
    price=(PriceBand(100.0, None),),
)


def test_ids_brands_order_case_units_and_prices_do_not_count() -> None:
    assert canonical(BELT) == canonical(SAME)
    assert canonical(BELT).specific


def test_another_value_is_another_reward() -> None:
    other = wanted("3", "Mens belt", options={"color_family": "black"})
    assert canonical(other) != canonical(wanted("3", "", options={"color_family": "white"}))


def test_an_option_and_an_attribute_are_one_to_the_scorer_and_here() -> None:
    option = wanted("1", "", options={"color_family": "black"})
    attribute = wanted("2", "", attributes={"color": "Black"})
    assert constraints_of(option) == constraints_of(attribute)


def test_what_half_a_catalogue_satisfies_is_not_specific() -> None:
    for weak in (
        wanted("1", "", service=("freeShipping",)),
        wanted("1", "", attributes={"fa_pattern": "plain"}, service=("COD", "official")),
        wanted("1", "", options={"color": "black", "size": "int:l"}),
        Reward("1"),
    ):
        assert not canonical(weak).specific


def test_the_whole_reward_does_not_depend_on_the_order_of_its_products() -> None:
    other = wanted("9", "", options={"color": "red"})
    assert canonical_whole((BELT, other)) == canonical_whole((other, SAME))
    assert canonical_whole((BELT,)) == canonical(BELT)


def test_plain_colors_and_letter_sizes_exclude_each_other_and_shades_do_not() -> None:
    def stated(**options: str) -> Stated:
        return Stated.of(wanted("1", "", options=options))

    assert stated(color_family="red").excludes(stated(color="black"))
    assert stated(size="int:s").excludes(stated(size="extra large"))
    assert not stated(color="navy blue").excludes(stated(color="blue"))
    assert not stated(color="red").excludes(stated(color="crimson"))
    assert not stated(color="red").excludes(stated(size="l"))
