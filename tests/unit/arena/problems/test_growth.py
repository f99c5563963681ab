"""The bank grows by what is new to it, to quotas, and the same from the same seed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arena.exceptions import BankError
from arena.problems.bank import GROWN, Bank
from arena.problems.decisions import retire
from arena.problems.growth import Growth, GrowthPlan, grow, secret_seed
from arena.problems.pools import Pool
from arena.problems.suite import problem_to_json
from arena.problems.synthesise import GENERATOR, synthesise
from scoring.exceptions import ProblemError
from scoring.types import Bucket, Problem
from tests.unit.arena.problems.banks import Banked
from tests.unit.arena.problems.world import World

KEY = b"the key of this arena"
WIDE = World(1_500, seed=3)
COUNTS = {Bucket.PRODUCT: 6, Bucket.SHOP: 4, Bucket.VOUCHER: 5}


def growth(world: Banked, pool: Pool = Pool.HELD_OUT, seed: int = 7, **plan: object) -> Growth:
    chosen = replace(GrowthPlan(COUNTS, pool, seed), **plan)  # type: ignore[arg-type]
    return Growth(world.bank, world.clusters, WIDE, chosen, key=KEY, at=world.at)


def test_every_bucket_gets_its_count_and_says_where_it_comes_from() -> None:
    world = Banked()
    taken = grow(growth(world))
    grown = [world.bank.need(i) for i in taken.admitted]
    assert {b: sum(h.bucket is b for h in grown) for b in Bucket} == COUNTS
    assert all(event.kind == GROWN for event in taken.events if event.data.get("problem"))
    assert grown[0].provenance == {
        "origin": "synthesis",
        "catalog_hash": WIDE.content_hash,
        "seed": "7",
        "generator": GENERATOR,
    }
    assert all(h.pool is Pool.HELD_OUT for h in grown)


def test_the_same_seed_grows_the_same_and_another_key_names_it_otherwise() -> None:
    first, second = Banked(), Banked()
    assert grow(growth(first)).events == grow(growth(second)).events
    third = Banked()
    plan = GrowthPlan(COUNTS, Pool.HELD_OUT, 7)
    other = grow(Growth(third.bank, third.clusters, WIDE, plan, key=b"other", at=third.at))
    assert not set(other.admitted) & {h.problem_id for h in first.bank}
    assert [h.content["query"] for h in third.bank] == [h.content["query"] for h in first.bank]


def test_difficulties_follow_the_mix_where_products_allow() -> None:
    only_easy = growth(Banked(), mix={"easy": 1.0})
    grow(only_easy)
    assert {d for (_, d), n in only_easy.got.items() if n} == {"easy"}
    mixed = growth(Banked(), mix={"easy": 1, "medium": 1})
    grow(mixed)
    assert mixed.wanted[Bucket.PRODUCT, "easy"] == mixed.wanted[Bucket.PRODUCT, "medium"] == 3
    assert mixed.wanted[Bucket.VOUCHER, "easy"] + mixed.wanted[Bucket.VOUCHER, "medium"] == 5
    assert mixed.got[Bucket.SHOP, "easy"] == mixed.got[Bucket.SHOP, "medium"] == 2
    # No single product states eight constraints: the count comes first.
    hard = growth(Banked(), mix={"hard": 1})
    grow(hard)
    assert sum(n for (b, _), n in hard.got.items() if b is Bucket.PRODUCT) == 6


def test_no_mix_and_no_bank_pool_is_refused() -> None:
    with pytest.raises(BankError, match="mix"):
        growth(Banked(), mix={"easy": 0.0})
    with pytest.raises(BankError) as caught:
        growth(Banked(), Pool.SUITE_V1)
    assert caught.value.code == "bank.unknown_pool"


def _answers(problems: tuple[Problem, ...]) -> set[str]:
    return {reward.product_id for problem in problems for reward in problem.rewards}


def test_products_of_suites_and_of_the_bank_answer_nothing_new() -> None:
    world = Banked()
    suite = synthesise(WIDE, COUNTS, seed=1)
    world.bring(Pool.SUITE_V1, *suite)
    grow(growth(world, seed=1))
    opened = grow(growth(world, Pool.OPEN, seed=1))
    held = {p for h in world.bank.live(Pool.HELD_OUT) for p in h.products}
    new = {p for i in opened.admitted for p in world.bank.need(i).products}
    assert not new & (_answers(suite) | held)
    assert not held & _answers(suite)


def test_each_problem_is_a_cluster_of_its_own_and_no_product_serves_twice() -> None:
    world = Banked()
    taken = grow(growth(world))
    grow(growth(world, seed=8))
    used = [p for i in taken.admitted for p in world.bank.need(i).products]
    assert len(used) == len(set(used))
    assert len({holding.cluster for holding in world.bank}) == len(world.bank) == 30


class Small(World):
    """So few products that they must serve again."""

    def __init__(self) -> None:
        super().__init__(60, seed=5)


def test_with_reuse_products_serve_again_where_their_cluster_stands_and_nowhere_else() -> None:
    world, counts = Banked(), {Bucket.PRODUCT: 35}

    def more(pool: Pool, seed: int, reuse: bool) -> list[str]:
        bank = Banked(world.events)  # one that is given up half-way is of no more use
        plan = GrowthPlan(counts, pool, seed, reuse=reuse)
        made = Growth(bank.bank, bank.clusters, Small(), plan, key=KEY, at=world.at)
        world.events += grow(made).events
        return made.taken.admitted

    more(Pool.OPEN, 1, reuse=False)
    before = {p for h in Bank.folded(world.events) for p in h.products}
    with pytest.raises(ProblemError) as caught:
        more(Pool.OPEN, 2, reuse=False)
    assert caught.value.code == "problem.catalog_too_small"
    again, aside = more(Pool.OPEN, 2, reuse=True), more(Pool.HELD_OUT, 2, reuse=True)
    bank = Bank.folded(world.events)
    assert before & {p for i in again for p in bank.need(i).products}
    assert not before & {p for i in aside for p in bank.need(i).products}


def test_what_is_retired_serves_no_new_problem() -> None:
    world = Banked()
    first = grow(growth(world, Pool.OPEN)).admitted
    products = {p for i in first for p in world.bank.need(i).products}
    world.apply(retire(world.bank, first, "known by now", world.at))
    again = grow(growth(world, Pool.OPEN, seed=8, reuse=True)).admitted
    assert not products & {p for i in again for p in world.bank.need(i).products}


def test_a_reworded_problem_gets_the_id_of_its_words_and_says_who_worded_it() -> None:
    world = Banked()
    under_way = growth(world)
    batch = under_way.batch()
    under_way.bring([(replace(p, query=f"{p.query} Thanks."), "some/model") for p in batch])
    held = next(iter(world.bank))
    assert held.provenance["reworded_by"] == "some/model"
    assert held.problem_id not in {p.problem_id for p in batch}
    assert str(held.content["query"]).endswith("Thanks.")
    assert under_way.reworded == len(under_way.taken.admitted) > len(batch) / 2
    assert problem_to_json(held.problem)["problem_id"] == held.problem_id


def test_secret_seeds_differ_by_key_and_purpose() -> None:
    seeds = {secret_seed(key, what) for key in (b"a", b"b") for what in ("growth/1", "growth/2")}
    assert len(seeds) == 4
    assert all(0 <= seed < 2**63 for seed in seeds)
