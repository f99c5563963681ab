"""Rollouts of the very model that is being trained, between two of its updates.

The model generates as it stands, in eval mode and in this process, so that no weights are
copied and none are old; conversations go through the race's gateway, tools and scorer.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from arena.problems.suite import check_against, load_suite
from arena.problems.titles import DEFAULT_MODEL, TitleMode, title_similarity
from arena.races.inputs import draw
from arena.runs.record import AgentRef
from sandbox.catalog import open_catalog
from scoring.types import Problem
from training.backbone import Backbone
from training.corpus import Guard
from training.exceptions import GuardError, NothingToLearnError, RolloutError
from training.forward import core_of
from training.generation.engine import EngineLimits
from training.rollouts.collecting import RolloutSettings, policy_rollouts
from training.rollouts.rollout import RolloutWorld, Task
from training.serving.opening import open_backbone
from training.types import Trajectory

if TYPE_CHECKING:
    from training.rollouts.collecting import RolloutCounts

POLICY = AgentRef("policy", "policy", hashlib.sha256(b"training.on_policy").hexdigest())
"""Who records of these rollouts say was the agent."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The problems that rollouts are made of, all of the training side, and their world."""

    world: RolloutWorld
    problems: tuple[Problem, ...]
    clusters: dict[str, str]
    """By problem id, as the partition has it."""

    def task(self, problem: Problem, sample: int) -> Task:
        """The `sample`-th rollout of a problem."""
        return Task(problem, sample, self.clusters[problem.problem_id])


@contextmanager
def open_ground(
    suites: Sequence[Path],
    catalog: Path,
    guard: Guard,
    *,
    titles: TitleMode = TitleMode.NONE,
    title_model: str = DEFAULT_MODEL,
    threads: int = 2,
) -> Iterator[Ground]:
    """The problems of the suites that may be learnt from, and a world for them.

    What a partition holds for evaluation, or never to be touched, or does not know, is left
    out. Raises NothingToLearnError when nothing else is there.
    """
    problems = draw([load_suite(path) for path in suites], None)
    allowed = tuple(p for p in problems if _is_allowed(p, guard))
    if not allowed:
        raise NothingToLearnError(
            f"none of {len(problems)} problems stands on the side of training",
            remedy="give the suites that the corpus was made of",
        )
    opened = open_catalog(catalog)
    check_against(allowed, opened)
    executor = ThreadPoolExecutor(threads, thread_name_prefix="rollouts")
    try:
        yield Ground(
            RolloutWorld(opened, title_similarity(titles, title_model), executor),
            allowed,
            {p.problem_id: guard.allowed_problems[p.problem_id] for p in allowed},
        )
    finally:
        executor.shutdown(cancel_futures=True)


def _is_allowed(problem: Problem, guard: Guard) -> bool:
    cluster = guard.allowed_problems.get(problem.problem_id)
    if cluster is None:
        return False
    try:
        guard.admit(problem.problem_id, cluster)
    except GuardError:
        return False
    return True


class OnPolicy:
    """Makes rollouts of `model`, which may be adapted. It is to be in eval mode."""

    def __init__(self, model: torch.nn.Module, backbone: Backbone, context: int | None) -> None:
        self._backbone = replace(backbone, model=core_of(model))
        self._context = context

    def rollouts(
        self, ground: Ground, tasks: Sequence[Task], settings: RolloutSettings
    ) -> tuple[list[Trajectory], RolloutCounts]:
        """One trajectory for each task, in their order. Raises RolloutError."""
        return asyncio.run(self._rollouts(ground, tasks, settings))

    async def _rollouts(
        self, ground: Ground, tasks: Sequence[Task], settings: RolloutSettings
    ) -> tuple[list[Trajectory], RolloutCounts]:
        limits = EngineLimits(batch=settings.at_once, context=self._context)
        async with open_backbone(self._backbone, name=POLICY.name, limits=limits) as opened:
            return await policy_rollouts(ground.world, opened.chat, tasks, POLICY, settings)


def drawn(total: int, begin: int, count: int, seed: int) -> list[int]:
    """`count` of `total` things from place `begin` on: all of them once, shuffled, then again."""
    found = []
    for place in range(begin, begin + count):
        round_, at = divmod(place, total)
        order = list(range(total))
        random.Random(f"{seed} drawn {round_}").shuffle(order)  # noqa: S311
        found.append(order[at])
    return found


def recommend_rate(
    policy: OnPolicy, ground: Ground, settings: RolloutSettings, problems: int, seed: int
) -> Callable[[torch.nn.Module], dict[str, float]]:
    """A measurement: the share of rollouts, one a problem, that recommend anything.

    The same problems each time. Rollouts that failed by no fault of the model are left out;
    when all did, RolloutError is raised.
    """
    chosen = [ground.problems[i] for i in drawn(len(ground.problems), 0, problems, seed)]
    tasks = [ground.task(problem, sample) for sample, problem in enumerate(chosen)]

    def measure(_: torch.nn.Module) -> dict[str, float]:
        found, _counts = policy.rollouts(ground, tasks, settings)
        sound = [one.outcome for one in found if one.outcome is not None]
        if not sound:
            raise RolloutError("every rollout that was to be watched failed on this host")
        return {
            "recommend_rate": sum(bool(o.recommended_ids) for o in sound) / len(sound),
            "rollout_success": sum(o.success for o in sound) / len(sound),
        }

    return measure
