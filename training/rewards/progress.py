"""Credit for single turns: what a turn brought to light that the problem asks for.

The potential after a turn is how well the best products seen so far meet the problem's rules,
averaged over its rewards, on the very axes that the race scores. A turn is credited with the
rise of the potential (A. Ng et al., "Policy Invariance under Reward Transformations", 1999):
over a rollout the credits sum to at most 1, and nothing is gained by seeing the same again.
The rules stay with the validator: the credit reaches the policy only as a gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from scoring.rules import match
from scoring.titles import NoTitles, TitleSimilarity
from scoring.types import Problem, Product
from training.rewards.steps import Step, failed, shown_ids

FAILED_CALL = 0.05
"""Taken from a turn for each call that its tool refused, at most once a turn."""


class Products(Protocol):
    """The part of a catalogue that is needed."""

    def products(self, product_ids: Sequence[str]) -> dict[str, Product]:
        """Those of the ids that exist."""
        ...


def potentials(
    problem: Problem,
    steps: Sequence[Step],
    catalog: Products,
    titles: TitleSimilarity | None = None,
) -> list[float]:
    """After each step, how far the products seen so far could solve the problem, 0 to 1."""
    titles = titles or NoTitles()
    best = [0.0] * len(problem.rewards)
    seen: set[str] = set()
    values = []
    for step in steps:
        fresh = {name for result in step.results for name in shown_ids(result)} - seen
        seen |= fresh
        for product in catalog.products(sorted(fresh)).values():
            for place, reward in enumerate(problem.rewards):
                best[place] = max(best[place], match(problem, reward, product, titles).rule)
        values.append(sum(best) / len(best))
    return values


def turn_rewards(
    problem: Problem,
    steps: Sequence[Step],
    catalog: Products,
    titles: TitleSimilarity | None = None,
) -> list[float]:
    """A reward for each step: the rise of the potential, less what refused calls cost."""
    before = 0.0
    rewards = []
    for step, value in zip(steps, potentials(problem, steps, catalog, titles), strict=True):
        cost = FAILED_CALL if any(map(failed, step.results)) else 0.0
        rewards.append(value - before - cost)
        before = value
    return rewards
