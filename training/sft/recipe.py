"""What supervised fine-tuning is set to. The other stages that learn so hold the same settings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

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
from training.sft.drills import DrillSettings


class SftSettings(Settings):
    """How samples are learnt from."""

    max_tokens: Count = 14_336
    """Longer samples are counted and left out, never cut."""
    lora: LoraSettings | None = None
    """None trains every weight."""
    optimiser: OptimiserSettings
    sweep: tuple[Positive, ...] = ()
    """Learning rates to try instead of the optimiser's; the held-out loss chooses."""
    batch: BatchSettings = BatchSettings()
    loop: LoopSettings = LoopSettings()
    held_out: Annotated[Share, Field(lt=1)] = 0.05
    """Share of the training clusters that is held out, to measure the loss on."""
    measure_every: Count = 25
    """Updates between two measurements of the held-out loss."""
    repeat: dict[Literal["product", "shop", "voucher"], Count] = Field(default_factory=dict)
    """How often the rows of a bucket come in an epoch, if not once."""
    context_loss: NotNegative = 0.0
    """Weight of predicting what the model is shown, against 1 for what it is to say. Only for
    random weights, which have to learn what text looks like."""
    drills: DrillSettings | None = None
    """Practice in copying, before the rows and beside them. Only for random weights."""
    save: Literal["merged", "adapter"] = "merged"


class SftRecipe(Recipe):
    """`stage: sft`."""

    stage: Literal[Stage.SFT]
    sft: SftSettings

    @model_validator(mode="after")
    def _some_only_for_new(self) -> SftRecipe:
        asked = {"context_loss": self.sft.context_loss, "drills": self.sft.drills}
        for name, value in asked.items():
            if value and (self.base is None or self.base.size is None):
                raise ValueError(f"{name}: for a base of random weights")
        return self
