from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.catalog.filters import (
    arrange,
    clean_query,
    one_page,
    price_range,
    read_filters,
    service_bits,
)

INF = math.inf


@pytest.mark.parametrize(
    ("price", "bounds"),
    [
        ("10-20", (10, 20)),
        ("10-", (10, INF)),
        ("-20", (-INF, 20)),
        ("1.5-2.5", (1.5, 2.5)),
        (" 1 - 2 ", (1, 2)),
        ("5-1", (5, 1)),
        ("-", (-INF, INF)),
        ("", (-INF, INF)),
        (None, (-INF, INF)),
        ("abc", (-INF, INF)),
        ("a-b", (-INF, INF)),
        ("10", (-INF, INF)),
        ("1-2-3", (-INF, INF)),
        ("nan-5", (-INF, INF)),
    ],
)
def test_a_price_that_does_not_parse_as_two_parts_filters_nothing(
    price: str | None, bounds: tuple[float, float]
) -> None:
    assert price_range(price) == bounds


@given(st.text(max_size=20))
def test_no_text_makes_reading_a_price_raise(price: str) -> None:
    low, high = price_range(price)
    assert not math.isnan(low)
    assert not math.isnan(high)


def test_query_syntax_becomes_spaces() -> None:
    assert clean_query('a+b-c&d|e!f(g)h{i}j[k]l^m"n~o*p?q:r\\s/t') == " ".join(
        "abcdefghijklmnopqrst"
    )
    assert clean_query("men's 1.5l, 50%") == "men's 1.5l, 50%"


def test_services_are_bits_and_unknown_ones_none() -> None:
    assert service_bits(["COD", "official", "COD", "cod", ""]) == 0b101
    assert read_filters("", None, []).shop_id is None


def test_equals_stay_in_order_of_relevance() -> None:
    prices, sold = np.array([2.0, 1, 2, 1]), np.array([1, 5, 5, 1])
    orders = {
        sort: "".join("abcd"[n] for n in arrange([0, 1, 2, 3], sort, prices, sold))
        for sort in ("priceasc", "pricedesc", "order", "default", "PRICEASC", None)
    }
    assert orders == {
        "priceasc": "bdac",
        "pricedesc": "acbd",
        "order": "bcad",
        "default": "abcd",
        "PRICEASC": "abcd",
        None: "abcd",
    }


def test_pages_hold_ten() -> None:
    assert one_page(list(range(25)), 3) == [20, 21, 22, 23, 24]
    assert one_page(list(range(25)), 0) == one_page(list(range(99)), 6) == []
