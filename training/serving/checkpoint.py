"""Whether a directory holds a checkpoint: looked at before torch is imported for nothing."""

from __future__ import annotations

from pathlib import Path

from training.backbone import ADAPTER, resolve
from training.exceptions import CheckpointError


def checkpoint_directory(directory: Path) -> Path:
    """The model's own directory in `directory`. Raises CheckpointError, in one line."""
    remedy = "name a directory that training wrote, with config.json and model.safetensors"
    if not directory.is_dir():
        raise CheckpointError(f"{directory} is no directory", remedy=remedy)
    found = resolve(directory)
    weights = any(path.suffix == ".safetensors" for path in found.iterdir())
    if not weights or not ((found / "config.json").is_file() or (found / ADAPTER).is_file()):
        raise CheckpointError(f"{directory} holds no checkpoint", remedy=remedy)
    return found
