"""A run that kills itself with signal 9 in the middle of an update; also its parts for tests."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from tests.unit.training.small import SIZE, TOKENIZER_TEXTS, row, tokenizer_of
from training.backbone import random_qwen3
from training.optimising.loop import Run, optimise
from training.recipe import BatchSettings, LoopSettings, OptimiserSettings
from training.render.chat import ChatRenderer
from training.render.checking import Scaffold
from training.render.rows import render_row
from training.sft.objective import SftObjective
from training.sft.recipe import SftSettings
from training.tokenizing.small import LEAST
from training.types import Sample

KILLED_AFTER = 7
TOKENIZER = tokenizer_of(TOKENIZER_TEXTS, LEAST + 100)
SETTINGS = SftSettings(
    optimiser=OptimiserSettings(learning_rate=5e-3, warm_up=0.2, weight_decay=0.1),
    batch=BatchSettings(samples=2, tokens_per_forward=900),
    loop=LoopSettings(epochs=2, checkpoint_every=2, keep_checkpoints=2, threads=1),
)


def fresh_model() -> torch.nn.Module:
    """The same random model each time, with dropout in its attention."""
    model = random_qwen3(SIZE, TOKENIZER, seed=3).model
    for module in model.modules():
        if hasattr(module, "attention_dropout"):
            module.attention_dropout = 0.1  # type: ignore[assignment]
    return model


def objective_of(*, spoil: bool = False) -> SftObjective:
    """Ten samples, ten updates."""
    renderer = ChatRenderer(TOKENIZER)
    samples = [render_row(row(n), renderer) for n in range(10)]
    if spoil:
        samples = [Sample(s.ids, np.roll(s.mask, -1), s.row, s.cluster) for s in samples]
    return SftObjective(samples, SETTINGS, 1, Scaffold.of(TOKENIZER), lambda sample: None)


def run_of(directory: Path) -> Run:
    """A run there."""
    return Run(directory, "test", 1, SETTINGS.optimiser, SETTINGS.loop)


class Killer:
    """Kills its process after so many updates."""

    def began(self, total: int, done: int) -> None:
        """Nothing yet."""

    def updated(self, done: int, values: Mapping[str, float]) -> None:
        """Now, perhaps."""
        if done == KILLED_AFTER:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    torch.set_num_threads(1)
    optimise(fresh_model(), objective_of(), run_of(Path(sys.argv[1])), Killer())
