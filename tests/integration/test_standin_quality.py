"""The shopper on real problems: a stand-in worth racing, scored by the strict rules.

The floors lie well under what it reaches, so that a change of wording does not fail
them and a broken reading, search or choice does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.catalog.builder import build_index
from sandbox.catalog.interface import Catalog
from sandbox.catalog.native import NativeCatalog
from sandbox.standin.shopper import shopper_plan
from scoring.attempt import read_attempt
from scoring.outcome import score
from scoring.reading import read_problem
from scoring.types import Problem
from tests.shared import SHARED, needs_shared
from tests.unit.sandbox.standin.market import play, recommended

pytestmark = needs_shared

PROBLEMS = 60
MAX_TURNS = 10


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    directory = tmp_path_factory.mktemp("real") / "index"
    build_index([SHARED / "shoppingbench" / "documents.jsonl.gz"], directory)
    opened = NativeCatalog(directory)
    yield opened
    opened.close()


def problems(path: Path) -> Iterator[Problem]:
    with path.open(encoding="utf-8") as lines:
        for number, line in zip(range(PROBLEMS), lines, strict=False):
            yield read_problem(json.loads(line), problem_id=f"{path.stem}-{number}")


def solves(problem: Problem, catalog: Catalog) -> bool:
    course = play(shopper_plan(problem.query), catalog)
    assert len(course) <= MAX_TURNS
    dialogue = [
        {
            "completion": {
                "message": {
                    "think": move.think,
                    "tool_call": [{"name": c.name, "parameters": c.arguments} for c in move.calls],
                }
            },
            "extra_info": {"timestamp": 1},
        }
        for move, _ in course
    ]
    outcome = score(problem, read_attempt(dialogue), catalog.products(recommended(course)))
    return outcome.success


@pytest.mark.parametrize(("bucket", "floor"), [("product", 0.8), ("shop", 0.8), ("voucher", 0.6)])
def test_it_solves_most_real_problems(catalog: Catalog, bucket: str, floor: float) -> None:
    solved = [solves(p, catalog) for p in problems(SHARED / "shoppingbench" / f"{bucket}.jsonl")]
    assert len(solved) == PROBLEMS
    assert sum(solved) / len(solved) >= floor
