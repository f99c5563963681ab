"""Rejection sampling: a model samples its own rollouts, and learns from those that succeed.

The paper's stage 2: k = 8 at temperature 0.9 and top-p 0.95, at most 8 turns, kept at a score
of 1.0, mixed half and half with the corpus (70/30 as its ablation). What is kept lies in
`OUT/kept.jsonl.zst` as rows of the corpus's schema, every finished rollout in
`OUT/scored.jsonl.zst`; the records of all lie in `OUT/rollouts`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, cast

from pydantic import Field

from scoring.types import JsonObject
from training.corpus import in_order
from training.exceptions import NothingToLearnError
from training.recipe import Recipe, Stage
from training.rollouts.recipe import SampleSettings
from training.sft.recipe import SftSettings

if TYPE_CHECKING:
    from arena.runs.record import EncodedRecord
    from sandbox.catalog.interface import Catalog
    from training.rollouts.rollout import Task

KEPT: Final = "kept.jsonl.zst"
SCORED: Final = "scored.jsonl.zst"
ROLLOUTS: Final = "rollouts"

MixShare = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


class RejectRecipe(Recipe):
    """`stage: reject`."""

    stage: Literal[Stage.REJECT]
    sample: SampleSettings = SampleSettings()
    share: MixShare = 0.5
    """Of the rows that are learnt from, those of the rollouts; the rest is the corpus's."""
    sft: SftSettings


@dataclass(frozen=True, slots=True)
class Kept:
    """What came of rollouts: rows to imitate, all rows, and how many were left out for what."""

    rows: list[JsonObject]
    """Strict success, in the form that the corpus's gates ask for, each once."""
    scored: list[JsonObject]
    """Every rollout that holds a trajectory; `success` tells them apart."""
    left_out: Mapping[str, int]
    by_bucket: Mapping[str, int]

    def to_json(self) -> JsonObject:
        """For the report."""
        return {
            "kept": len(self.rows),
            "scored": len(self.scored),
            "left_out": dict(sorted(self.left_out.items())),
            "kept_by_bucket": dict(sorted(self.by_bucket.items())),
        }


def sift(records: Sequence[EncodedRecord], tasks: Sequence[Task], catalog: Catalog) -> Kept:
    """The rows of closed rollouts. Strict success is kept, everything else counted."""
    from corpus_export.types import Reject
    from training.rollouts.rows import distinct, scored

    asked = {task.problem.problem_id: task for task in tasks}
    good: list[JsonObject] = []
    rows: list[JsonObject] = []
    left_out: Counter[str] = Counter()
    for record in records:
        problem = cast("JsonObject", record.value["problem"])
        task = asked[cast("str", problem["problem_id"])]
        found = scored(record, task.problem.query, task.cluster, catalog)
        if isinstance(found, Reject):
            left_out[found.reason.value] += 1
            continue
        rows.append(found.row)
        if not found.success:
            left_out["no_success"] += 1
        elif found.refused is not None:
            left_out[found.refused.reason.value] += 1
        else:
            good.append(found.row)
    kept = distinct(good)
    left_out["same_as_another"] = len(good) - len(kept)
    return Kept(kept, rows, left_out, Counter(str(row["bucket"]) for row in kept))


def mixed(
    own: Sequence[JsonObject], corpus: Sequence[JsonObject], share: float, seed: int
) -> list[JsonObject]:
    """All of `own`, and so many rows of the corpus, drawn by the seed, that `own` is `share`.

    Where the corpus is smaller than that, all of it. Raises NothingToLearnError when there is
    no own row.
    """
    if not own:
        raise NothingToLearnError(
            "no rollout succeeded: there is nothing to learn from",
            remedy="begin with a model that solves some problem, or sample more of each",
        )
    wanted = min(len(corpus), round(len(own) * (1 - share) / share))
    return [*own, *random.Random(f"{seed} mixed").sample(in_order(corpus), wanted)]  # noqa: S311


def write_kept(out: Path, kept: Kept) -> None:
    """The rows into the run's directory. Raises DiskFullError."""
    from training.rollouts.rows import write_rows

    write_rows(out / SCORED, kept.scored)
    write_rows(out / KEPT, kept.rows)
