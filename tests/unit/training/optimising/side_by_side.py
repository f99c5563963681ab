"""One of several processes that train together; prints where its weights ended."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import torch

from tests.unit.training.optimising.killed import fresh_model, objective_of, run_of
from training.optimising.adamw import trained
from training.optimising.loop import optimise
from training.optimising.parallel import together


class Silent:
    """Watches and says nothing."""

    def began(self, total: int, done: int) -> None:
        """Nothing."""

    def updated(self, done: int, values: object) -> None:
        """Nothing."""


if __name__ == "__main__":
    torch.set_num_threads(1)
    with together():
        model = fresh_model()
        for module in model.modules():
            if hasattr(module, "attention_dropout"):
                module.attention_dropout = 0.0  # type: ignore[assignment]
        optimise(model, objective_of(), run_of(Path(sys.argv[1])), Silent())
        digest = hashlib.sha256()
        for parameter in trained(model).values():
            digest.update(parameter.detach().numpy().tobytes())
    print(digest.hexdigest())
