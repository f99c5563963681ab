"""What `arena train reject` and `arena train teacher` share: rollouts shown, kept, learnt from."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from arena.runs.record import AgentRef
from sandbox.terminal import console, plain
from scoring.types import Json, JsonObject
from training.corpus import Corpus, Row
from training.on_policy import Ground
from training.recipe import Recipe
from training.rejection import KEPT, ROLLOUTS, Kept, sift, write_kept
from training.rollouts.collecting import Asking, RolloutCounts, tasks_of
from training.rollouts.keeping import Collection, keep_rollouts
from training.rollouts.recipe import SampleSettings
from training.rollouts.rollout import Rollout
from training.sft.recipe import SftSettings
from training.sft.running import Task as SftTask


@dataclass(frozen=True, slots=True)
class Asked:
    """Who makes the rollouts: `model` is its name, `hash` tells it from others of that name."""

    model: str
    hash: str
    asking: Asking
    agent: AgentRef


async def sampled(
    ground: Ground, asked: Asked, recipe: Recipe, sample: SampleSettings, out: Path
) -> tuple[Kept, RolloutCounts]:
    """Make the rollouts that are missing in `out`, and write their rows. Raises RolloutError."""
    tasks = tasks_of(
        ground.problems, lambda problem: ground.clusters[problem.problem_id], sample.samples
    )
    said: Json = recipe.model_dump(mode="json", include={"stage", "seed", "sample"})
    collection = Collection(
        out=out / ROLLOUTS,
        tasks=tasks,
        model=asked.model,
        agent=asked.agent,
        settings=sample.settings(recipe.seed),
        facts={
            "recipe": said,
            "model": asked.model,
            "model_hash": asked.hash,
            "catalog": ground.world.catalog.content_hash,
        },
    )
    solved = 0
    columns = (
        TextColumn("rollouts"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[solved]} solved"),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        shown = bars.add_task("rollouts", total=len(tasks), solved=0)

        def done(rollout: Rollout) -> None:
            nonlocal solved
            solved += rollout.success
            bars.update(shown, advance=1, solved=solved)

        records, counts = await keep_rollouts(collection, ground.world, asked.asking, done)
    kept = await asyncio.to_thread(sift, records, tasks, ground.world.catalog)
    write_kept(out, kept)
    return kept, counts


def tell(kept: Kept, counts: RolloutCounts, out: Path) -> None:
    """What came of the rollouts, in three lines."""
    told = counts.to_json()
    console.print(
        f"{told['rollouts']} rollouts now, {told['errors']} failed; "
        f"solved {cast('float', told['success_rate']):.1%}, "
        f"truncated {cast('float', told['truncation_rate']):.1%}"
    )
    reasons = ", ".join(f"{name} {count}" for name, count in sorted(kept.left_out.items()) if count)
    console.print(f"kept {len(kept.rows)} of {len(kept.scored)} ({reasons or 'all'})")
    console.print(f"the rows: {plain(str(out / KEPT))}", soft_wrap=True)


def learning(
    rows: Sequence[Row],
    corpora: Sequence[Corpus],
    settings: SftSettings,
    recipe: Recipe,
    start: str | None,
    out: Path,
) -> SftTask:
    """The task of learning from these rows, each admitted by the guard. Raises GuardError."""
    guard = corpora[0].guard
    for row in rows:
        guard.admit(str(row["problem_id"]), str(row["cluster"]))
    hashes: list[Json] = [corpus.hash for corpus in corpora]
    said = "\n".join(sorted(str(row["record_hash"]) for row in rows))
    return SftTask(
        rows=rows,
        admit=lambda sample: guard.admit_sample(sample.cluster, sample.row),
        settings=settings,
        base=recipe.base,
        start=start,
        seed=recipe.seed,
        out=out,
        facts={
            "recipe": cast("JsonObject", recipe.model_dump(mode="json")),
            "corpora": hashes,
            "rows": hashlib.sha256(said.encode()).hexdigest(),
        },
    )


def agent_of(label: str, facts: JsonObject) -> AgentRef:
    """Who records say made a rollout: a model, told by what it is made of."""
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return AgentRef(label, label, digest)
