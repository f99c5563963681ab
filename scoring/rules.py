"""The rule axes: one product held against one reward.

Upstream's rules (ShoppingBench, as SN15's validator runs them): every title, price band,
service, SKU pair and attribute value of a reward is one constraint, hit or missed.
Part of scoring: no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from scoring.titles import TITLE_THRESHOLD, TitleSimilarity
from scoring.types import PriceBand, Problem, Product, Reward


class Tally(NamedTuple):
    """Constraints hit, of those that were checked."""

    hit: int = 0
    of: int = 0

    @property
    def share(self) -> float:
        """Hits over constraints; 0 where there is none (upstream)."""
        return self.hit / self.of if self.of else 0.0

    @property
    def complete(self) -> bool:
        """Nothing was missed."""
        return self.hit == self.of


@dataclass(frozen=True, slots=True)
class Match:
    """How far a product meets a reward. `sku` and `attribute` are of the same SKU option."""

    exact: bool
    title: Tally
    price: Tally
    service: Tally
    sku: Tally
    attribute: Tally

    @property
    def sku_and_attribute(self) -> Tally:
        """The two counted together, as upstream does."""
        return Tally(self.sku.hit + self.attribute.hit, self.sku.of + self.attribute.of)

    @property
    def total(self) -> Tally:
        """All constraints that were checked."""
        a, b, c, d, e = self.title, self.price, self.service, self.sku, self.attribute
        return Tally(a.hit + b.hit + c.hit + d.hit + e.hit, a.of + b.of + c.of + d.of + e.of)

    @property
    def rule(self) -> float:
        """Upstream's rule score: 1 for the ground truth, else the share of constraints hit."""
        return 1.0 if self.exact else self.total.share

    @property
    def satisfied(self) -> bool:
        """The product is the answer, or one that meets every constraint (at least one)."""
        return self.exact or (self.total.of > 0 and self.total.complete)


def stated(reward: Reward, *, titles: bool) -> Match:
    """What `reward` states, with nothing hit: the tally of a product that does not exist."""
    return Match(
        exact=False,
        title=Tally(0, len(reward.title) if titles else 0),
        price=Tally(0, len(reward.price)),
        service=Tally(0, len(reward.service)),
        sku=Tally(0, sum(len(option) for option in reward.sku_options)),
        attribute=Tally(0, sum(len(v) for entry in reward.attributes for v in entry.values())),
    )


def match(problem: Problem, reward: Reward, product: Product, titles: TitleSimilarity) -> Match:
    """Hold `product` against `reward`. The ground truth meets everything, titles included."""
    if product.product_id == reward.product_id:
        return _everything(stated(reward, titles=True))
    sku, attribute = _best_option(reward, product)
    return Match(
        exact=False,
        title=_titles(problem, reward, product, titles),
        price=Tally(sum(_within(product.price, band) for band in reward.price), len(reward.price)),
        service=Tally(sum(s in product.service for s in reward.service), len(reward.service)),
        sku=sku,
        attribute=attribute,
    )


def _everything(match: Match) -> Match:
    def full(tally: Tally) -> Tally:
        return Tally(tally.of, tally.of)

    return Match(
        exact=True,
        title=full(match.title),
        price=full(match.price),
        service=full(match.service),
        sku=full(match.sku),
        attribute=full(match.attribute),
    )


def _titles(problem: Problem, reward: Reward, product: Product, titles: TitleSimilarity) -> Tally:
    known = [
        value
        for title in reward.title
        if (value := titles.similarity(problem, title, product.title)) is not None
    ]
    return Tally(sum(value >= TITLE_THRESHOLD for value in known), len(known))


def _within(price: float, band: PriceBand) -> bool:
    return (band.low is None or price >= band.low) and (band.high is None or price <= band.high)


def _best_option(reward: Reward, product: Product) -> tuple[Tally, Tally]:
    """SKU and attribute hits with the SKU option (or none) that hits most; the first of equals."""
    sku_pairs = [pair for option in reward.sku_options for pair in option.items()]
    attribute_pairs = [
        (key, value)
        for entry in reward.attributes
        for key, values in entry.items()
        for value in values
    ]
    if not sku_pairs and not attribute_pairs:
        return Tally(), Tally()
    # What the attributes answer is hit whatever the option; only the rest depends on it.
    attributes = product.attributes
    sku_open = [(k, v) for k, v in sku_pairs if v not in attributes.get(k, ())]
    attribute_open = [(k, v) for k, v in attribute_pairs if v not in attributes.get(k, ())]
    best = (0, 0)
    if sku_open or attribute_open:
        for option in product.sku_options.values():
            hits = (
                sum(option.get(k) == v for k, v in sku_open),
                sum(option.get(k) == v for k, v in attribute_open),
            )
            if sum(hits) > sum(best):
                best = hits
    return (
        Tally(len(sku_pairs) - len(sku_open) + best[0], len(sku_pairs)),
        Tally(len(attribute_pairs) - len(attribute_open) + best[1], len(attribute_pairs)),
    )
