"""The steps of the whole way, each a command of `arena` with its options.

Every step takes files of earlier ones and writes below the directory of the run. A stage that
had nothing to learn hands on the model that it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from training.path.recipe import PathRecipe

TRAINED: Final = ("sft", "reject", "teacher", "kto", "grpo")
"""Stages that make a model, in their order."""
BEFORE: Final[Mapping[str, str]] = {
    "reject": "sft",
    "teacher": "reject",
    "kto": "teacher",
    "grpo": "teacher",
}
"""Whose model each stage begins with: Dr. GRPO begins with the teacher's, as in the paper."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything of a run lies."""

    out: Path

    @property
    def world(self) -> Path:
        """The catalogue."""
        return self.out / "world.jsonl.gz"

    @property
    def suite(self) -> Path:
        """All problems."""
        return self.out / "suite.jsonl"

    @property
    def corpus(self) -> Path:
        """The exported corpus."""
        return self.out / "corpus"

    def practice(self, stage: str) -> Path:
        """The problems that a stage's rollouts are made on."""
        return self.out / "suites" / f"{stage}.jsonl"

    @property
    def held_out(self) -> Path:
        """The problems of evaluation and race."""
        return self.out / "suites" / "held_out.jsonl"

    def recipe(self, stage: str) -> Path:
        """A stage's recipe, as it was when the run began."""
        return self.out / "recipes" / f"{stage}.yaml"

    def model(self, stage: str) -> Path:
        """A stage's run."""
        return self.out / stage

    def evaluation(self, name: str) -> Path:
        """A model's evaluation."""
        return self.out / "evaluations" / name

    @property
    def race(self) -> Path:
        """The race at the end."""
        return self.out / "race"


@dataclass(frozen=True, slots=True)
class Step:
    """A command, what it is called, and the seconds it may take."""

    name: str
    arguments: tuple[str, ...]
    seconds: float
    may_find_nothing: bool = False
    """Whether `training.nothing_to_learn` hands the model on instead of ending the run."""


StartOf = Callable[[str], str]
"""The directory of the model that a stage begins with."""


def corpus_steps(layout: Layout, recipe: PathRecipe) -> list[Step]:
    """World, problems, a race of the stand-in shopper on them, and what is exported of it."""
    world = recipe.world
    seconds = world.minutes * 60
    counts = ",".join(f"{bucket}={count}" for bucket, count in world.problems.items())
    seed = str(world.seed)
    raced = str(layout.out / "teacher_race")
    catalog = ("--catalog", str(layout.world))
    products = ("--products", str(world.products), "--seed", seed)
    asked = ("--bucket", counts, "--seed", seed, "--out", str(layout.suite))
    rows = ("--max-tokens", str(world.max_tokens), "--keep", str(world.keep), "--seed", seed)
    limits = (*rows, "--workers", "1", "--out", str(layout.corpus))
    return [
        Step("world", ("catalog", "generate", *products, "--out", str(layout.world)), seconds),
        Step("problems", ("problems", "synthesise", *catalog, *asked), seconds),
        Step(
            "teacher_race",
            ("race", "run", "react", "--suite", str(layout.suite), *catalog, "--out", raced),
            seconds,
        ),
        Step("corpus", ("corpus", "export", "--race", raced, *catalog, *limits), seconds),
    ]


def training_step(layout: Layout, recipe: PathRecipe, stage: str, start: StartOf) -> Step:
    """One stage of training."""
    settings = getattr(recipe, stage)
    arguments = ["train", stage, "--recipe", str(layout.recipe(stage))]
    arguments += ["--corpus", str(layout.corpus), "--out", str(layout.model(stage))]
    if stage in BEFORE:
        arguments += ["--from", start(stage), "--suite", str(layout.practice(stage))]
        arguments += ["--catalog", str(layout.world)]
    if stage in ("reject", "teacher"):
        # As races of this world are scored: the corpus's were.
        arguments += ["--title", "none"]
    if stage == "teacher":
        arguments += ["--teacher-url", "standin"]
    if stage == "kto":
        # A teacher that solves everything gives no failure to tell its successes from.
        for name in ("teacher", "reject"):
            arguments += ["--scored", str(layout.model(name))]
    return Step(stage, tuple(arguments), settings.minutes * 60, may_find_nothing=stage != "sft")


def evaluation_step(layout: Layout, recipe: PathRecipe, name: str, against: Sequence[str]) -> Step:
    """The evaluation of a stage's model, or of the stand-in shopper that taught."""
    standin = name == "standin"
    arguments = ["eval", "standin" if standin else str(layout.model(name))]
    arguments += ["--suite", str(layout.held_out), "--catalog", str(layout.world)]
    arguments += ["--corpus", str(layout.corpus), "--recipe", str(layout.recipe("eval"))]
    arguments += ["--limit", str(recipe.eval.problems)]
    arguments += ["--out", str(layout.evaluation(name)), "--label", name]
    if standin:
        arguments += ["--agent", "react", "--model", "standin/shopper-1"]
    for other in against:
        arguments += ["--against", str(layout.evaluation(other))]
    return Step(f"eval-{name}", tuple(arguments), recipe.eval.minutes * 60)
