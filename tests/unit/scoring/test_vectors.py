"""The rules agree with every shared vector."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from scoring.attempt import read_attempt
from scoring.coefficient import coefficient
from scoring.exceptions import ScoringError
from scoring.outcome import score
from scoring.reading import read_problem, read_product
from scoring.types import Product
from scoring.weights import Finisher, weight_vector
from tests.shared import SHARED, needs_shared

pytestmark = needs_shared


def lines(name: str) -> list[dict[str, Any]]:
    path: Path = SHARED / "vectors" / name
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def catalogue() -> dict[str, Product]:
    with gzip.open(SHARED / "shoppingbench" / "documents.jsonl.gz", "rt", encoding="utf-8") as file:
        products = [read_product(json.loads(line)["product"]) for line in file]
    return {p.product_id: p for p in products}


def test_every_scoring_vector_agrees(catalogue: dict[str, Product]) -> None:
    vectors = lines("scoring.jsonl")
    assert vectors
    for vector in vectors:
        products = catalogue
        if "products" in vector:
            products = {p.product_id: p for p in map(read_product, vector["products"])}
        problem = read_problem(vector["problem"], problem_id="p")
        outcome = score(problem, read_attempt(vector["dialogue"]), products)
        assert problem.bucket == vector["bucket"]
        assert dict(outcome.upstream_scores) == pytest.approx(vector["expected"], abs=1e-8)
        assert outcome.upstream_success is vector["success"]


def test_every_coefficient_vector_agrees() -> None:
    for vector in lines("coefficient.jsonl"):
        assert coefficient(vector["quality"]) == vector["expected"]


def test_every_weights_vector_agrees() -> None:
    for vector in lines("weights.jsonl"):
        finishers = [Finisher(**f) for f in vector["finishers"]]
        shares = {"top_share": vector["top_share"], "burn_share": vector["burn_share"]}
        hotkeys = vector["metagraph_hotkeys"]
        if "error" in vector["expected"]:
            with pytest.raises(ScoringError):
                weight_vector(finishers, hotkeys, **shares)
        else:
            assert (
                list(weight_vector(finishers, hotkeys, **shares)) == vector["expected"]["weights"]
            )


def test_the_answer_to_every_real_problem_is_a_strict_success(
    catalogue: dict[str, Product],
) -> None:
    for name in ("product", "shop", "voucher"):
        path = SHARED / "shoppingbench" / f"{name}.jsonl"
        for line in path.read_text(encoding="utf-8").splitlines():
            problem = read_problem(json.loads(line), problem_id="p")
            ids = ",".join(r.product_id for r in problem.rewards)
            steps = [
                {
                    "completion": {
                        "message": {
                            "tool_call": [
                                {"name": "recommend_product", "parameters": {"product_ids": ids}},
                                {"name": "terminate", "parameters": {"status": "success"}},
                            ]
                        }
                    }
                }
            ]
            outcome = score(problem, read_attempt(steps), catalogue)
            assert outcome.success, (problem.query, outcome)
