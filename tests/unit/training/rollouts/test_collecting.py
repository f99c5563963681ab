"""Many rollouts at once: rates, seeds, and what happens when a model dies under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from sandbox.exceptions import Fault, ModelError
from sandbox.models import ChatRequest, Completion, ModelClient, ModelRoute
from tests.unit.training.rollouts.shopping import AGENT, PROBLEM, SOLUTION, chat, turn
from tests.unit.training.serving.speaking import Scripted
from training.exceptions import PolicyError, RolloutError
from training.rollouts.collecting import (
    GIVE_UP_AFTER,
    RolloutSettings,
    collect,
    policy_rollouts,
    tasks_of,
)
from training.rollouts.models import TurnSampling
from training.rollouts.rollout import Rollout, RolloutWorld, Task
from training.types import Generated, Sampling, Stop

PROBLEMS = [PROBLEM, replace(PROBLEM, problem_id="p-2")]
SETTINGS = RolloutSettings(sampling=TurnSampling(max_tokens=300), at_once=2, seed=3)


def tasks(samples: int = 2) -> list[Task]:
    return tasks_of(PROBLEMS, lambda problem: f"c-{problem.problem_id}", samples)


class Knowing:
    """Solves what it is asked, each conversation by itself; `fail_at` is the call it dies at."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.calls = 0
        self.fail_at = fail_at
        self.seeds: list[int | None] = []

    async def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling
    ) -> list[Generated]:
        from tests.unit.training.serving.speaking import spoken, tokenizer

        self.calls += 1
        if self.fail_at is not None and self.calls >= self.fail_at:
            raise PolicyError("no memory is left")
        self.seeds.append(sampling.seed)
        said = []
        for prompt in prompts:
            shown = tokenizer().decode(list(prompt))
            made = shown.count("<|im_start|>assistant") - 1
            line = SOLUTION[made]
            ids = spoken(line)
            said.append(Generated(ids, tuple(-0.5 for _ in ids), Stop.END))
        return said


async def test_rollouts_come_in_the_order_of_their_tasks_and_are_counted(
    world: RolloutWorld,
) -> None:
    trajectories, counts = await policy_rollouts(world, chat(Knowing()), tasks(3), AGENT, SETTINGS)
    assert [t.problem_id for t in trajectories] == ["p-1"] * 3 + ["p-2"] * 3
    assert [t.facts["sample"] for t in trajectories] == [0, 1, 2] * 2
    assert {t.cluster for t in trajectories} == {"c-p-1", "c-p-2"}
    told = counts.to_json()
    assert (told["rollouts"], told["errors"], told["success_rate"]) == (6, 0, 1.0)
    assert told["turns"] == 24
    assert told["ended"] == {"terminated": 6}


async def test_conversations_that_are_alike_do_not_take_each_others_tokens(
    world: RolloutWorld,
) -> None:
    policy = Knowing()
    same = [Task(PROBLEM, sample, "c") for sample in range(4)]
    trajectories, _ = await policy_rollouts(world, chat(policy), same, AGENT, SETTINGS)
    assert all(len(t.segments) == 1 for t in trajectories)
    assert len(set(policy.seeds)) == 16


async def test_one_seed_gives_each_rollout_the_same_seeds_in_whatever_order_they_run(
    world: RolloutWorld,
) -> None:
    first, again = Knowing(), Knowing()
    await policy_rollouts(world, chat(first), tasks(), AGENT, SETTINGS)
    backwards = list(reversed(tasks()))
    await policy_rollouts(world, chat(again), backwards, AGENT, replace(SETTINGS, at_once=1))
    assert sorted(map(str, first.seeds)) == sorted(map(str, again.seeds))


async def test_a_policy_that_dies_stops_all_with_one_line_and_what_is_done_is_kept(
    world: RolloutWorld,
) -> None:
    kept: list[Rollout] = []

    async def keep(rollout: Rollout) -> None:
        kept.append(rollout)

    policy = Knowing(fail_at=6)
    one = replace(SETTINGS, at_once=1)
    with pytest.raises(RolloutError, match=r"no memory is left; 1 rollouts are done"):
        await policy_rollouts(world, chat(policy), tasks(), AGENT, one, keep)
    assert [rollout.success for rollout in kept] == [True, False]
    assert kept[1].trajectory.error is not None


class Dying(ModelClient):
    """A server that answers no more after some calls."""

    def __init__(self, left: int) -> None:
        super().__init__([ModelRoute("teacher", "far")])
        self.left = left
        self.asked = 0

    async def complete(
        self,
        request: ChatRequest,
        *,
        models: Sequence[str] = (),
        timeout_s: float = 300.0,
        tries: int | None = None,
    ) -> Completion:
        self.asked += 1
        raise ModelError("no connection", code="model.unreachable", fault=Fault.VALIDATOR)


async def test_a_server_that_dies_is_given_up_after_some_rollouts_in_a_row(
    world: RolloutWorld,
) -> None:
    failed: list[Rollout] = []

    async def keep(rollout: Rollout) -> None:
        failed.append(rollout)

    server = Dying(0)
    one = replace(SETTINGS, at_once=1)
    with pytest.raises(RolloutError, match="no connection"):
        await collect(world, tasks(10), lambda _: server, "teacher", AGENT, one, keep)
    assert len(failed) == GIVE_UP_AFTER


async def test_rates_tell_truncated_rollouts_and_broken_calls(world: RolloutWorld) -> None:
    broken = turn("Hm.", "<tool_call>\nno\n</tool_call>")
    policy = Scripted(broken, "<think>\nI wonder", *SOLUTION, cut=[1])
    one = replace(SETTINGS, at_once=1)
    _, counts = await policy_rollouts(world, chat(policy), tasks(1), AGENT, one)
    told = counts.to_json()
    assert told["truncation_rate"] == 0.5
    assert told["malformed_calls"] == 1
    assert told["success_rate"] == 0.5
