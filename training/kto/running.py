"""A run of KTO: labelled rows, samples, an adapted model, and what came of it.

`out/run.json` says what the run is; the same command again goes on with it, or finds it done.
The model lies in `out/model` once it is whole.
"""

from __future__ import annotations

import hashlib
import resource
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch

from scoring.types import Json, JsonObject
from training.backbone import FACTS, MODEL, Backbone, add_lora, load, save
from training.corpus import Corpus, Row
from training.exceptions import NothingToLearnError, RecipeError
from training.files import read_json_file, write_directory
from training.identity import claim
from training.kto.objective import RECOMMEND_RATE, KtoObjective, Labelled, Measure
from training.kto.recipe import KtoRecipe, KtoSettings
from training.on_policy import Ground, OnPolicy, recommend_rate
from training.optimising.loop import Run, Watcher, choose_device, compute_dtype, optimise
from training.recipe import LoopSettings, LoraSettings
from training.render.chat import ChatRenderer
from training.render.checking import Scaffold
from training.render.rows import RenderedRows, render_rows
from training.rollouts.collecting import RolloutSettings
from training.rollouts.models import TurnSampling
from training.types import Sample

SHOWN = (
    "loss",
    "kl",
    "reward_margin",
    "reward_desirable",
    "reward_undesirable",
    RECOMMEND_RATE,
    "gradient_norm",
)


OpenMeasure = Callable[[torch.nn.Module, Backbone], Measure]
"""Makes what watches a model, of the model that is trained and what it is made of."""


@dataclass(frozen=True, slots=True)
class KtoTask:
    """What is to be learnt, from what, into which directory.

    `rows` were admitted by the guard; each has `success`. `measure` makes the rollouts that
    watch the recommend rate, of the model it is given.
    """

    rows: Sequence[Row]
    admit: Callable[[Sample], None]
    recipe: KtoRecipe
    start: str
    out: Path
    facts: JsonObject
    open_measure: OpenMeasure | None = None


def kto_task(
    corpora: Sequence[Corpus],
    recipe: KtoRecipe,
    *,
    start: str | None,
    out: Path,
    rows: Sequence[Row] | None = None,
    open_measure: OpenMeasure | None = None,
) -> KtoTask:
    """The task of telling apart the training rows of corpora, or `rows`. Raises GuardError."""
    chosen = start or (recipe.base.name if recipe.base else None)
    if chosen is None:
        raise RecipeError("KTO begins with a trained model", remedy="give --from DIR")
    guard = corpora[0].guard
    if rows is None:
        rows = [row for corpus in corpora for row in corpus.train()]
    for row in rows:
        guard.admit(str(row["problem_id"]), str(row["cluster"]))
    hashes: list[Json] = [corpus.hash for corpus in corpora]
    return KtoTask(
        rows=rows,
        admit=lambda sample: guard.admit_sample(sample.cluster, sample.row),
        recipe=recipe,
        start=chosen,
        out=out,
        facts={
            "recipe": cast("JsonObject", recipe.model_dump(mode="json")),
            "corpora": hashes,
            "rows": _rows_hash(rows),
        },
        open_measure=open_measure,
    )


def run_kto(task: KtoTask, watcher: Watcher) -> JsonObject:
    """Train, and write the model; what `training.json` then says.

    Raises NothingToLearnError when all rows succeeded or all failed, and what `optimise` does.
    """
    settings = task.recipe.kto
    device = choose_device(settings.loop)
    backbone = load(task.start, dtype=weights_dtype(settings.lora, device), device=device)
    base = backbone.base.to_json()
    identity = claim(task.out, task.facts | {"base": base, "seed": task.recipe.seed})
    if (task.out / MODEL / FACTS).exists():
        return read_json_file(task.out / MODEL / FACTS)
    labelled, counts = label(task.rows, ChatRenderer(backbone.tokenizer), settings)
    model = adapted(backbone, settings.lora, settings.loop, task.recipe.seed)
    objective = KtoObjective(
        model,
        labelled,
        settings,
        task.recipe.seed,
        Scaffold.of(backbone.tokenizer),
        task.admit,
        compute_dtype(settings.loop, device),
        task.open_measure(model, backbone) if task.open_measure else None,
    )
    run = Run(task.out, identity, task.recipe.seed, settings.optimiser, settings.loop, shown=SHOWN)
    finished = optimise(model, objective, run, watcher)
    desirable = sum(one.desirable for one in labelled)
    report: JsonObject = {
        **task.facts,
        "stage": "kto",
        "base": base,
        "seed": task.recipe.seed,
        "parameters": backbone.parameters,
        "updates": finished.updates,
        "stopped": finished.stopped,
        "measured": cast("JsonObject", dict(finished.measured)),
        "trajectories": {
            **counts.to_json(),
            "desirable": desirable,
            "undesirable": len(labelled) - desirable,
        },
        "weights": list(objective.weights),
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    write_directory(
        task.out / MODEL,
        lambda directory: save(model, backbone.tokenizer, directory, report, form=settings.save),
    )
    return read_json_file(task.out / MODEL / FACTS)


def watching(recipe: KtoRecipe, ground: Ground) -> OpenMeasure | None:
    """The recommend rate on some of the problems of `ground`, as the recipe has it."""
    watched = recipe.kto.recommend
    if watched is None:
        return None
    settings = RolloutSettings(
        max_turns=watched.max_turns,
        sampling=TurnSampling(watched.temperature, 1.0, watched.turn_tokens),
        seed=recipe.seed,
    )

    def opened(model: torch.nn.Module, backbone: Backbone) -> Measure:
        policy = OnPolicy(model, backbone, watched.context)
        return recommend_rate(policy, ground, settings, watched.problems, recipe.seed)

    return opened


def label(
    rows: Sequence[Row], renderer: ChatRenderer, settings: KtoSettings
) -> tuple[list[Labelled], RenderedRows]:
    """Rows as trajectories with their labels: strict success is desirable, all else is not.

    Raises NothingToLearnError when a row does not say, MaskError as rendering does.
    """
    labels: dict[str, bool] = {}
    for row in rows:
        success = row.get("success")
        if not isinstance(success, bool):
            raise NothingToLearnError(
                f"row {str(row.get('record_hash') or row.get('row'))[:80]} does not say whether"
                " it succeeded"
            )
        labels[str(row.get("record_hash") or row.get("row"))] = success
    rendered = render_rows(rows, renderer, settings.max_tokens)
    return [Labelled(sample, labels[sample.row]) for sample in rendered.samples], rendered


def _rows_hash(rows: Sequence[Row]) -> str:
    """What tells some labelled rows from others, in whatever order they come."""
    said = sorted(
        f"{row.get('record_hash') or row.get('row')} {row.get('success')}" for row in rows
    )
    return hashlib.sha256("\n".join(said).encode()).hexdigest()


def adapted(
    backbone: Backbone, lora: LoraSettings | None, loop: LoopSettings, seed: int
) -> torch.nn.Module:
    """The model that is trained: with adapters, or whole."""
    model: torch.nn.Module = backbone.model
    if loop.gradient_checkpointing:
        backbone.model.gradient_checkpointing_enable({"use_reentrant": False})
        backbone.model.enable_input_require_grads()  # type: ignore[no-untyped-call]
    if lora is not None:
        model = add_lora(backbone, lora, seed)
    return model.to(choose_device(loop))


def weights_dtype(lora: LoraSettings | None, device: torch.device) -> torch.dtype:
    """What weights are held in: a base that is not trained may be in half precision."""
    return torch.bfloat16 if lora is not None and device.type == "cuda" else torch.float32
