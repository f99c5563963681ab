from __future__ import annotations

from pathlib import Path

import pytest

from arena.problems.partition import read_partition
from arena.problems.pools import Side
from arena.problems.suite import Suite
from scoring.types import Bucket, Problem, Reward
from training.evaluation.held_out import held_out
from training.exceptions import EvaluationError


def suite(*ids: str) -> Suite:
    problems = tuple(Problem(name, "a mug", Bucket.PRODUCT, (Reward("1"),)) for name in ids)
    return Suite("s", problems)


def test_only_what_the_corpus_holds_out_is_evaluated(day_corpus: Path) -> None:
    partition = read_partition(day_corpus / "partition.json")
    ids = {side: partition.problems(side) for side in Side}
    assert ids[Side.EVALUATION]
    assert ids[Side.TRAINING]
    everything = suite(*ids[Side.TRAINING], *ids[Side.EVALUATION], "unknown")
    (kept,) = held_out([everything], day_corpus)
    assert {p.problem_id for p in kept.problems} == set(ids[Side.EVALUATION])
    with pytest.raises(EvaluationError, match="none of the problems is held out"):
        held_out([suite(*ids[Side.TRAINING])], day_corpus)


def test_a_directory_that_is_no_corpus_is_said(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="has no partition"):
        held_out([suite("a")], tmp_path)
