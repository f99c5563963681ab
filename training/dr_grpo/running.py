"""A run of Dr. GRPO: a trained model, problems of the training side, rollouts, updates.

`out/run.json` says what the run is; the same command again goes on with it, or finds it done.
`out/rollouts` holds every generation of rollouts, and the model lies in `out/model` once it is
whole.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import torch

from scoring.types import Json, JsonObject
from training.backbone import FACTS, MODEL, Backbone, load, save
from training.corpus import Corpus
from training.dr_grpo.generations import Generations
from training.dr_grpo.objective import GrpoObjective
from training.dr_grpo.recipe import GrpoRecipe, GrpoSettings
from training.exceptions import RecipeError
from training.files import read_json_file, write_directory
from training.identity import claim
from training.kto.running import adapted, weights_dtype
from training.on_policy import Ground, OnPolicy
from training.optimising.loop import Run, Watcher, choose_device, compute_dtype, optimise
from training.reference import Reference
from training.render.checking import Scaffold
from training.rewards.process import ProcessReward, load_head
from training.rewards.scoring import (
    OutcomeReward,
    Reward,
    RewardKind,
    ToolMatchReward,
    TurnLevelReward,
    read_teachers,
)
from training.types import Sample

SHOWN = (
    "reward",
    "success",
    "loss",
    "kl",
    "mismatch_kl",
    "clipped",
    "truncation_rate",
    "error_rate",
    "groups_learnt",
    "turns",
    "gradient_norm",
)


@dataclass(frozen=True, slots=True)
class GrpoTask:
    """What is to be learnt, on which problems, into which directory.

    `teachers` are rows of teacher trajectories for the reward `tool_match`, `head` the
    directory of a process-reward head for `process`.
    """

    recipe: GrpoRecipe
    start: str
    ground: Ground
    admit: Callable[[Sample], None]
    out: Path
    facts: JsonObject
    teachers: Sequence[Mapping[str, Json]] = ()
    head: Path | None = None
    tell: Callable[[str], None] = field(default=lambda _: None)


def grpo_task(
    corpora: Sequence[Corpus],
    recipe: GrpoRecipe,
    ground: Ground,
    *,
    start: str | None,
    out: Path,
    teachers: Sequence[Mapping[str, Json]] = (),
    head: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> GrpoTask:
    """The task of learning on the problems of `ground`. Raises RecipeError or GuardError."""
    chosen = start or (recipe.base.name if recipe.base else None)
    if chosen is None:
        raise RecipeError("Dr. GRPO begins with a trained model", remedy="give --from DIR")
    if recipe.grpo.reward is RewardKind.PROCESS and head is None:
        raise RecipeError("the reward `process` needs a trained head", remedy="give --head DIR")
    guard = corpora[0].guard
    hashes: list[Json] = [corpus.hash for corpus in corpora]
    problems: list[Json] = [problem.problem_id for problem in ground.problems]
    return GrpoTask(
        recipe=recipe,
        start=chosen,
        ground=ground,
        admit=lambda sample: guard.admit_sample(sample.cluster, sample.row),
        out=out,
        facts={
            "recipe": cast("JsonObject", recipe.model_dump(mode="json")),
            "corpora": hashes,
            "catalogue": ground.world.catalog.content_hash,
            "titles": ground.world.titles.name,
            "problems": problems,
        },
        teachers=teachers,
        head=head,
        tell=tell,
    )


def run_grpo(task: GrpoTask, watcher: Watcher) -> JsonObject:
    """Train, and write the model; what `training.json` then says.

    Raises RolloutError when rollouts cannot be made, and what `optimise` does.
    """
    settings, seed = task.recipe.grpo, task.recipe.seed
    device = choose_device(settings.loop)
    backbone = load(task.start, dtype=weights_dtype(settings.lora, device), device=device)
    base = backbone.base.to_json()
    identity = claim(task.out, task.facts | {"base": base, "seed": seed})
    if (task.out / MODEL / FACTS).exists():
        return read_json_file(task.out / MODEL / FACTS)
    model = adapted(backbone, settings.lora, settings.loop, seed)
    dtype = compute_dtype(settings.loop, device)
    policy = OnPolicy(model, backbone, settings.rollouts.context)
    objective = GrpoObjective(
        model,
        settings,
        Generations(policy, task.ground, settings.rollouts, seed, task.out / "rollouts"),
        open_reward(task, backbone, model, dtype),
        Scaffold.of(backbone.tokenizer),
        task.admit,
        dtype,
        task.tell,
    )
    run = Run(task.out, identity, seed, settings.optimiser, settings.loop, shown=SHOWN)
    finished = optimise(model, objective, run, watcher)
    report: JsonObject = {
        **{name: value for name, value in task.facts.items() if name != "problems"},
        "problems": len(task.ground.problems),
        "stage": "grpo",
        "base": base,
        "seed": seed,
        "parameters": backbone.parameters,
        "updates": finished.updates,
        "stopped": finished.stopped,
        "measured": cast("JsonObject", dict(finished.measured)),
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    write_directory(
        task.out / MODEL,
        lambda directory: save(model, backbone.tokenizer, directory, report, form=settings.save),
    )
    return read_json_file(task.out / MODEL / FACTS)


def open_reward(
    task: GrpoTask, backbone: Backbone, model: torch.nn.Module, dtype: torch.dtype
) -> Reward:
    """The recipe's reward. Raises RewardError or OtherBaseError when it cannot be given."""
    settings: GrpoSettings = task.recipe.grpo
    match settings.reward:
        case RewardKind.OUTCOME:
            return OutcomeReward()
        case RewardKind.TOOL_MATCH:
            return ToolMatchReward(read_teachers(task.teachers), settings.reward_weight)
        case RewardKind.TURN_LEVEL:
            problems = {problem.problem_id: problem for problem in task.ground.problems}
            return TurnLevelReward(problems, task.ground.world.catalog, task.ground.world.titles)
        case RewardKind.PROCESS:
            assert task.head is not None
            head = load_head(task.head, backbone.base.hash)
            return ProcessReward(head, Reference(model), settings.tokens_per_forward, dtype)
