"""Which problems a corpus holds out: what may be evaluated of a model trained on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from arena.problems.partition import read_partition
from arena.problems.pools import Side
from arena.problems.suite import Suite
from corpus_export.manifest import PARTITION
from scoring.types import Problem
from training.exceptions import EvaluationError


def held_out(suites: Sequence[Suite], corpus: Path) -> tuple[Suite, ...]:
    """The suites with only those problems that the corpus's partition has for evaluation.

    Raises EvaluationError when none is, PartitionError when the partition cannot be read.
    """
    path = corpus / PARTITION
    if not path.is_file():
        raise EvaluationError(
            f"{corpus} has no {PARTITION}", remedy="give the directory of an exported corpus"
        )
    partition = read_partition(path)

    def is_held_out(problem: Problem) -> bool:
        return partition.side_of(problem.problem_id) is Side.EVALUATION

    kept = tuple(
        replace(suite, problems=tuple(filter(is_held_out, suite.problems))) for suite in suites
    )
    if not any(suite.problems for suite in kept):
        raise EvaluationError(
            f"none of the problems is held out by {corpus}",
            remedy="give the suites that its corpus was made of",
        )
    return kept
