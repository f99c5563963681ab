"""How rollouts are sampled, as recipes say it. Imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from training.recipe import Count, NotNegative, Settings

if TYPE_CHECKING:
    from training.rollouts.collecting import RolloutSettings


class SampleSettings(Settings):
    """How a model is let to work on problems. The defaults are the paper's for rejection."""

    samples: Count = 8
    """Rollouts of each problem: k of the paper."""
    temperature: NotNegative = 0.9
    top_p: Annotated[float, Field(gt=0, le=1)] = 0.95
    max_turns: Count = 8
    turn_tokens: Count = 2_048
    """Longest turn; a longer one is truncated, and counted."""
    at_once: Count = 16
    """Conversations under way: the batch of a model in this process."""
    context: Count | None = None
    """Tokens of a conversation, at most; by default what the model takes."""

    def settings(self, seed: int) -> RolloutSettings:
        """As the rollouts take them."""
        from training.rollouts.collecting import RolloutSettings
        from training.rollouts.models import TurnSampling

        return RolloutSettings(
            max_turns=self.max_turns,
            sampling=TurnSampling(self.temperature, self.top_p, self.turn_tokens),
            at_once=self.at_once,
            seed=seed,
        )
