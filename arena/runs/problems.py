"""Problems as records name them: by id, and by the hash of all that decides an outcome."""

from __future__ import annotations

import hashlib

from arena.problems.suite import problem_to_json
from arena.runs.canonical import canonical
from arena.runs.record import ProblemRef
from scoring.types import Problem


def problem_content(problem: Problem) -> bytes:
    """The problem with its reward as canonical JSON. Never for an agent."""
    return canonical(problem_to_json(problem))


def problem_ref(problem: Problem) -> ProblemRef:
    """The problem without query and reward, bound to both by their hash."""
    return ProblemRef(
        problem.problem_id,
        problem.bucket.value,
        problem.cluster,
        problem.pool,
        hashlib.sha256(problem_content(problem)).hexdigest(),
    )
