"""Words, sizes, quantities and numbers come to one form, and different ones do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.problems.normal_form import MAX_TEXT, tokens


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.5kg", "1,500 g"),
        ("1.5 kilos", "1500 grams"),
        ("1.8L", "1800 ml"),
        ("12-inch", "305 mm"),
        ("15.6 Inch", "39.6cm"),
        ("1/2 inch", "12.7mm"),
        ("100x130cm", "1000mm 1.3 m"),
        ("1-3 years", "12-36 months"),
        ("two pieces", "2pcs"),
        ("pack of 10", "10 pcs"),
        ("Size INT: XL", "size extra large"),
        ("eu:39", "EU 39"),
        ("Grey  T-SHIRT", "gray t shirt"),
        ("USB-C cable", "usb c cables"),
        ("women's shoes", "ladies shoes"),
        ("ｆｕｌｌ ｗｉｄｔｈ", "full-width"),
    ],
)
def test_the_same_in_other_words_is_one_form(one: str, other: str) -> None:
    assert tokens(one) == tokens(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("1kg", "1 g"), ("500ml", "5l"), ("xl", "xxl"), ("red", "blue"), ("eu39", "eu40"), ("2", "3")],
)
def test_different_things_stay_different(one: str, other: str) -> None:
    assert tokens(one) != tokens(other)


def test_in_is_a_word_and_an_inch_only_when_it_is_joined_to_its_number() -> None:
    assert tokens("size 39 in black") == ("size", "39", "in", "black")
    assert tokens("12in pipe") == tokens("12 inch pipe")


@given(st.text(max_size=300))
def test_any_text_is_read_and_reading_is_repeatable(text: str) -> None:
    found = tokens(text)
    assert tokens(text) == found
    assert all(found)


def test_a_text_without_end_is_cut() -> None:
    assert len(tokens("ab " * MAX_TEXT)) <= MAX_TEXT
