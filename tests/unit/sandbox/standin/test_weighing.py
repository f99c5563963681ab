"""Candidates are weighed on what the tools said of them."""

from __future__ import annotations

from typing import cast

import pytest

from sandbox.standin.needs import read_need
from sandbox.standin.weighing import add_details, read_hits, weigh
from scoring.types import Json
from tests.unit.sandbox.standin.market import item


def candidates(*products: dict[str, object]) -> Json:
    return cast("Json", list(products))


def best(wish: str, *products: dict[str, object]) -> str:
    hits = add_details(read_hits(candidates(*products)), candidates(*products))
    return weigh(read_need(wish), hits)[0].candidate.product_id


def test_an_attribute_asked_for_decides_between_equal_titles() -> None:
    plain = item("1", "Canvas bag", 10, pattern="striped")
    asked = item("2", "Canvas bag", 10, pattern="floral")
    assert best("a canvas bag with a floral pattern", plain, asked) == "2"


def test_values_have_to_meet_in_one_option() -> None:
    split = item("1", "Wool coat", 10)
    split["sku_options"] = {
        "1": {"size": "int:m", "color": "red"},
        "2": {"size": "int:xl", "color": "blue"},
    }
    joined = item("2", "Wool coat", 10, option={"size": "int:xl", "color": "red"})
    assert best("a red wool coat, size XL", split, joined) == "2"


def test_a_broken_condition_weighs_more_than_words() -> None:
    dear = item("1", "Tin drum with red strap", 99)
    within = item("2", "Tin drum", 20)
    assert best("a tin drum with red strap under 50 pesos", dear, within) == "2"


def test_what_fits_and_what_lacks_is_named() -> None:
    hits = read_hits(candidates(item("1", "Tin drum", 5)))
    weighed = weigh(read_need("a blue tin drum with free shipping"), hits)[0]
    assert weighed.lacks == ("blue",)
    assert weighed.broken == ("no freeShipping",)


@pytest.mark.parametrize(
    "answer",
    [None, "Error", 3, {}, {"error": "x"}, [None, 1, {"title": "no id"}]],
)
def test_an_answer_that_holds_no_products_gives_none(answer: Json) -> None:
    assert read_hits(answer) == []
    assert add_details([], answer) == []


def test_odd_values_in_a_product_are_survived() -> None:
    odd: Json = [{"product_id": 7, "price": "cheap", "service": "COD", "title": None}]
    details: Json = [{"product_id": "7", "sku_options": [1], "attributes": {"a": 3}}]
    (candidate,) = add_details(read_hits(odd), details)
    assert candidate.attributes == {"a": ("3",)}
    assert weigh(read_need("a drum"), [candidate])
