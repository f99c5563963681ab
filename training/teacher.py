"""Teacher rollouts: a stronger model works on the training problems, and ours learns from it.

The paper's stage 3: continued SFT on the rollouts of a frontier model that pass strictly
(about 210 of 498), voucher problems three times each. The teacher is any model that a server
names, asked in the same way and through the same gateway as ours. Failures are kept as well,
in `OUT/scored.jsonl.zst`: KTO learns to tell the two apart.
"""

from __future__ import annotations

from typing import Literal

from training.recipe import Recipe, Stage
from training.rollouts.recipe import SampleSettings
from training.sft.recipe import SftSettings


class TeacherRecipe(Recipe):
    """`stage: teacher`. That voucher rows come three times is said under `sft.repeat`."""

    stage: Literal[Stage.TEACHER]
    teacher: str | None = None
    """The model's name on its server, unless `--teacher` says it."""
    sample: SampleSettings = SampleSettings(samples=1, temperature=0.7, top_p=1.0, max_turns=16)
    sft: SftSettings
