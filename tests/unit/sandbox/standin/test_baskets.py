"""A basket is chosen by shop and budget first, then by what fits."""

from __future__ import annotations

from sandbox.standin.baskets import cheapest_fit, shops_by_promise
from sandbox.standin.needs import Need, Task, VoucherTerms
from sandbox.standin.weighing import Candidate, Weighed
from scoring.types import Bucket


def seen(product_id: str, score: float, price: float = 10, shop: str = "1") -> Weighed:
    return Weighed(Candidate(product_id, shop, product_id, price, ()), score)


def task(bucket: Bucket, voucher: VoucherTerms | None = None) -> Task:
    return Task(bucket, (Need("a"), Need("b")), voucher)


def ids(*shelves: list[Weighed], of: Task) -> list[str]:
    return [w.candidate.product_id for w in cheapest_fit(of, shelves).chosen]


def test_everything_comes_from_one_shop_even_if_another_has_a_better_single_item() -> None:
    drums = [seen("best", 1.0, shop="9"), seen("fine", 0.7, shop="1")]
    bells = [seen("bell", 0.8, shop="1")]
    assert ids(drums, bells, of=task(Bucket.SHOP)) == ["fine", "bell"]


def test_a_basket_over_the_budget_gives_way_to_one_within() -> None:
    drums = [seen("dear", 1.0, 100), seen("cheap", 0.8, 50)]
    bells = [seen("bell", 0.9, 30)]
    terms = VoucherTerms(90, 1000, "fixed", 10, 0, same_shop=False)
    assert ids(drums, bells, of=task(Bucket.VOUCHER, terms)) == ["cheap", "bell"]


def test_the_voucher_makes_a_dear_basket_affordable() -> None:
    drums = [seen("dear", 1.0, 100), seen("cheap", 0.8, 50)]
    bells = [seen("bell", 0.9, 30)]
    terms = VoucherTerms(90, 100, "fixed", 40, 0, same_shop=False)
    assert ids(drums, bells, of=task(Bucket.VOUCHER, terms)) == ["dear", "bell"]


def test_no_product_is_taken_twice() -> None:
    assert ids([seen("x", 1.0), seen("y", 0.5)], [seen("x", 1.0)], of=task(Bucket.SHOP)) == [
        "y",
        "x",
    ]


def test_what_is_missing_does_not_hide_what_was_found() -> None:
    assert ids([seen("x", 1.0)], [], of=task(Bucket.SHOP)) == ["x"]


def test_shops_seen_for_more_items_come_first() -> None:
    shelves = [[seen("a", 0.9, shop="1"), seen("b", 0.5, shop="2")], [seen("c", 0.5, shop="2")]]
    assert shops_by_promise(shelves) == ["2", "1"]
