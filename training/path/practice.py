"""The suites of a run: what each stage practises on, and what is held out for all of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from arena.problems.partition import Partition, read_partition
from arena.problems.pools import Side
from arena.problems.suite import load_suite, write_suite
from corpus_export.manifest import PARTITION
from scoring.types import Problem
from training.exceptions import NothingToLearnError
from training.path.recipe import PathRecipe
from training.path.steps import BEFORE, Layout


def write_suites(layout: Layout, recipe: PathRecipe) -> None:
    """Write them; the same recipe draws the same.

    Raises NothingToLearnError when a side has no problem.
    """
    problems = load_suite(layout.suite).problems
    partition = read_partition(layout.corpus / PARTITION)
    training = _of(problems, partition, Side.TRAINING)
    held_out = _of(problems, partition, Side.EVALUATION)
    if not training or not held_out:
        raise NothingToLearnError(
            f"{len(training)} problems to train on and {len(held_out)} to evaluate on",
            remedy="more problems in the recipe's world",
        )
    layout.held_out.parent.mkdir(parents=True, exist_ok=True)
    for stage in BEFORE:
        wanted = getattr(recipe, stage).problems
        drawn = chosen(training, wanted, f"{recipe.seed} {stage}")
        write_suite(drawn, layout.practice(stage))
    most = max(recipe.eval.problems, recipe.race.problems)
    write_suite(chosen(held_out, most, f"{recipe.seed} held out"), layout.held_out)


def chosen(problems: Sequence[Problem], wanted: int | None, seed: str) -> tuple[Problem, ...]:
    """So many problems, drawn by the seed, in an order that it decides; all without a number."""
    ordered = sorted(problems, key=lambda problem: problem.problem_id)
    count = len(ordered) if wanted is None else min(wanted, len(ordered))
    return tuple(random.Random(seed).sample(ordered, count))  # noqa: S311


def _of(problems: Sequence[Problem], partition: Partition, side: Side) -> list[Problem]:
    return [p for p in problems if partition.side_of(p.problem_id) is side]
