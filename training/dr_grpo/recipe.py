"""What the Dr. GRPO stage is set to."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from training.recipe import (
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
from training.rewards.scoring import RewardKind


class RolloutSettings(Settings):
    """How rollouts are made."""

    problems: Count
    """Groups of an update: B of the paper."""
    group: Annotated[int, Field(ge=2)] = 6
    """Rollouts of each problem: K of the paper."""
    temperature: Positive = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    max_turns: Count = 8
    turn_tokens: Count = 1_024
    """Longest turn; a longer one is truncated, and counted."""
    rollout_tokens: Count = 8_192
    """What all turns of a rollout may say together: the constant of the normaliser."""
    context: Count = 32_768
    refresh_every: Count = 1
    """Updates that are made on rollouts of the same weights. 1 samples anew for each."""
    staleness: Count | None = None
    """Most updates that rollouts may be behind; by default `refresh_every` decides."""

    @model_validator(mode="after")
    def _bounded(self) -> RolloutSettings:
        if self.staleness is not None and self.refresh_every - 1 > self.staleness:
            raise ValueError("refresh_every lets rollouts be staler than staleness allows")
        return self


class StopSettings(Settings):
    """When to give up: going on would only take time, or spoil the model."""

    empty_updates: Count = 8
    """Updates in a row in which every group came out alike."""
    mismatch_kl: Positive = 1.0
    """Divergence of the sampler from the trainer, a token."""
    error_rate: Share = 0.5
    """Share of an update's rollouts that failed by no fault of the policy."""


class GrpoSettings(Settings):
    """How rollouts are learnt from."""

    updates: Count
    reward: RewardKind = RewardKind.OUTCOME
    reward_weight: NotNegative = 0.5
    """Of the tool match, or of the credit of turns, beside the outcome."""
    beta: NotNegative
    """Of the anchor to the model that training begins with."""
    clip_low: Share = 0.2
    clip_high: NotNegative = 0.2
    lora: LoraSettings | None = LoraSettings()
    optimiser: OptimiserSettings
    rollouts: RolloutSettings
    stop: StopSettings = StopSettings()
    tokens_per_forward: Count = 16_384
    loop: LoopSettings = LoopSettings()
    save: Literal["merged", "adapter"] = "merged"


class GrpoRecipe(Recipe):
    """`stage: grpo`."""

    stage: Literal[Stage.GRPO]
    grpo: GrpoSettings
