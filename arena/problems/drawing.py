"""Rewards and vouchers drawn from real products.

Every constraint is taken from the product that answers it, so the answer satisfies it by
construction; `synthesise` proves it all the same. Pure; all chance comes from the
generator that is handed in.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

from arena.problems.wording import SERVICE_WORDS, key_words, sayable
from scoring.types import PriceBand, Product, Reward, Voucher
from scoring.upstream import discounted

MIN_PRICE = 2.0
"""Cheaper products leave no room for a band or a discount in whole pesos."""


def draw_reward(product: Product, rng: random.Random) -> Reward:
    """A reward that `product` satisfies: some of its options, attributes, services, a price.

    The share of each follows the public test sets: about half state a price, a third a
    service, two fifths an SKU option and two thirds some attributes.
    """
    sku = _sku(product, rng)
    stated = {key_words(key) for key in sku}
    return Reward(
        product_id=product.product_id,
        title=(product.title,),
        sku_options=(sku,) if sku else (),
        attributes=_attributes(product, stated, rng),
        service=_services(product, rng),
        price=_price(product, rng),
    )


def constraints(reward: Reward) -> int:
    """How many constraints it states beside the title."""
    return (
        len(reward.price)
        + len(reward.service)
        + sum(len(option) for option in reward.sku_options)
        + sum(len(values) for entry in reward.attributes for values in entry.values())
    )


def with_close_price(reward: Reward, product: Product, rng: random.Random) -> Reward:
    """The same reward with a narrow price band, for products that offer little else."""
    low = math.floor(product.price * rng.uniform(0.85, 0.97))
    high = math.ceil(product.price * rng.uniform(1.03, 1.15))
    return replace(reward, price=(PriceBand(float(low), float(high)),))


def draw_voucher(products: Sequence[Product], rng: random.Random) -> Voucher | None:
    """A voucher without which the products exceed the budget, and with which they do not.

    Whole pesos throughout. A shop voucher needs products of one shop. None when the total
    is too small for that.
    """
    total = sum(product.price for product in products)
    shops = {product.shop_id for product in products}
    voucher = Voucher(
        voucher_type=rng.choice(("platform", "shop")) if len(shops) == 1 else "platform",
        threshold=float(max(1, math.floor(total * rng.uniform(0.3, 0.95)))),
        discount_type=rng.choice(("fixed", "percentage")),
        budget=0.0,
    )
    if voucher.discount_type == "fixed":
        face = max(1, round(total * rng.uniform(0.05, 0.5)))
        voucher = replace(voucher, face_value=float(face))
    else:
        fraction = rng.randint(10, 50) / 100
        cap = max(1, round(total * fraction * rng.uniform(0.6, 3.0)))
        voucher = replace(voucher, discount=fraction, cap=float(cap))
    paid = discounted(voucher, total)
    lowest, highest = math.ceil(paid), math.ceil(total) - 1
    # "Exceeds" is read as more than; upstream also takes a total equal to the threshold.
    if lowest > highest or total <= voucher.threshold:
        return None
    budget = rng.randint(lowest, lowest + (highest - lowest) // 2)
    return replace(voucher, budget=float(budget), price_after_voucher=paid)


def _sku(product: Product, rng: random.Random) -> dict[str, str]:
    if rng.random() > 0.6 or not product.sku_options:
        return {}
    option = product.sku_options[rng.choice(sorted(product.sku_options))]
    pairs = [(k, v) for k, v in option.items() if sayable(v) and sayable(key_words(k))]
    return dict(rng.sample(pairs, min(len(pairs), rng.randint(1, 2))))


def _attributes(
    product: Product, stated: set[str], rng: random.Random
) -> tuple[dict[str, tuple[str, ...]], ...]:
    pairs = [
        (key, values[0])
        for key, values in product.attributes.items()
        if values
        and sayable(values[0])
        and sayable(key_words(key))
        and key_words(key) not in stated
    ]
    wanted = rng.choices((0, 1, 2, 3), weights=(3, 4, 3, 2))[0]
    return tuple({key: (value,)} for key, value in rng.sample(pairs, min(len(pairs), wanted)))


def _services(product: Product, rng: random.Random) -> tuple[str, ...]:
    known = [name for name in dict.fromkeys(product.service) if name in SERVICE_WORDS]
    wanted = rng.choices((0, 1, 2), weights=(6, 4, 1))[0]
    return tuple(rng.sample(known, min(len(known), wanted)))


def _price(product: Product, rng: random.Random) -> tuple[PriceBand, ...]:
    if product.price < MIN_PRICE or rng.random() < 0.5:
        return ()
    return (_band(product.price, rng),)


def _band(price: float, rng: random.Random) -> PriceBand:
    low = float(max(1, math.floor(price * rng.uniform(0.45, 0.95))))
    high = float(math.ceil(price * rng.uniform(1.05, 1.9)))
    kind = rng.choices(("above", "between", "below"), weights=(5, 4, 1))[0]
    return PriceBand(None if kind == "below" else low, None if kind == "above" else high)
