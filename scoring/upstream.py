"""Upstream's rule scores and success, as SN15's validator reports them.

Keys and values are those of the shared vectors (`scoring.jsonl`, `expected`). They stand
beside the strict outcome and decide nothing here. Part of scoring: no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scoring.dialogue import Step
from scoring.rules import Match
from scoring.types import Bucket, Problem, Product, Voucher

Scores = Mapping[str, float]
"""Rule scores by upstream's names."""

_SUMMED = ("product", "gt", "rule", "title", "price", "service", "sku & attrs")


def format_score(steps: Sequence[Step]) -> float:
    """The mean over steps of 0 or 1, halved for a step without a positive timestamp."""
    if not steps:
        return 0.0
    return sum((1.0 if s.timed else 0.5) for s in steps if s.well_formed) / len(steps)


def length_score(steps: Sequence[Step]) -> float:
    """One over the number of steps when the last one terminates, else 0."""
    return 1 / len(steps) if steps and steps[-1].terminates else 0.0


def rule_scores(
    problem: Problem,
    steps: Sequence[Step],
    products: Sequence[Product | None],
    matches: Sequence[Match | None],
) -> dict[str, float]:
    """All of upstream's scores.

    `products` and `matches` stand by the position of the rewards, None where the
    recommended product does not exist. A missing single product leaves only format and
    length.
    """
    scores = {"format": format_score(steps), "length": length_score(steps)}
    if problem.bucket is Bucket.PRODUCT and products[0] is None:
        return scores
    n = len(problem.rewards)
    sums = dict.fromkeys(_SUMMED, 0.0)
    hit: list[Product] = []
    for product, match in zip(products, matches, strict=True):
        if product is None or match is None:
            continue
        rule = match.rule
        sums["product"] += 1
        sums["gt"] += match.exact
        sums["rule"] += rule
        sums["title"] += match.title.share
        sums["price"] += match.price.share
        sums["service"] += match.service.share
        sums["sku & attrs"] += match.sku_and_attribute.share
        if rule > 0:
            hit.append(product)
    for name, total in sums.items():
        scores[name] = total / n
    if problem.bucket is Bucket.SHOP:
        scores["shop"] = float(len(hit) == n and one_shop(hit))
    elif problem.voucher is not None:
        scores["budget"] = float(len(hit) == n and affordable(problem.voucher, hit))
    return scores


def succeeded(bucket: Bucket, scores: Scores) -> bool:
    """Upstream's success: the rule score, and the shop or the budget with it, are full."""
    if scores.get("rule", 0.0) < 1:
        return False
    side = {Bucket.SHOP: "shop", Bucket.VOUCHER: "budget"}.get(bucket)
    return side is None or scores[side] >= 1


def one_shop(products: Sequence[Product]) -> bool:
    """All products are sold by the same shop."""
    return len({product.shop_id for product in products}) == 1


def affordable(voucher: Voucher, products: Sequence[Product]) -> bool:
    """The total is within the budget, as it is or after the voucher."""
    total = sum(product.price for product in products)
    if total <= voucher.budget:
        return True
    applies = voucher.voucher_type == "platform" or one_shop(products)
    return applies and total >= voucher.threshold and discounted(voucher, total) <= voucher.budget


def discounted(voucher: Voucher, total: float) -> float:
    """What is paid of `total` pesos once the voucher applies.

    A percentage takes off at most `cap`, whatever the cap is (upstream: a cap of 0 takes
    off nothing).
    """
    if voucher.discount_type == "fixed":
        return total - (voucher.face_value or 0.0)
    return max(total * (1 - (voucher.discount or 0.0)), total - (voucher.cap or 0.0))
