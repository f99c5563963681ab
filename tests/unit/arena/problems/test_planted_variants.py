"""Planted variants are found again, and unrelated problems are left alone.

A smaller run of `benchmarks/clusters.py`. Every variant has product ids of its own here, so
that the plainest rule, a shared product, cannot help.
"""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from arena.problems.clusters import Clusters
from arena.problems.suite import load_suites
from benchmarks.planted_variants import KINDS, relisted
from scoring.types import Problem
from tests.shared import SHARED, needs_shared
from tests.unit.arena.problems.leaks import made_problems

MADE = made_problems(240)


def recall(clusters: Clusters, problems: list[Problem], kind: str) -> float:
    """The share of the variants that would join their original's cluster."""
    rng = random.Random(kind)
    found, planted = 0, 0
    for problem in problems:
        variant = KINDS[kind](problem, rng)
        if variant is None:
            continue
        planted += 1
        links = clusters.links_of(relisted(variant, rng))
        home = clusters.find(problem.problem_id)
        found += any(clusters.find(link.other) == home for link in links)
    assert planted > len(problems) / 3
    return found / planted


@pytest.fixture(scope="module")
def made() -> Clusters:
    return Clusters.of(MADE)


@pytest.mark.parametrize("kind", KINDS)
def test_variants_of_made_problems_are_found(made: Clusters, kind: str) -> None:
    assert recall(made, MADE, kind) >= 0.99


def test_unrelated_made_problems_are_not_joined(made: Clusters) -> None:
    """No two share a product; transitively joined pairs count as well."""
    pairs = list(combinations((made.find(problem.problem_id) for problem in MADE), 2))
    assert sum(one == other for one, other in pairs) <= 0.01 * len(pairs)
    assert max(map(len, made.groups().values())) < 10


@pytest.fixture(scope="module")
def real() -> tuple[Clusters, list[Problem]]:
    files = [SHARED / "shoppingbench" / f"{name}.jsonl" for name in ("product", "shop", "voucher")]
    problems = list(load_suites(files))
    return Clusters.of(problems), problems


@needs_shared
@pytest.mark.parametrize("kind", KINDS)
def test_variants_of_public_problems_are_found(
    real: tuple[Clusters, list[Problem]], kind: str
) -> None:
    assert recall(*real, kind) >= 0.99


@needs_shared
def test_public_problems_are_left_apart(real: tuple[Clusters, list[Problem]]) -> None:
    clusters, problems = real
    assert len(clusters) == len(problems) == 369
