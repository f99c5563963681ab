"""What the whole way is set to: sizes of its world, a recipe and a budget for each stage."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from training.recipe import (
    Count,
    Positive,
    Recipe,
    Settings,
    Stage,
    load_recipe,
    parse_recipe_value,
)

Buckets = dict[Literal["product", "shop", "voucher"], Count]


class WorldSettings(Settings):
    """The world, its problems and the race that the corpus is made of."""

    products: Count
    problems: Buckets
    """Made of each bucket; the corpus holds a share of them out for evaluation."""
    seed: Annotated[int, Field(ge=0)] = 0
    max_tokens: Count = 40_000
    """Longest row of the corpus, by the exporter's estimate."""
    keep: Annotated[int, Field(ge=1, le=2)] = 1
    """Rows kept of a problem."""
    minutes: Positive
    """For each of its four steps; the race takes nearly all of it."""


class StageSettings(Settings):
    """A stage: its recipe by name or file, or written out, and its budget."""

    recipe: str | dict[str, Any]
    minutes: Positive
    """Wall clock. A stage that takes longer is ended; the same command goes on with it."""
    problems: Count | None = None
    """Training problems that its rollouts are made on, drawn by the seed; None: all."""


class MeasureSettings(Settings):
    """How every stage's model is evaluated, on problems that the corpus holds out."""

    recipe: str | dict[str, Any]
    problems: Count
    minutes: Positive
    """For each model."""


class RaceSettings(Settings):
    """The race at the end."""

    problems: Count
    """Of those held out."""
    minutes: Positive
    turn_tokens: Count = 2_048
    """The most that one answer of a trained model may have."""


class PathRecipe(Recipe):
    """`stage: all`."""

    stage: Literal[Stage.ALL]
    world: WorldSettings
    sft: StageSettings
    reject: StageSettings
    teacher: StageSettings
    kto: StageSettings
    grpo: StageSettings
    eval: MeasureSettings
    race: RaceSettings

    @field_validator("sft", "reject", "teacher", "kto", "grpo", "eval")
    @classmethod
    def _of_its_stage(cls, value: Any, info: Any) -> Any:
        found = resolved(value.recipe).stage
        if found.value != info.field_name:
            raise ValueError(f"its recipe is of stage {found.value}")
        return value


def resolved(recipe: str | dict[str, Any]) -> Recipe:
    """A stage's recipe, checked. Raises RecipeError."""
    if isinstance(recipe, str):
        return load_recipe(recipe)
    return parse_recipe_value(recipe, "a recipe that is written out")
