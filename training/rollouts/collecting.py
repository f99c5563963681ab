"""Many rollouts at once, and what is counted of them.

Where a model cannot go on, collecting stops with one line; every rollout that was finished
has been handed on by then, and what is open is made by the same call again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from arena.races.race import first_of
from arena.runs.record import AgentRef
from sandbox.catalog.interface import Catalog
from sandbox.models import ModelClient
from scoring.titles import TitleSimilarity
from scoring.types import JsonObject, Problem
from training.exceptions import RolloutError
from training.generation.policy import seed_of
from training.rollouts.episode import Ended
from training.rollouts.models import PolicyModels, TurnSampling
from training.rollouts.rollout import Rollout, RolloutWorld, Task, roll_out
from training.serving.chat import ChatModel
from training.types import Trajectory

GIVE_UP_AFTER: Final = 3
"""Rollouts in a row that a server fails on, each after the client's own tries."""

Asking = Callable[[Task], ModelClient]
"""The model client of a task's rollout."""
Done = Callable[[Rollout], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """How rollouts are made. `at_once` should be the policy's batch: each conversation then
    keeps its row of the cache from turn to turn."""

    max_turns: int = 8
    sampling: TurnSampling = field(default_factory=TurnSampling)
    at_once: int = 16
    seed: int | None = 0


@dataclass(slots=True)
class RolloutCounts:
    """Rates over rollouts: the ones that a run is watched by."""

    rollouts: int = 0
    errors: int = 0
    """Failed by no fault of the model; in no other count."""
    successes: int = 0
    truncated: int = 0
    """With a turn that ended for want of room."""
    re_rendered: int = 0
    """Of several segments: some turn could not go on from the tokens before it."""
    malformed_calls: int = 0
    completion_tokens: int = 0
    turns: int = 0
    ended: Counter[str] = field(default_factory=Counter)

    def add(self, rollout: Rollout) -> None:
        """Count one in."""
        trajectory = rollout.trajectory
        self.ended[rollout.ended.value] += 1
        if rollout.ended is Ended.FAILED:
            self.errors += 1
            return
        self.rollouts += 1
        self.successes += rollout.success
        self.truncated += trajectory.truncated or bool(trajectory.facts.get("truncated"))
        self.re_rendered += len(trajectory.segments) > 1
        self.malformed_calls += _count(trajectory.facts.get("malformed_calls"))
        self.completion_tokens += _count(trajectory.facts.get("completion_tokens"))
        self.turns += _count(trajectory.facts.get("steps"))

    def to_json(self) -> JsonObject:
        """By name, with the rates."""
        finished = max(1, self.rollouts)
        return {
            "rollouts": self.rollouts,
            "errors": self.errors,
            "error_rate": self.errors / max(1, self.rollouts + self.errors),
            "success_rate": self.successes / finished,
            "truncation_rate": self.truncated / finished,
            "re_rendered": self.re_rendered,
            "malformed_calls": self.malformed_calls,
            "completion_tokens": self.completion_tokens,
            "turns": self.turns,
            "ended": dict(sorted(self.ended.items())),
        }


@asynccontextmanager
async def rollout_world(
    catalog: Catalog, titles: TitleSimilarity, *, threads: int = 2
) -> AsyncIterator[RolloutWorld]:
    """A world for rollouts while the context lasts."""
    executor = ThreadPoolExecutor(threads, thread_name_prefix="rollouts")
    try:
        yield RolloutWorld(catalog, titles, executor)
    finally:
        await asyncio.to_thread(executor.shutdown, cancel_futures=True)


def tasks_of(
    problems: Sequence[Problem], clusters: Callable[[Problem], str], samples: int
) -> list[Task]:
    """The rollouts of `samples` for each problem. All of one problem stand together: they
    begin with the same prompt, which is then computed once."""
    return [
        Task(problem, sample, clusters(problem))
        for problem in problems
        for sample in range(samples)
    ]


async def collect(
    world: RolloutWorld,
    tasks: Sequence[Task],
    asking: Asking,
    model: str,
    agent: AgentRef,
    settings: RolloutSettings,
    done: Done,
) -> RolloutCounts:
    """Make every rollout of `tasks`, `settings.at_once` at a time.

    `done` has each as it ends, failed ones included. Raises RolloutError when the model
    cannot go on: its policy failed, or its server did so `GIVE_UP_AFTER` times in a row.
    """
    counts = RolloutCounts()
    queue = iter(tasks)
    collecting = _Collecting(world, asking, model, agent, settings, done, counts)
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(settings.at_once, len(tasks))):
                group.create_task(collecting.work(queue))
    except ExceptionGroup as several:
        raise first_of(several) from None
    return counts


class _Collecting:
    """What the workers of one collection share."""

    def __init__(
        self,
        world: RolloutWorld,
        asking: Asking,
        model: str,
        agent: AgentRef,
        settings: RolloutSettings,
        done: Done,
        counts: RolloutCounts,
    ) -> None:
        self._world = world
        self._asking = asking
        self._model = model
        self._agent = agent
        self._settings = settings
        self._done = done
        self._counts = counts
        self._failed_in_a_row = 0

    async def work(self, queue: Iterator[Task]) -> None:
        """Make rollouts until none is left."""
        settings = self._settings
        for task in queue:
            models = self._asking(task)
            params: JsonObject = {}
            if not isinstance(models, PolicyModels):
                params = settings.sampling.to_json()
            rollout = await roll_out(
                self._world, task, models, self._model, self._agent,
                max_turns=settings.max_turns, params=params,
            )  # fmt: skip
            self._counts.add(rollout)
            await self._done(rollout)
            self._watch(rollout, models)

    def _watch(self, rollout: Rollout, models: ModelClient) -> None:
        """Raise RolloutError when going on makes no sense."""
        error = rollout.trajectory.error
        if error is None:
            self._failed_in_a_row = 0
            return
        self._failed_in_a_row += 1
        own = isinstance(models, PolicyModels) and models.failure is not None
        if own or self._failed_in_a_row >= GIVE_UP_AFTER:
            raise RolloutError(
                f"{self._model} cannot go on: {error.message}; {self._counts.rollouts} rollouts "
                "are done and kept",
                remedy="mend the model server and start the same command again",
            )


async def policy_rollouts(
    world: RolloutWorld,
    chat: ChatModel,
    tasks: Sequence[Task],
    agent: AgentRef,
    settings: RolloutSettings,
    done: Done | None = None,
) -> tuple[list[Trajectory], RolloutCounts]:
    """Rollouts of a policy of this process, in the order of `tasks`, failed ones included.

    Each has a seed of its own from `settings.seed`, its problem and its number, so that one
    seed gives the same rollouts in whatever order they run. Raises RolloutError.
    """
    found: dict[tuple[str, int], Trajectory] = {}

    async def keep(rollout: Rollout) -> None:
        found[rollout.task.key] = rollout.trajectory
        if done is not None:
            await done(rollout)

    asking = asking_policy(chat, settings)
    counts = await collect(world, tasks, asking, chat.name, agent, settings, keep)
    return [found[task.key] for task in tasks], counts


def asking_policy(chat: ChatModel, settings: RolloutSettings) -> Asking:
    """The clients of a policy's rollouts, each with its own seed."""

    def asking(task: Task) -> PolicyModels:
        seed = seed_of(settings.seed, task.problem.problem_id, task.sample)
        return PolicyModels(chat, settings.sampling, seed)

    return asking


def with_seed(settings: RolloutSettings, *place: int | str) -> RolloutSettings:
    """The same settings with a seed of its own: for one round of many."""
    return replace(settings, seed=seed_of(settings.seed, *place))


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
