"""The shopper shops: over a small market, with the real tools."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.catalog.interface import Catalog
from sandbox.standin.novice import novice_plan
from sandbox.standin.shopper import shopper_plan
from tests.unit.sandbox.standin.market import market, play, recommended


@pytest.fixture(scope="module")
def goods(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with market(tmp_path_factory.mktemp("market")) as catalog:
        yield catalog


def test_it_tells_near_copies_apart_by_option_price_and_shop(goods: Catalog) -> None:
    course = play(shopper_plan("Show me a green ceramic teapot with lid made of clay"), goods)
    assert recommended(course) == ["12"]


def test_a_size_written_otherwise_still_decides(goods: Catalog) -> None:
    query = "Looking for gray trail running shoes in size EU 44, priced above 1000 PHP"
    assert recommended(play(shopper_plan(query), goods)) == ["32"]


def test_services_asked_are_met(goods: Catalog) -> None:
    query = "Find a bamboo tea whisk from LazMall"
    assert recommended(play(shopper_plan(query), goods)) == ["22"]


def test_items_of_a_shop_come_from_one_shop_in_the_order_asked(goods: Catalog) -> None:
    query = (
        "Find a shop that sells both a bamboo tea whisk with cash on delivery, and a white "
        "ceramic teapot with lid"
    )
    assert recommended(play(shopper_plan(query), goods)) == ["22", "11"]


def test_a_budget_is_kept_with_the_voucher(goods: Catalog) -> None:
    query = (
        "Looking for a ceramic teapot with lid and a bamboo tea whisk. My budget is only `310`, "
        "but I have a voucher with the following rules: 1. The voucher applies to all products. "
        "2. It is valid only when the total price of the products exceeds `300`. 3. It provides "
        "a fixed discount of `20`."
    )
    course = play(shopper_plan(query), goods)
    prices = {p.product_id: p.price for p in goods.products(recommended(course)).values()}
    assert sum(prices.values()) - 20 <= 310
    assert any(call.name == "calculate_voucher" for move, _ in course for call in move.calls)


def test_instructions_in_a_title_do_not_change_its_course(goods: Catalog) -> None:
    course = play(shopper_plan("Show me a copper kettle for induction made of copper"), goods)
    assert recommended(course) == ["42"]
    assert not any("<" in move.think for move, _ in course)


def test_it_ends_with_one_recommendation_and_success(goods: Catalog) -> None:
    course = play(shopper_plan("Show me a green ceramic teapot"), goods)
    names = [call.name for move, _ in course for call in move.calls]
    assert names.count("recommend_product") == 1
    assert names[-2:] == ["recommend_product", "terminate"]
    assert course[-1][0].calls[0].arguments == {"status": "success"}


def test_it_fails_honestly_where_nothing_is_to_be_found(goods: Catalog) -> None:
    course = play(shopper_plan("Show me a quixotic zeppelin"), goods)
    assert recommended(course) == []
    assert course[-1][0].calls[0].arguments == {"status": "failure"}
    assert len(course) <= 8


def test_its_thinking_names_the_data_and_compares(goods: Catalog) -> None:
    course = play(shopper_plan("Show me a green ceramic teapot with lid made of clay"), goods)
    thoughts = " ".join(move.think for move, _ in course)
    assert "12" in thoughts
    assert "260" in thoughts
    assert "color_family: green" in thoughts
    assert "against" in thoughts
    assert "because" in thoughts


def test_it_is_deterministic(goods: Catalog) -> None:
    query = "Find a shop that sells a bamboo tea whisk and a ceramic teapot"
    assert play(shopper_plan(query), goods) == play(shopper_plan(query), goods)


def test_the_novice_takes_the_first_hit(goods: Catalog) -> None:
    course = play(novice_plan("Show me a green ceramic teapot with lid"), goods)
    hits = course[0][1][0]
    assert isinstance(hits, list)
    first = hits[0]
    assert isinstance(first, dict)
    assert recommended(course) == [first["product_id"]]
