"""The shopper: searches, looks at details, compares, and recommends.

It knows the query and what the tools answered, nothing else. Text in an answer is
weighed as words and never followed.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sandbox.standin import wording
from sandbox.standin.baskets import Basket, cheapest_fit, shops_by_promise
from sandbox.standin.moves import Call, Move, Plan, recommend, search, terminate, view
from sandbox.standin.needs import Need, Task, read_task
from sandbox.standin.weighing import Candidate, Weighed, add_details, read_hits, weigh
from sandbox.standin.words import keywords
from scoring.types import Json

Choice: TypeAlias = Generator[Move, tuple[Json, ...], Basket]
"""A stretch of a plan that ends in a basket."""

VIEWED = 10
"""Candidates looked at in detail, for each item."""
SHOPS = 4
"""Shops looked into when everything has to come from one."""


@dataclass(slots=True)
class _Shelf:
    """An item wanted and the candidates seen for it so far."""

    need: Need
    candidates: list[Candidate] = field(default_factory=list)

    def add(self, result: Json) -> int:
        """Take in a search result; how many hits it had."""
        hits = read_hits(result, rank=len(self.candidates))
        known = {c.product_id for c in self.candidates}
        self.candidates.extend(h for h in hits if h.product_id not in known)
        return len(hits)

    def weighed(self) -> list[Weighed]:
        return weigh(self.need, self.candidates)


def shopper_plan(query: str) -> Plan:
    """The whole course of one conversation, as a plan."""
    task = read_task(query)
    shelves = [_Shelf(need) for need in task.needs]
    yield from _search_all(task, shelves)
    if task.one_shop and len(shelves) > 1:
        basket = yield from _one_shop(task, shelves)
    else:
        basket = yield from _anywhere(task, shelves)
    yield from _finish(task, basket)


def _search_all(task: Task, shelves: Sequence[_Shelf]) -> Plan:
    """Search for every item; where nothing is found, again with less."""
    think = wording.opening(task)
    open_shelves = list(shelves)
    for relaxed in range(4):
        calls = tuple(_search(shelf.need, relaxed) for shelf in open_shelves)
        answers = yield Move(think, calls)
        for shelf, answer in zip(open_shelves, answers, strict=True):
            shelf.add(answer)
        open_shelves = [shelf for shelf in open_shelves if not shelf.candidates]
        if not open_shelves:
            return
        missing = "; ".join(wording.wanted(shelf.need) for shelf in open_shelves)
        think = f"No hits for {missing}. I search again with fewer conditions."


def _search(need: Need, relaxed: int) -> Call:
    """The search for an item; the higher `relaxed`, the fewer conditions."""
    words = keywords(need.text) or need.text or "product"
    if relaxed == 0:
        return search(words, price=need.price, services=need.services)
    if relaxed == 1:
        return search(words, price=need.price)
    if relaxed == 2:
        return search(words)
    return search(" ".join(words.split()[:3]))


def _anywhere(task: Task, shelves: Sequence[_Shelf]) -> Choice:
    """Look at the best candidates of each item and take the best, within the budget."""
    looked = [[w.candidate for w in shelf.weighed()[:VIEWED]] for shelf in shelves]
    think = " ".join(
        wording.seen(shelf.need, shelf.weighed(), len(shelf.candidates)) for shelf in shelves
    )
    yield from _look(shelves, looked, f"{think} I look at the details before I decide.")
    choices = [shelf.weighed() for shelf in shelves]
    return cheapest_fit(task, choices)


def _look(shelves: Sequence[_Shelf], looked: Sequence[Sequence[Candidate]], think: str) -> Plan:
    """View the candidates and write what was learnt onto the shelves."""
    ids = list(dict.fromkeys(c.product_id for some in looked for c in some))
    if not ids:
        return
    calls = tuple(view(ids[at : at + VIEWED]) for at in range(0, len(ids), VIEWED))
    answers = yield Move(think, calls)
    for shelf in shelves:
        for answer in answers:
            shelf.candidates = add_details(shelf.candidates, answer)


def _one_shop(task: Task, shelves: Sequence[_Shelf]) -> Choice:
    """Find the shop that serves every item best."""
    shops = shops_by_promise([shelf.weighed() for shelf in shelves])[:SHOPS]
    calls = [
        (shelf, search(_shop_words(shelf.need), price=shelf.need.price, shop_id=shop))
        for shop in shops
        for shelf in shelves
    ]
    if calls:
        counts = "; ".join(
            f"{len(shelf.candidates)} hits for {wording.wanted(shelf.need)}" for shelf in shelves
        )
        think = (
            f"{counts}. The shops that appear for most items are {', '.join(shops)}. "
            "I search inside each of them for every item."
        )
        answers = yield Move(think, tuple(call for _, call in calls))
        for (shelf, _), answer in zip(calls, answers, strict=True):
            shelf.add(answer)
    looked = [
        [w.candidate for w in shelf.weighed() if w.candidate.shop_id == shop][:4]
        for shop in shops
        for shelf in shelves
    ]
    found = " ".join(wording.seen(s.need, s.weighed(), len(s.candidates)) for s in shelves)
    yield from _look(shelves, looked, f"{found} I look at what these shops have in detail.")
    return cheapest_fit(task, [shelf.weighed() for shelf in shelves])


def _shop_words(need: Need) -> str:
    return " ".join(keywords(need.text).split()[:12]) or need.text or "product"


def _finish(task: Task, basket: Basket) -> Plan:
    """Check the choice, recommend it and end."""
    reasons = " ".join(
        wording.comparison(need, ranked)
        for need, ranked in zip(task.needs, basket.ranked, strict=True)
    )
    if not basket.chosen:
        yield Move(f"{reasons} I found nothing to recommend.", (terminate("failure"),))
        return
    checks = _checks(task, basket)
    if checks:
        answers = yield Move(f"{reasons} I check this before I recommend it.", checks)
        reasons = _checked(checks, answers)
    ids = [w.candidate.product_id for w in basket.chosen]
    total = sum(w.candidate.price for w in basket.chosen)
    think = f"{reasons} I recommend {', '.join(ids)}, {total:.2f} pesos in all."
    if task.one_shop:
        think += f" All from shop {basket.chosen[0].candidate.shop_id}."
    yield Move(think, (recommend(ids),))
    yield Move(
        f"The recommendation of {', '.join(ids)} was taken; the task is done.",
        (terminate("success"),),
        response=f"I recommend {', '.join(ids)}.",
    )


def _checks(task: Task, basket: Basket) -> tuple[Call, ...]:
    """Calls that verify the basket: the voucher's sum, or the values of each product."""
    if task.voucher:
        prices = ",".join(f"{w.candidate.price:g}" for w in basket.chosen)
        voucher = task.voucher
        return (
            Call(
                "calculate_voucher",
                {
                    "product_prices": prices,
                    "voucher_type": voucher.kind,
                    "discount_value": voucher.value,
                    "threshold": voucher.threshold,
                    "budget": voucher.budget,
                    "cap": voucher.cap,
                },
            ),
        )
    calls = []
    for weighed in basket.chosen:
        required = dict(fit.split(": ", 1) for fit in weighed.fits)
        if required:
            arguments = {
                "product_id": weighed.candidate.product_id,
                "requirements": json.dumps(required, ensure_ascii=False),
            }
            calls.append(Call("check_product_match", {**arguments}))
    return tuple(calls)


def _checked(calls: Sequence[Call], answers: Sequence[Json]) -> str:
    """What the checks said, in words."""
    said = []
    for call, answer in zip(calls, answers, strict=True):
        if not isinstance(answer, dict):
            continue
        if call.name == "calculate_voucher":
            said.append(
                f"The total of {answer.get('total_before')} becomes {answer.get('total_after')}, "
                f"within the budget: {answer.get('within_budget')}."
            )
        else:
            said.append(f"{call.arguments['product_id']} matches: {answer.get('matched')}.")
    return wording.quoted(" ".join(said), 600).strip('"')
