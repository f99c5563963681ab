"""What shoppers and sellers write is made comparable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.standin.words import keywords, telling, words


@pytest.mark.parametrize(
    ("asked", "sold"),
    [
        ("grey", "gray"),
        ("large", "int:L"),
        ("extra large", "XL"),
        ("500 ml", "500ml"),
        ("stripes", "striped"),
        ("women's", "Ladies"),
        ("12 inches", '12"'),
        ("multi-pack", "multipack"),
        ("pure cotton", "100% cotton"),
        ("water-resistant", "waterproof"),
    ],
)
def test_two_ways_of_writing_meet(asked: str, sold: str) -> None:
    assert set(words(asked)) <= set(words(sold))


def test_words_of_asking_tell_nothing() -> None:
    assert telling("Please show me the red drums with a nice price") == {
        "red": "red",
        "drum": "drums",
        "nic": "nice",
    }


def test_keywords_keep_the_words_as_written() -> None:
    assert keywords("I'm looking for a (red) T-shirt, size XL!") == "red T-shirt XL"


@given(st.text(max_size=200))
def test_any_text_has_words(text: str) -> None:
    assert all(words(text))
    assert len(keywords(text, 5).split()) <= 5
