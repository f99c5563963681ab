"""Made problems are solvable, checked, worded in full, and the same for the same seed."""

from __future__ import annotations

import gzip
import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from arena.problems.suite import check_against, load_suite, write_suite
from arena.problems.synthesise import split_evenly, synthesise
from arena.problems.wording import SERVICE_WORDS, voucher_words
from scoring.attempt import read_attempt
from scoring.exceptions import ProblemError
from scoring.outcome import score
from scoring.types import Bucket, Problem, Product, Voucher
from scoring.upstream import affordable, discounted
from tests.shared import SHARED, needs_shared
from tests.unit.arena.problems.world import World
from tests.unit.scoring.builders import recommend, step, terminate

WORLD = World()
PROBLEMS = synthesise(WORLD, dict.fromkeys(Bucket, 40), seed=3)


def succeeds(problem: Problem, ids: list[str]) -> bool:
    attempt = read_attempt([step(recommend(",".join(ids)), terminate())])
    return score(problem, attempt, WORLD.products(ids)).success


def answer(problem: Problem) -> list[str]:
    return [reward.product_id for reward in problem.rewards]


def test_every_answer_is_a_strict_success() -> None:
    assert len(PROBLEMS) == 120
    assert all(succeeds(problem, answer(problem)) for problem in PROBLEMS)


def test_most_products_are_no_answer() -> None:
    ids = list(WORLD.ids())
    for problem in PROBLEMS[::4]:
        right = answer(problem)
        others = [i for i in ids if i not in right]
        passing = sum(succeeds(problem, [other, *right[1:]]) for other in others)
        assert passing < len(ids) / 2, problem.query


def test_the_query_states_every_constraint_and_no_id() -> None:
    for problem in PROBLEMS:
        for reward in problem.rewards:
            for option in reward.sku_options:
                assert all(value in problem.query for value in option.values())
            for entry in reward.attributes:
                assert all(v in problem.query for values in entry.values() for v in values)
            for band in reward.price:
                for bound in (band.low, band.high):
                    assert bound is None or f"{bound:.0f}" in problem.query
            for service in reward.service:
                assert any(words in problem.query for words in SERVICE_WORDS[service])
        assert not re.search(r"\d{6}", problem.query)
        assert all(i not in problem.query + problem.problem_id for i in WORLD.ids())


def test_an_order_in_a_title_does_not_reach_a_query() -> None:
    for problem in PROBLEMS:
        assert "ignore" not in problem.query.lower()
        assert "<" not in problem.query
        assert problem.query.isprintable() or problem.bucket is Bucket.VOUCHER


def test_every_reward_states_something_to_check() -> None:
    for problem in PROBLEMS:
        for reward in problem.rewards:
            assert reward.price or reward.service or reward.sku_options or reward.attributes


def test_shop_problems_ask_one_shop_for_several_products() -> None:
    for problem in PROBLEMS:
        if problem.bucket is Bucket.SHOP:
            chosen = WORLD.products(answer(problem))
            assert 2 <= len(chosen) <= 4
            assert len({product.shop_id for product in chosen.values()}) == 1


def test_a_voucher_is_needed_and_enough() -> None:
    kinds = set()
    for problem in PROBLEMS:
        if problem.voucher is None:
            assert problem.bucket is not Bucket.VOUCHER
            continue
        voucher, chosen = problem.voucher, list(WORLD.products(answer(problem)).values())
        total = sum(product.price for product in chosen)
        assert discounted(voucher, total) <= voucher.budget < total
        assert total > voucher.threshold
        assert affordable(voucher, chosen)
        assert voucher_words(voucher) in problem.query
        kinds.add((voucher.voucher_type, voucher.discount_type))
    assert len(kinds) == 4


def test_the_same_seed_gives_the_same_problems_and_another_one_others() -> None:
    counts = split_evenly(10)
    first = synthesise(WORLD, counts, seed=5)
    assert synthesise(World(), counts, seed=5) == first
    ids = {problem.problem_id for problem in first}
    assert len(ids) == 10
    assert not ids & {problem.problem_id for problem in synthesise(WORLD, counts, seed=6)}


def test_a_bucket_does_not_depend_on_the_number_of_the_others() -> None:
    alone = synthesise(WORLD, {Bucket.VOUCHER: 4}, seed=5)
    among = synthesise(WORLD, {Bucket.PRODUCT: 9, Bucket.VOUCHER: 4}, seed=5)
    assert among[9:] == alone


def test_they_are_read_back_from_their_file(tmp_path: Path) -> None:
    path = tmp_path / "made.jsonl.gz"
    write_suite(PROBLEMS, path)
    assert load_suite(path).problems == PROBLEMS
    check_against(PROBLEMS, WORLD)
    line = json.loads(gzip.decompress(path.read_bytes()).split(b"\n")[0])
    assert {"problem_id", "category", "query", "reward"} <= line.keys()


@pytest.mark.parametrize(("count", "shop_size"), [(0, 1), (1, 1), (30, 1)])
def test_a_catalogue_without_the_material_is_a_clear_error(count: int, shop_size: int) -> None:
    with pytest.raises(ProblemError, match="Shop problems") as caught:
        synthesise(World(count, shop_size=shop_size), {Bucket.SHOP: 1}, seed=1)
    assert caught.value.code == "problem.catalog_too_small"


class Twins(World):
    """A catalogue in which every product meets what any other's reward states."""

    def _product(self, number: int, shop: int, rng: random.Random) -> Product:
        return Product(str(number), str(shop), "Red cotton hat", 100.0, ("COD",))


def test_a_problem_that_any_product_answers_is_not_made() -> None:
    with pytest.raises(ProblemError) as caught:
        synthesise(Twins(), {Bucket.PRODUCT: 1}, seed=1)
    assert caught.value.code == "problem.catalog_too_small"


class Telling(World):
    """A catalogue whose titles name their ids."""

    def _product(self, number: int, shop: int, rng: random.Random) -> Product:
        return replace(super()._product(number, shop, rng), title=f"{number} Red cotton hat")


def test_an_id_in_a_title_does_not_reach_the_query() -> None:
    problems = synthesise(Telling(), {Bucket.PRODUCT: 20}, seed=1)
    assert all("100000" not in problem.query for problem in problems)
    with pytest.raises(ProblemError, match="no more Product problems"):
        synthesise(Telling(first=10_000), {Bucket.PRODUCT: 1}, seed=1)


@needs_shared
def test_voucher_rules_are_worded_as_in_the_public_queries() -> None:
    for problem in load_suite(SHARED / "shoppingbench" / "voucher.jsonl").problems:
        assert isinstance(problem.voucher, Voucher)
        assert problem.query.endswith(voucher_words(problem.voucher))
