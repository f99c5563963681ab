"""How an evaluation samples, as a recipe: `stage: eval`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from training.recipe import Recipe, Settings, Stage


class EvalSettings(Settings):
    """What decides the numbers beside model and problems."""

    agent: str = "distilled"
    """What drives the model: a shipped agent's name, or a file."""
    samples: Annotated[int, Field(ge=1, le=256)] = 1
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    """None leaves to the agent what it asks for."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    turn_tokens: Annotated[int, Field(ge=16)] | None = None
    """The most that one answer may have; None leaves it to the agent."""


class EvalRecipe(Recipe):
    """`stage: eval`."""

    stage: Literal[Stage.EVAL]
    eval: EvalSettings
