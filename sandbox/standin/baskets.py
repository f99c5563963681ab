"""Chooses one candidate an item: from one shop, within a budget, or simply the best."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sandbox.standin.needs import Task
from sandbox.standin.weighing import Weighed

ALIKE = 2
"""Decimals to which the scores of two baskets have to differ to count as different."""
_DEPTH = 8
"""Candidates of an item that a combination may take."""


@dataclass(frozen=True, slots=True)
class Basket:
    """The choice, one an item in the order asked, and the candidates it was made from."""

    chosen: tuple[Weighed, ...]
    ranked: tuple[tuple[Weighed, ...], ...]


def shops_by_promise(shelves: Sequence[Sequence[Weighed]]) -> list[str]:
    """Shops, best first: those seen for most items, then those whose candidates score best."""
    best: dict[str, dict[int, float]] = defaultdict(dict)
    for number, weighed in enumerate(shelves):
        for entry in weighed:
            scores = best[entry.candidate.shop_id]
            scores[number] = max(scores.get(number, 0.0), entry.score)
    return sorted(best, key=lambda shop: (-len(best[shop]), -sum(best[shop].values()), shop))


def cheapest_fit(task: Task, shelves: Sequence[Sequence[Weighed]]) -> Basket:
    """The basket with the highest score that the conditions allow.

    With one shop asked, only baskets of one shop; with a voucher, only those within the
    budget. Where no basket meets a condition, the best that meets the others.
    """
    if any(not shelf for shelf in shelves):
        return _partial(shelves)
    groups = _by_shop(shelves) if task.one_shop and len(shelves) > 1 else [tuple(shelves)]
    baskets = [b for group in groups or [tuple(shelves)] if (b := _best(task, group))]
    if not baskets:
        return _partial(shelves)
    chosen, group = max(baskets, key=lambda pair: _value(task, pair[0]))
    ranked = tuple(
        (pick, *(w for w in shelf if w.candidate.product_id != pick.candidate.product_id))
        for pick, shelf in zip(chosen, group, strict=True)
    )
    return Basket(chosen, ranked)


def _by_shop(shelves: Sequence[Sequence[Weighed]]) -> list[tuple[Sequence[Weighed], ...]]:
    shops = [{w.candidate.shop_id for w in shelf} for shelf in shelves]
    return [
        tuple([w for w in shelf if w.candidate.shop_id == shop] for shelf in shelves)
        for shop in sorted(set.intersection(*shops))
    ]


def _best(
    task: Task, shelves: Sequence[Sequence[Weighed]]
) -> tuple[tuple[Weighed, ...], Sequence[Sequence[Weighed]]] | None:
    options = [list(shelf[:_DEPTH]) for shelf in shelves]
    if task.voucher:
        # The cheapest that fits must be in reach when the best are too dear.
        for option, shelf in zip(options, shelves, strict=True):
            cheap = sorted(shelf, key=lambda w: w.candidate.price)[:2]
            option.extend(w for w in cheap if w not in option)
    combinations: Iterable[tuple[Weighed, ...]] = itertools.islice(
        itertools.product(*options), 50_000
    )
    distinct = (c for c in combinations if len({w.candidate.product_id for w in c}) == len(c))
    best = max(distinct, key=lambda c: _value(task, c), default=None)
    return (best, shelves) if best else None


def _value(task: Task, chosen: Sequence[Weighed]) -> tuple[bool, float, float]:
    """What a basket is worth: within the budget first, then by score.

    Of baskets that fit alike the cheaper one is worth more, but under a budget the dearer
    one: who names a budget means to use it.
    """
    total = sum(w.candidate.price for w in chosen)
    affordable = True
    if task.voucher:
        one_shop = len({w.candidate.shop_id for w in chosen}) == 1
        affordable = task.voucher.total_after(total, one_shop=one_shop) <= task.voucher.budget
        if affordable:
            return affordable, round(sum(w.score for w in chosen), ALIKE), total
    return affordable, round(sum(w.score for w in chosen), 6), -total


def _partial(shelves: Sequence[Sequence[Weighed]]) -> Basket:
    """The best of each item that has any."""
    return Basket(
        tuple(shelf[0] for shelf in shelves if shelf), tuple(tuple(shelf) for shelf in shelves)
    )
