"""What the KTO stage is set to."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from training.recipe import (
    BatchSettings,
    Count,
    LoopSettings,
    LoraSettings,
    NotNegative,
    OptimiserSettings,
    Positive,
    Recipe,
    Settings,
    Share,
    Stage,
)


class RecommendSettings(Settings):
    """Rollouts that watch whether the model still recommends: KTO makes it shy."""

    floor: Share = 0.9
    """Below this share of rollouts that recommend something, the run ends."""
    every: Count = 10
    """Updates between two measurements."""
    problems: Count = 32
    """Of the training side, drawn by the seed, one rollout each."""
    temperature: NotNegative = 0.9
    max_turns: Count = 8
    turn_tokens: Count = 1_024
    context: Count | None = None
    """What a conversation may hold; by default what the model can."""


class KtoSettings(Settings):
    """How trajectories are told apart."""

    beta: Positive
    """How far the model may go from its beginning: small is far."""
    weights: Literal["balanced", "equal"] = "balanced"
    """Whether the rarer kind of trajectory is weighted up (KTO, eq. 8)."""
    max_tokens: Count = 16_384
    """Longer trajectories are counted and left out, never cut."""
    lora: LoraSettings | None = LoraSettings(targets="attention")
    optimiser: OptimiserSettings
    batch: Annotated[BatchSettings, Field(validate_default=True)] = BatchSettings()
    loop: LoopSettings = LoopSettings()
    recommend: RecommendSettings | None = None
    """None watches nothing."""
    save: Literal["merged", "adapter"] = "merged"


class KtoRecipe(Recipe):
    """`stage: kto`."""

    stage: Literal[Stage.KTO]
    kto: KtoSettings
