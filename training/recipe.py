"""Recipes: what a stage is trained with, as one YAML file each, checked before anything runs.

`load_recipe` takes a shipped name (`tiny_sft`) or a file. The line `stage:` says which model
the rest is checked against; a stage's model lives in that stage's module, which is imported
when it is asked for. Unknown keys are refused: a misspelt one would train something else.
"""

from __future__ import annotations

import importlib
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from training.exceptions import RecipeError

SHIPPED: Final = files("training.recipes")

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class Stage(StrEnum):
    """The stages of the paper, evaluation, and all of them. Values stand in recipes."""

    SFT = "sft"
    REJECT = "reject"
    TEACHER = "teacher"
    KTO = "kto"
    GRPO = "grpo"
    EVAL = "eval"
    ALL = "all"


MODELS: Final[dict[Stage, str]] = {
    Stage.SFT: "training.sft:SftRecipe",
    Stage.REJECT: "training.rejection:RejectRecipe",
    Stage.TEACHER: "training.teacher:TeacherRecipe",
    Stage.KTO: "training.kto:KtoRecipe",
    Stage.GRPO: "training.dr_grpo:GrpoRecipe",
    Stage.EVAL: "training.evaluation.recipe:EvalRecipe",
    Stage.ALL: "training.path.recipe:PathRecipe",
}
"""Where each stage's model of a recipe is."""


class Settings(BaseModel):
    """The base of everything in a recipe: frozen, and strict about names."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SizeSettings(Settings):
    """A Qwen3 made from random weights."""

    hidden: Count
    layers: Count
    heads: Count
    kv_heads: Count
    head_width: Count
    feed_forward: Count
    context: Count = 32_768
    rope_theta: Positive = 10_000.0
    tie: bool = True
    """Whether reading and writing tokens share their weights."""
    initial_scale: Positive = 0.02
    """Standard deviation of the first weights."""
    initial_mean: NotNegative = 0.0
    """Standard deviation of one vector that all tokens' first embeddings share. Attention to a
    place, such as the token before, needs something that all tokens have in common; a small
    model comes to copy in fewer tokens when it need not find that first."""
    sliding_layers: Annotated[int, Field(ge=0)] = 0
    """So many layers, from the first, see `sliding_window` tokens and no more. To copy, a model
    has to tell what came before what: where a first layer sees a few tokens it need not find that
    out, and learns to copy in far fewer tokens (docs/training.md)."""
    sliding_window: Annotated[int, Field(ge=2)] = 2
    """Itself among them."""

    @model_validator(mode="after")
    def _some_layer_sees_all(self) -> SizeSettings:
        if self.sliding_layers >= self.layers:
            raise ValueError("sliding_layers: some layer has to see the whole conversation")
        return self


class TokenizerSettings(Settings):
    """A tokenizer trained on the corpus itself."""

    vocabulary: Annotated[int, Field(ge=2_000, le=200_000)] = 8_192
    phrases: bool = True
    """Whether the system block, the same in every sample, is one token."""


class BaseSettings(Settings):
    """What training begins with, unless `--from` says it: a model by name, or a new one."""

    name: str | None = None
    """A directory, or a model of the hub: Qwen/Qwen3-4B."""
    size: SizeSettings | None = None
    tokenizer: TokenizerSettings | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> BaseSettings:
        if (self.name is None) == (self.size is None):
            raise ValueError("either name or size")
        if self.tokenizer is not None and self.size is None:
            raise ValueError("a tokenizer is trained only for a model of random weights")
        return self


class LoraSettings(Settings):
    """Low-rank adapters; the base stays as it is."""

    rank: Count = 16
    alpha: Positive = 32.0
    dropout: Share = 0.0
    targets: Literal["all", "attention"] = "all"
    """All linear layers but the head, or the four of attention alone."""


class Schedule(StrEnum):
    """How the learning rate goes on after the warm-up."""

    COSINE = "cosine"
    LINEAR = "linear"
    CONSTANT = "constant"


class OptimiserSettings(Settings):
    """AdamW and what surrounds it; Muon for matrices where it is asked for."""

    learning_rate: Positive
    schedule: Schedule = Schedule.COSINE
    warm_up: Share = 0.03
    """Share of all updates over which the rate rises from 0, in equal steps."""
    floor: Share = 0.0
    """What is left of the rate at the end, as a share of it."""
    betas: tuple[Share, Share] = (0.9, 0.999)
    epsilon: Positive = 1e-8
    weight_decay: NotNegative = 0.0
    """Not on vectors (norms, biases)."""
    muon: Positive | None = None
    """The highest learning rate of Muon, which then takes the matrices between embedding and
    head; AdamW keeps the rest at its own. For random weights."""
    clip: Positive = 1.0
    """Largest norm of a gradient."""


class BatchSettings(Settings):
    """How samples come together."""

    samples: Count = 16
    """Of one update. The last update of an epoch may have fewer; none is left out."""
    tokens_per_forward: Count = 16_384
    """Packed into one forward pass, at most; a longer sample goes alone."""


class LoopSettings(Settings):
    """How long, and how safely."""

    epochs: Positive = 1.0
    """Passes over the samples; 0.5 stops in the middle of the first."""
    checkpoint_every: Count = 50
    """Updates between two checkpoints. There is always one at the end."""
    keep_checkpoints: Count = 2
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """What is computed in; auto is bfloat16 where the device is fast with it. Trained weights
    are always held in float32."""
    device: str = "auto"
    gradient_checkpointing: bool = False
    """Makes activations again in the backward pass: slower, in a fraction of the memory."""
    threads: Annotated[int, Field(ge=1)] | None = None
    """Of the processor; by default the library's."""


