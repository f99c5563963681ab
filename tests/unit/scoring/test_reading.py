"""Products, problems and vouchers are read, or the field that is wrong is named."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.exceptions import ProblemError
from scoring.reading import BAD_FIELD, MISSING_FIELD, read_problem, read_product, read_voucher
from scoring.types import Bucket, PriceBand

PRODUCT: dict[str, Any] = {
    "product_id": "7",
    "shop_id": "1",
    "title": "Red hat",
    "price": 10,
    "service": ["COD"],
    "sold_count": 3,
    "short_description": "s",
    "description": "d",
    "sku_options": {"1": {"size": "l"}},
    "attributes": {"brand": ["a", "b"]},
}


def test_a_full_product_is_read() -> None:
    product = read_product(PRODUCT | {"unknown": 1})
    assert product.price == 10.0
    assert product.sku_options == {"1": {"size": "l"}}
    assert product.attributes == {"brand": ("a", "b")}
    assert (product.service, product.sold_count) == (("COD",), 3)


def test_absent_and_null_parts_are_empty() -> None:
    bare = read_product({"product_id": 7, "shop_id": 1, "title": "", "price": 0.5})
    nulls = read_product(
        {"product_id": "7", "shop_id": "1", "title": "", "price": 0.5}
        | dict.fromkeys(["service", "sold_count", "description", "sku_options", "attributes"])
    )
    assert bare == nulls


def test_values_that_are_no_text_become_their_json_text() -> None:
    product = read_product(
        PRODUCT | {"sku_options": {"1": {"a": 5, "b": True}}, "attributes": {"c": 2.5, "d": [6]}}
    )
    assert product.sku_options["1"] == {"a": "5", "b": "true"}
    assert product.attributes == {"c": ("2.5",), "d": ("6",)}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"price": -0.01}, "product.price"),
        ({"price": math.nan}, "product.price"),
        ({"price": math.inf}, "product.price"),
        ({"price": 10**400}, "product.price"),
        ({"price": "10"}, "product.price"),
        ({"price": True}, "product.price"),
        ({"product_id": ""}, "product.product_id"),
        ({"product_id": "7,8"}, "product.product_id"),
        ({"product_id": " 7"}, "product.product_id"),
        ({"product_id": True}, "product.product_id"),
        ({"product_id": 10**5000}, "product.product_id"),
        ({"title": 3}, "product.title"),
        ({"service": "COD"}, "product.service"),
        ({"service": [1]}, "product.service[0]"),
        ({"sku_options": []}, "product.sku_options"),
        ({"sku_options": {"1": "l"}}, "product.sku_options.1"),
        ({"sku_options": {"1": {"size": None}}}, "product.sku_options.1.size"),
        ({"attributes": {"brand": [["a"]]}}, "product.attributes.brand[0]"),
        ({"sold_count": "many"}, "product.sold_count"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(ProblemError) as caught:
        read_product(PRODUCT | change)
    assert caught.value.code == BAD_FIELD
    assert caught.value.message.startswith(f"{field}: expected ")
    assert len(caught.value.message) < 300


@pytest.mark.parametrize("field", ["product_id", "shop_id", "title", "price"])
def test_a_missing_field_is_named(field: str) -> None:
    with pytest.raises(ProblemError, match=rf"product\.{field} is missing") as caught:
        read_product({k: v for k, v in PRODUCT.items() if k != field})
    assert caught.value.code == MISSING_FIELD


def problem(**fields: Any) -> dict[str, Any]:
    return {"problem_id": "p", "query": "q", "reward": {"product_id": "7"}} | fields


def test_price_bands_are_inclusive_and_look_at_their_own_bound() -> None:
    bands = [{"between": [1, 2]}, {"greater than": [3, 4]}, {"less than": [5, 6]}]
    (reward,) = read_problem(problem(reward={"product_id": "7", "price": bands})).rewards
    assert reward.price == (PriceBand(1, 2), PriceBand(3, None), PriceBand(None, 6))


def test_the_bucket_is_named_or_implied_by_the_shape() -> None:
    voucher = {
        "voucher_type": "shop",
        "threshold": 1,
        "discount_type": "fixed",
        "face_value": 1,
        "budget": 1,
    }
    assert read_problem(problem()).bucket is Bucket.PRODUCT
    assert read_problem(problem(reward=[{"product_id": "7"}])).bucket is Bucket.SHOP
    assert read_problem(problem(voucher=voucher)).bucket is Bucket.VOUCHER
    assert read_problem(problem(category="Product")).bucket is Bucket.PRODUCT
    assert read_problem(problem(bucket="product")).bucket is Bucket.PRODUCT
    with pytest.raises(ProblemError, match="has the shape of Shop"):
        read_problem(problem(category="Product", reward=[{"product_id": "7"}]))


def test_a_problem_needs_a_name_from_somewhere() -> None:
    nameless = {"query": "q", "reward": {"product_id": "7"}}
    assert read_problem(nameless, problem_id="given").problem_id == "given"
    assert read_problem(problem(), problem_id="given").problem_id == "p"
    with pytest.raises(ProblemError, match="problem_id"):
        read_problem(nameless)


def test_a_voucher_fraction_above_one_is_refused() -> None:
    with pytest.raises(ProblemError, match=r"voucher\.discount"):
        read_voucher(
            {
                "voucher_type": "shop",
                "threshold": 1,
                "discount_type": "percentage",
                "discount": 14,
                "cap": 5,
                "budget": 1,
            }
        )


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["between", "1", "size", "voucher_type", "budget", "product_id"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(list(PRODUCT)), JSON, max_size=4))
def test_any_product_is_read_or_refused_with_a_problem_error(change: dict[str, Any]) -> None:
    try:
        assert math.isfinite(read_product(PRODUCT | change).price)
    except ProblemError as error:
        assert "product" in error.message  # noqa: PT017 - both ways are right


@given(
    st.dictionaries(
        st.sampled_from(["query", "reward", "voucher", "category", "reward_title_embeddings"]),
        JSON,
        max_size=4,
    )
)
def test_any_problem_is_read_or_refused_with_a_problem_error(change: dict[str, Any]) -> None:
    try:
        assert read_problem(problem(**change)).rewards
    except ProblemError as error:
        assert error.code.startswith("problem.")  # noqa: PT017 - both ways are right
