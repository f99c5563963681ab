"""Wishes for several things are split in the ways shoppers list them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.standin.splitting import split_items


@pytest.mark.parametrize(
    ("wish", "items"),
    [
        (
            "Find a shop that sells: (1) a tin drum in red; (2) a flute made of wood, in C. "
            "The shop should sell all of them.",
            ["a tin drum in red", "a flute made of wood, in C"],
        ),
        (
            "Looking for a shop with these items: First, a tin drum, size 10 inch. Second, a "
            "flute with a case. Lastly, a brass bell. Please show shops that have all of these.",
            ["a tin drum, size 10 inch", "a flute with a case", "a brass bell"],
        ),
        (
            "Find a shop offering a tin drum with a strap; a flute, wooden, with a case; and a "
            "brass bell",
            ["a tin drum with a strap", "a flute, wooden, with a case", "a brass bell"],
        ),
        (
            "I'm looking for a tin drum with a red strap. Also, I need a flute. Lastly, show me "
            "a brass bell with a plain design.",
            ["a tin drum with a red strap", "a flute", "a brass bell with a plain design"],
        ),
        (
            "Find shops offering both a tin drum in black and white, and a flute that is old",
            ["a tin drum in black and white", "a flute that is old"],
        ),
        (
            "Looking for a tin drum, a wooden flute, and a brass bell",
            ["a tin drum", "a wooden flute", "a brass bell"],
        ),
        (
            "Show me drum sticks made of oak and also flute cases with a zip",
            ["drum sticks made of oak", "flute cases with a zip"],
        ),
        ("Show me a tin drum", ["a tin drum"]),
    ],
)
def test_a_wish_is_split_into_its_things_in_order(wish: str, items: list[str]) -> None:
    assert split_items(wish) == items


def test_a_price_band_does_not_split() -> None:
    items = split_items("a drum priced between 20 and 30 PHP, and a bell from 5 to 9 pesos")
    assert len(items) == 2
    assert "20 and 30" in items[0]


def test_a_later_sentence_about_an_item_is_joined_to_it() -> None:
    drum, flute = split_items(
        "Find a shop offering both a drum kit and a silver flute. The flute should cost over 90 "
        "pesos, while the drum kit should be blue."
    )
    assert "blue" in drum
    assert "90" in flute


def test_one_and_another_get_the_name_of_the_thing() -> None:
    items = split_items("Looking for garden gnomes: one in red, and another with a lantern")
    assert len(items) == 2
    assert all("gnome" in item for item in items)


@given(
    st.lists(
        st.sampled_from(["abc", ",;.()", "and", "First", "Second", "[⟦0⟧]", "1)", "'x'", "php"])
    )
)
def test_no_text_breaks_it(parts: list[str]) -> None:
    assert isinstance(split_items(" ".join(parts)), list)