class Recipe(Settings):
    """What recipes of every stage have."""

    stage: Stage
    about: str = ""
    """One line for people."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    base: BaseSettings | None = None


R = TypeVar("R", bound=Recipe)


def shipped_recipes() -> list[str]:
    """Names of the recipes in the package, sorted."""
    names = (entry.name for entry in SHIPPED.iterdir())
    return sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


def load_recipe(name_or_file: str | Path) -> Recipe:
    """A shipped recipe by name, or one from a file. Raises RecipeError."""
    text, where = _read(str(name_or_file))
    return parse_recipe(text, where)


def load_recipe_of(kind: type[R], name_or_file: str | Path) -> R:
    """The same, refused when it is of another stage than `kind`. Raises RecipeError."""
    recipe = load_recipe(name_or_file)
    if not isinstance(recipe, kind):
        raise RecipeError(
            f"{name_or_file} is a recipe of stage {recipe.stage.value}",
            remedy=f"arena train {recipe.stage.value} --recipe {name_or_file}",
        )
    return recipe


def parse_recipe(text: str, where: str) -> Recipe:
    """The recipe in a YAML text; `where` names it in errors. Raises RecipeError."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise RecipeError(f"{where} is no YAML: {' '.join(str(error).split())[:200]}") from error
    return parse_recipe_value(value, where)


def parse_recipe_value(value: object, where: str) -> Recipe:
    """The recipe in what a YAML text held; `where` names it in errors. Raises RecipeError."""
    if not isinstance(value, dict):
        raise RecipeError(f"{where} is no recipe: it has no keys")
    try:
        stage = Stage(str(value.get("stage")))
    except ValueError:
        known = ", ".join(Stage)
        raise RecipeError(f"{where}: stage is to be one of {known}") from None
    try:
        found = model_of(stage).model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "it"
        raise RecipeError(f"{where}: {place}: {first['msg']}") from None
    return found


def model_of(stage: Stage) -> type[Recipe]:
    """The pydantic model of a stage's recipes."""
    module, _, name = MODELS[stage].partition(":")
    model: type[Recipe] = getattr(importlib.import_module(module), name)
    return model


def _read(name_or_file: str) -> tuple[str, str]:
    if name_or_file in shipped_recipes():
        return (SHIPPED / f"{name_or_file}.yaml").read_text(encoding="utf-8"), name_or_file
    path = Path(name_or_file)
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise RecipeError(
            f"there is no recipe {name_or_file[:200]!r} ({reason})",
            remedy="shipped are " + ", ".join(shipped_recipes()),
        ) from error
