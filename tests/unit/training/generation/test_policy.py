"""The engine behind a task's `await`: many ask at once, weights change, tasks give up."""

from __future__ import annotations

import asyncio

import pytest
import torch

from tests.unit.training.generation.models import plain_logprobs, prompt, tiny_model
from training.exceptions import PolicyError
from training.generation.engine import Engine, EngineLimits, Request
from training.generation.policy import EnginePolicy, seed_of
from training.types import Sampling

STOPS = (96,)


def policy(batch: int = 4) -> EnginePolicy:
    return EnginePolicy(Engine(tiny_model(), EngineLimits(batch)), STOPS)


async def test_tasks_that_ask_at_once_each_get_their_own() -> None:
    asked = policy()
    prompts = [prompt(10 + i, seed=i) for i in range(6)]
    one_by_one = [
        await asked.generate([p], Sampling(1.0, max_tokens=10, seed=i))
        for i, p in enumerate(prompts)
    ]
    at_once = await asyncio.gather(
        *(asked.generate([p], Sampling(1.0, max_tokens=10, seed=i)) for i, p in enumerate(prompts))
    )
    assert [a[0].ids for a in one_by_one] == [a[0].ids for a in at_once]
    await asked.close()


async def test_prompts_of_one_call_have_seeds_of_their_own() -> None:
    asked = policy()
    sampling = Sampling(1.0, max_tokens=15, seed=3)
    same = [prompt(10, seed=1)] * 3
    first = await asked.generate(same, sampling)
    assert len({generated.ids for generated in first}) == 3
    assert [g.ids for g in await asked.generate(same, sampling)] == [g.ids for g in first]
    assert seed_of(None, 1) is None
    await asked.close()


async def test_other_weights_change_what_is_said_and_drop_what_was_cached() -> None:
    asked, other = policy(), tiny_model(seed=1)
    given = prompt(40, seed=1)
    await asked.generate([given], Sampling(1.0, max_tokens=5, seed=1))
    assert await asked.load_state(other.state_dict()) == asked.version == 1
    [said] = await asked.generate([given], Sampling(1.0, max_tokens=10, seed=1))
    assert said.logprobs == pytest.approx(plain_logprobs(other, given, said.ids, 1.0), abs=1e-4)
    assert asked.engine.counts.cached_tokens == 0
    await asked.close()


async def test_weights_change_when_what_runs_has_ended() -> None:
    asked, other = policy(), tiny_model(seed=1)
    first = tiny_model()
    given = prompt(20, seed=1)
    running = asyncio.create_task(asked.generate([given], Sampling(1.0, max_tokens=60, seed=1)))
    await asyncio.sleep(0)
    changing = asyncio.create_task(asked.load_state(other.state_dict(), version=7))
    await asyncio.sleep(0)
    late = asyncio.create_task(asked.generate([given], Sampling(1.0, max_tokens=20, seed=1)))
    [before], version, [after] = await asyncio.gather(running, changing, late)
    assert version == 7
    assert before.logprobs == pytest.approx(plain_logprobs(first, given, before.ids, 1), abs=1e-4)
    assert after.logprobs == pytest.approx(plain_logprobs(other, given, after.ids, 1), abs=1e-4)
    await asked.close()


async def test_a_state_that_does_not_fit_changes_nothing() -> None:
    asked = policy()
    kept = {name: value.clone() for name, value in asked.engine.model.state_dict().items()}
    other = tiny_model(seed=1).state_dict()
    lacking = {k: v for k, v in other.items() if "norm" not in k}
    wrong = other | {"model.norm.weight": torch.zeros(3)}
    strange = other | {"adapter": torch.zeros(3)}
    for state, said in ((lacking, "lacks"), (wrong, "shape"), (strange, "adapter")):
        with pytest.raises(PolicyError, match=said):
            await asked.load_state(state)
    assert all(torch.equal(v, kept[k]) for k, v in asked.engine.model.state_dict().items())
    assert asked.version == 0
    await asked.close()


async def test_a_task_that_gives_up_lets_go_of_its_request() -> None:
    loop, begun = asyncio.get_running_loop(), asyncio.Event()

    class Watched(Engine):
        def step(self) -> list[Request]:
            loop.call_soon_threadsafe(begun.set)
            return super().step()

    asked = EnginePolicy(Watched(tiny_model(), EngineLimits(1)), STOPS)
    given_up = asyncio.create_task(
        asked.generate([prompt(10, seed=1)], Sampling(1.0, max_tokens=200, seed=1))
    )
    await begun.wait()
    given_up.cancel()
    [said] = await asked.generate([prompt(11, seed=2)], Sampling(1.0, max_tokens=5, seed=1))
    assert len(said.ids) == 5
    assert asked.engine.load == 0
    assert asked.engine.counts.steps < 150
    await asked.close()


async def test_all_who_wait_hear_of_a_model_that_fails_and_the_next_can_ask() -> None:
    asked = policy()
    model = asked.engine.model
    kept = model.lm_head.weight.detach().clone()
    with torch.no_grad():
        model.lm_head.weight.fill_(torch.nan)
    calls = [asked.generate([prompt(9, seed=i)], Sampling(max_tokens=4, seed=1)) for i in range(3)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(r) for r in results] == [PolicyError] * 3
    with torch.no_grad():
        model.lm_head.weight.copy_(kept)
    await asked.refresh()
    [said] = await asked.generate([prompt(9, seed=1)], Sampling(max_tokens=4, seed=1))
    assert len(said.ids) == 4
    await asked.close()


def test_one_policy_serves_one_event_loop_after_the_other() -> None:
    asked = policy()
    for _ in range(2):
        [said] = asyncio.run(asked.generate([prompt(9, seed=1)], Sampling(max_tokens=4, seed=1)))
        assert len(said.ids) == 4
    asyncio.run(asked.close())
