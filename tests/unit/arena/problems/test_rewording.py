"""A model rewords problems through the real wire; hostile ones change nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from arena.exceptions import RewordingError
from arena.problems.growth import Growth, GrowthPlan, grow_reworded
from arena.problems.pools import Pool
from arena.problems.rewording import STANDIN_REWORDER, Reworder, open_reworder
from arena.problems.rewording_check import Item, flaws
from arena.problems.synthesise import Synthesis
from arena.problems.wording import voucher_words
from sandbox.models import ModelClient, ModelRoute, discover
from sandbox.models.client import RetryPolicy
from sandbox.standin.process import running_standin
from scoring.types import Bucket, Problem
from tests.unit.arena.problems.banks import Banked
from tests.unit.arena.problems.world import World

SOURCE = Synthesis(World(400), seed=4)
PROBLEMS = [SOURCE.draw(bucket) for bucket in Bucket for _ in range(6)]
BATCH = [(problem, SOURCE.items[problem.problem_id]) for problem in PROBLEMS]
MULTIPLE = [
    (problem, items)
    for problem, items in BATCH
    if len(items) > 1 and any(flaws(Item(items[0], problem.rewards[0]), x) for x in items[1:])
]


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[ModelClient]:
    """The stand-in server with the hostile reworders as well."""
    modules = ["arena.problems.rewording_standin", "tests.fixtures.rewording"]
    async with running_standin(load=modules) as url:
        opened = ModelClient(await discover(url, server="stand-in", standin=True))
        yield opened
        await opened.close()


async def test_each_problem_is_worded_anew_and_asks_for_the_same(client: ModelClient) -> None:
    reworder = Reworder(client, STANDIN_REWORDER)
    done = await reworder.reword_all(BATCH)
    changed = [(old, new) for old, (new, model) in zip(PROBLEMS, done, strict=True) if model]
    assert reworder.tally.reworded == len(changed) > len(PROBLEMS) / 2
    assert any(old.query != new.query for old, new in changed)
    for old, new in changed:
        assert replace(new, query=old.query) == old
        for reward in old.rewards:
            assert reward.product_id not in new.query
            for option in reward.sku_options:
                assert all(value in new.query for value in option.values())
        if old.voucher is not None:
            assert new.query.endswith(voucher_words(old.voucher))


@pytest.mark.parametrize(
    ("model", "flaw"),
    [
        ("inflating", "price"),
        ("injecting", "added_word"),
        ("wishing", "added_word"),
        ("forgetting", None),
        ("merging", "answer"),
        ("chatting", "answer"),
        ("numbers", "answer"),
    ],
)
async def test_hostile_answers_are_refused_and_counted(
    client: ModelClient, model: str, flaw: str | None
) -> None:
    reworder = Reworder(client, f"standin/reworder-{model}")
    batch = [(p, i) for p, i in MULTIPLE if any(reward.price for reward in p.rewards)]
    assert batch
    done = await reworder.reword_all(batch)
    assert [problem for problem, _ in done] == [problem for problem, _ in batch]
    assert all(model is None for _, model in done)
    assert reworder.tally.refused == len(batch)
    assert flaw is None or reworder.tally.flaws[flaw] >= len(batch)


async def test_items_in_another_order_are_refused(client: ModelClient) -> None:
    reworder = Reworder(client, "standin/reworder-reversing")
    assert all(model is None for _, model in await reworder.reword_all(MULTIPLE))


async def test_a_model_is_told_what_was_wrong_and_asked_once_more(client: ModelClient) -> None:
    reworder = Reworder(client, "standin/reworder-repenting")
    assert all(model for _, model in await reworder.reword_all(BATCH))
    assert reworder.tally.flaws == {"answer": len(BATCH)}
    assert reworder.tally.refused == 0


async def test_a_model_that_is_not_there_is_an_error_and_one_failure_is_not() -> None:
    gone = ModelRoute("some/model", "gone", base_url="http://127.0.0.1:1/v1")
    client = ModelClient([gone], retry=RetryPolicy(tries=1))
    with pytest.raises(RewordingError, match="did not answer for any of 2"):
        await Reworder(client, "some/model").reword_all(BATCH[:2])
    reworder = Reworder(client, "some/model")
    reworder.tally.reworded = 1
    ((problem, model),) = await reworder.reword_all(BATCH[:1])
    assert (problem, model, reworder.tally.failed) == (BATCH[0][0], None, 1)
    await client.close()


async def test_a_growth_takes_the_reworded_problems(client: ModelClient) -> None:
    world = Banked()
    plan = GrowthPlan({Bucket.PRODUCT: 4, Bucket.VOUCHER: 2}, Pool.HELD_OUT, 3)
    growth = Growth(
        world.bank, world.clusters, World(600, seed=8), plan, key=b"key of an arena", at=world.at
    )
    taken = await grow_reworded(growth, Reworder(client, STANDIN_REWORDER))
    assert len(taken.admitted) == 6
    by = [world.bank.need(i).provenance.get("reworded_by") for i in taken.admitted]
    assert by.count(STANDIN_REWORDER) == growth.reworded > 0


async def test_an_unknown_model_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ARENA_MODELS", "ARENA_MODELS_FILE", "ARENA_MODEL_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RewordingError, match="no model server has some/model"):
        async with open_reworder("some/model"):
            pass


async def test_the_prompt_gets_no_id_title_or_voucher() -> None:
    """What is not sent cannot leak: items are words alone."""
    for problem, items in BATCH:
        assert isinstance(problem, Problem)
        for reward, words in zip(problem.rewards, items, strict=True):
            assert reward.product_id not in words
            assert not any(title and title in words for title in reward.title)
