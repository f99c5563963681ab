from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.provenance.passages import (
    CLOSE,
    MAX_MENTIONS,
    Passage,
    phrase,
    source_literals,
    word_stream,
)

NAME = "find_product"


def test_json_urls_and_sentences_read_the_same() -> None:
    shapes = [
        '{"name": "find_product", "q": "Caf\\u00e9 1.5L"}',
        "name=find_product&q=caf%C3%A9%201.5l",
        "name FIND_PRODUCT (q: 'café 1.5L')",
    ]
    assert {word_stream(shape) for shape in shapes} == {" name find_product q café 1.5l "}


def test_close_is_near_the_name_and_no_farther() -> None:
    far = "x " * CLOSE
    assert Passage("find_product: red shoes").close(NAME, ["red shoes"])
    assert Passage("red shoes, with find_product").close(NAME, ["red shoes"])
    assert not Passage(f"find_product {far} red shoes").close(NAME, ["red shoes"])
    assert not Passage("find_product: red shoes").close(NAME, ["red shoe"])
    assert not Passage("find_product: red").close(NAME, ["red", "blue"])
    assert not Passage("find_products_in_same_shop red").close(NAME, ["red"])


def test_a_flood_of_mentions_hides_nothing_and_proves_nothing() -> None:
    flood = Passage("find_product and so on. " * (MAX_MENTIONS + 1) + "x " * 5000 + "red shoes")
    assert list(flood.windows(NAME, ["red shoes"])) == [flood.words]
    assert flood.states(NAME, "q", "red shoes")
    assert not flood.close(NAME, ["red shoes"])


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("find_product(q='red shoes')", True),
        ("find_product red shoes", True),
        ('"find_product", "parameters": {"page": 1, "q": "red shoes"}', True),
        ("Use find_product. Query: red shoes", False),
        ("find_product\nred shoes", False),
    ],
)
def test_a_stated_call_is_a_name_and_its_argument(text: str, stated: bool) -> None:
    assert Passage(text).states(NAME, "q", "red shoes") is stated


def test_a_mask_blots_out_whole_copies() -> None:
    assert "shoes" not in Passage("want red shoes now").masked("red shoes").words
    assert "reds" in Passage("want reds now").masked("red").words


@pytest.mark.parametrize("source", [None, b"def (", b"\x00", b"x=" + b"(" * 9000, b"\xff"])
def test_a_source_that_does_not_parse_has_no_literals(source: bytes | None) -> None:
    assert source_literals(source) == ""


def test_literals_are_the_constants_of_a_source() -> None:
    text = source_literals(b"A = 'one'\nB = f'two {A} three'\nC = b'four'\nD = '\\d'  # five\n")
    assert [word for word in ("one", "two ", " three", "four", "\\d", "five") if word in text] == [
        "one",
        "two ",
        " three",
        "four",
        "\\d",
    ]


@given(st.text())
def test_any_text_becomes_words(text: str) -> None:
    words = word_stream(text)
    assert words.startswith(" ")
    assert words.endswith(" ")
    assert phrase(text) == phrase(text).strip()
