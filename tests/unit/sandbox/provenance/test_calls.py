from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox.provenance.calls import CHECK, SAME_SHOP, VOUCHER, normalise

ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.sampled_from(["[1]", '{"a": "1.0"}', "%2541", "a+b", "1.50", " ", "[[", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text() | st.integers() | st.sampled_from(["q", "page"]), inner)
        | st.sets(st.integers(), max_size=2)
    ),
    max_leaves=12,
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["q", "page", "product_ids", "service", "requirements", "price", "x"]), ANYTHING
)


def same(name: str, one: Any, other: Any) -> bool:
    key = normalise(name, one).key
    return key is not None and key == normalise(name, other).key


@pytest.mark.parametrize(
    ("name", "emitted", "dispatched"),
    [
        ("find_product", {"q": "bag", "page": 1, "price": None}, {"q": "bag"}),
        ("find_product", {"q": "bag", "sort": "default", "service": "default"}, {"q": "bag"}),
        ("find_product", {"q": "bag", "page": 2}, {"q": "bag", "page": "2"}),
        ("find_product", {"q": "men's bag"}, {"q": "men%27s+bag"}),
        ("find_product", {"q": "men's bag"}, {"q": "men%2527s%2Bbag"}),
        ("find_product", {"q": "C++ book"}, {"q": "C%2B%2B+book"}),
        ("find_product", {"service": ["COD", "official"]}, {"service": "COD,official"}),
        ("view_product_information", {"product_ids": [1, "2"]}, {"product_ids": "1, 2"}),
        ("view_product_information", {"product_ids": '["1", "2"]'}, {"product_ids": "1,2"}),
        (
            CHECK,
            {"product_id": 1, "requirements": {"a": 1}},
            {"product_id": "1", "requirements": '{"a":"1"}'},
        ),
        (
            SAME_SHOP,
            {"product_queries": [{"q": "a", "price": None}]},
            {"product_queries": '[{"q": "a"}]'},
        ),
        (VOUCHER, {"product_prices": [10.0, 5.50], "cap": 0}, {"product_prices": "10,5.5"}),
        ("terminate", {}, {"status": "success"}),
    ],
)
def test_the_same_call_on_its_way_to_the_wire(name: str, emitted: Any, dispatched: Any) -> None:
    assert same(name, emitted, dispatched)


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("find_product", {"q": "bag"}, {"q": "Bag"}),
        ("find_product", {"q": "bag"}, {"q": "bag", "page": 2}),
        ("find_product", {"q": "bag"}, {"q": "ba"}),
        ("find_product", {"q": "a"}, {"q": quote(quote(quote("a b")))}),
        ("view_product_information", {"product_ids": "1,2"}, {"product_ids": "2,1"}),
        ("recommend_product", {"product_ids": "1,2"}, {"product_ids": "1"}),
        ("terminate", {"status": "failure"}, {}),
    ],
)
def test_different_calls(name: str, one: Any, other: Any) -> None:
    assert not same(name, one, other)


def test_another_tool_with_the_same_arguments_is_another_call() -> None:
    assert normalise("a", {}).key != normalise("b", {}).key


@pytest.mark.parametrize(
    "unreadable", [None, [], "x", {"a": {1, 2}}, {"a": b"x"}, json.loads("[" * 60 + "]" * 60)]
)
def test_what_cannot_be_compared_equals_nothing(unreadable: Any) -> None:
    given_ = {"x": unreadable} if isinstance(unreadable, list) and unreadable else unreadable
    assert normalise("find_product", given_).key is None


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(["find_product", "view_product_information", "other"]), ARGUMENTS)
def test_normalising_is_idempotent_and_never_raises(name: str, arguments: Any) -> None:
    once = normalise(name, arguments)
    if once.key is not None:
        again = normalise(once.name, once.arguments)
        assert again.arguments == once.arguments
        assert again.key == once.key


@given(st.text(st.characters(categories=["L", "N", "Zs", "P"]), max_size=60))
def test_a_query_survives_being_quoted_once_or_twice(q: str) -> None:
    plain = normalise("find_product", {"q": q}).key
    if "%" not in q and "+" not in q:
        assert normalise("find_product", {"q": quote_plus(q)}).key == plain
        assert normalise("find_product", {"q": quote_plus(quote_plus(q))}).key == plain


def test_huge_numbers_and_texts_are_compared() -> None:
    assert same("find_product", {"q": 10**9000}, {"q": 10**9000})
    assert same("find_product", {"q": "x" * 10_000_000}, {"q": "x" * 10_000_000})
