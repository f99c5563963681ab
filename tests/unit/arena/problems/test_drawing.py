"""What is drawn from a product is satisfied by it, whatever the product."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from arena.problems.drawing import constraints, draw_reward, draw_voucher, with_close_price
from scoring.rules import match
from scoring.titles import NoTitles
from scoring.types import Product, Voucher
from scoring.upstream import discounted
from tests.unit.scoring.builders import problem, product

TEXTS = st.text(max_size=6) | st.sampled_from(["black", "int:xl", "none", "123456789", "<b>"])
PRICES = st.floats(0, 10_000).map(lambda price: round(price, 2))


@st.composite
def products(draw: st.DrawFn) -> Product:
    pairs = st.dictionaries(TEXTS, TEXTS, max_size=3)
    return product(
        "7",
        price=draw(PRICES),
        shop_id=draw(st.sampled_from(["1", "2"])),
        service=tuple(draw(st.lists(st.sampled_from(["COD", "official", "other"]), max_size=3))),
        sku_options={str(i): option for i, option in enumerate(draw(st.lists(pairs, max_size=3)))},
        attributes={key: (value,) for key, value in draw(pairs).items()},
    )


@given(products(), st.integers(0, 99))
def test_a_twin_of_the_product_meets_every_constraint_of_its_reward(
    drawn: Product, seed: int
) -> None:
    rng = random.Random(seed)
    reward = draw_reward(drawn, rng)
    for wanted in (reward, with_close_price(reward, drawn, rng)):
        twin = product(
            "8",
            price=drawn.price,
            service=drawn.service,
            sku_options=drawn.sku_options,
            attributes=drawn.attributes,
        )
        met = match(problem(wanted), wanted, twin, NoTitles())
        assert met.total.of == constraints(wanted)
        assert met.total.complete


@given(st.lists(products(), min_size=1, max_size=4), st.integers(0, 99))
def test_a_voucher_is_valid_needed_and_enough_or_none(chosen: list[Product], seed: int) -> None:
    voucher = draw_voucher(chosen, random.Random(seed))
    if voucher is None:
        return
    check_voucher(voucher, chosen)


def test_a_voucher_of_a_few_pesos_keeps_its_bounds() -> None:
    for price in (1.0, 2.5, 10.37):
        for seed in range(200):
            voucher = draw_voucher([product(price=price)], random.Random(seed))
            if voucher is not None:
                check_voucher(voucher, [product(price=price)])


def check_voucher(voucher: Voucher, chosen: list[Product]) -> None:
    total = sum(p.price for p in chosen)
    assert total > voucher.threshold
    assert discounted(voucher, total) <= voucher.budget < total
    assert voucher.voucher_type == "platform" or len({p.shop_id for p in chosen}) == 1
    for number in (voucher.threshold, voucher.budget, voucher.face_value, voucher.cap):
        assert number is None or number.is_integer()


def test_a_dear_enough_basket_gets_a_voucher() -> None:
    drawn = [draw_voucher([product(price=50.0)], random.Random(seed)) for seed in range(50)]
    assert sum(voucher is not None for voucher in drawn) > 40
