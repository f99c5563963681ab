"""Queries become needs. The wordings are our own, by the families shoppers use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.standin.needs import VoucherTerms, classify, read_need, read_task, read_voucher
from scoring.types import Bucket


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("a lamp priced between 20 and 45 pesos", 20, 45),
        ("a lamp from 20 to 45 PHP", 20, 45),
        ("a lamp with a price range of 20 to 45 pesos", 20, 45),
        ("a lamp priced from 45 down, ranging from 45 to 20 PHP", 20, 45),
        ("a lamp above 99 PHP", 99, None),
        ("a lamp that costs over 1,250 pesos", 1250, None),
        ("a lamp costing more than 12.50", 12.5, None),
        ("a lamp under ₱300", None, 300),
        ("a lamp for less than 300 pesos", None, 300),
        ("a lamp with a price above 7 peso", 7, None),
        ("a power bank above 5000 mAh", None, None),
        ("a rope from 5 to 10 meters", None, None),
        ("a lamp", None, None),
    ],
)
def test_a_price_band_is_read_and_a_capacity_is_none(
    text: str, low: float | None, high: float | None
) -> None:
    need = read_need(text)
    assert (need.low, need.high) == (low, high)
    if low or high:
        assert "pesos" not in need.text.lower()


@pytest.mark.parametrize(
    ("text", "services"),
    [
        ("a vase from LazMall with guaranteed authenticity", {"official"}),
        ("a vase with complimentary delivery", {"freeShipping"}),
        ("a vase I can pay for with cash on delivery", {"COD"}),
        ("a vase, pay on delivery please", {"COD"}),
        ("a vase with LazFlash deals and free shipping", {"flashsale", "freeShipping"}),
        ("a vase that ships for free", {"freeShipping"}),
        ("a vase for shipping artists", set()),
    ],
)
def test_services_are_read_under_the_names_of_the_tools(text: str, services: set[str]) -> None:
    assert set(read_need(text).services) == services


def test_the_words_of_a_need_keep_neither_price_nor_service() -> None:
    need = read_need("a red clay vase with free shipping, priced above 40 PHP")
    assert "vase" in need.text
    assert "shipping" not in need.text
    assert "40" not in need.text
    assert need.price == "40-"


VOUCHER = """Looking for a tin drum and a wooden flute.

My budget is only `500`, but I have a voucher with the following rules:
1. The voucher {where}.
2. It is valid only when the total price of the products exceeds `300`.
3. It provides a {what}."""


def test_a_fixed_voucher_of_one_shop_is_read() -> None:
    text = VOUCHER.format(
        where="only applies to the products from the same shop", what="fixed discount of `60`"
    )
    assert read_voucher(text) == VoucherTerms(500, 300, "fixed", 60, 0, True)


def test_a_capped_percentage_voucher_is_read() -> None:
    text = VOUCHER.format(
        where="applies to all products", what="percentage discount of `15%` with a cap of `45`"
    )
    assert read_voucher(text) == VoucherTerms(500, 300, "percentage", 15, 45, False)


def test_a_voucher_counts_from_its_threshold_and_up_to_its_cap() -> None:
    terms = VoucherTerms(500, 300, "percentage", 50, 100, same_shop=True)
    assert terms.total_after(299, one_shop=True) == 299
    assert terms.total_after(400, one_shop=False) == 400
    assert terms.total_after(400, one_shop=True) == 300
    assert terms.total_after(150 * 2, one_shop=True) == 200


@pytest.mark.parametrize(
    ("query", "bucket"),
    [
        ("Show me a tin drum", Bucket.PRODUCT),
        ("Find a shop that sells both a tin drum and a flute", Bucket.SHOP),
        ("Looking for a store offering (1) a drum (2) a flute", Bucket.SHOP),
        ("A drum. My budget is 100 and I have a voucher with a discount of 5", Bucket.VOUCHER),
        ("Show me a shopping bag", Bucket.PRODUCT),
    ],
)
def test_a_query_is_classified(query: str, bucket: Bucket) -> None:
    assert classify(query) is bucket


def test_a_voucher_task_has_its_items_and_terms_apart() -> None:
    task = read_task(VOUCHER.format(where="applies to all products", what="fixed discount of `60`"))
    assert [need.text for need in task.needs] == ["a tin drum", "a wooden flute"]
    assert task.voucher
    assert not task.one_shop


@given(st.text(max_size=400))
def test_any_text_gives_a_task_with_at_least_one_need(text: str) -> None:
    assert read_task(text).needs
