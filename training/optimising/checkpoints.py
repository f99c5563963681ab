"""Checkpoints of a run: whole or not there, checked when they are read.

`checkpoints/step-000050` holds what is trained (`weights.safetensors`), the optimiser's state
and `state.json` with the hashes of both, so that a file that was damaged is found by name. The
randomness of an update depends on the seed and the update alone, and is therefore no state.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from scoring.types import JsonObject
from training.exceptions import CheckpointError, OtherRunError
from training.files import (
    read_json_file,
    remove_directory,
    write_directory,
    write_json_file,
)
from training.optimising.adamw import Optimisers, restore_state, state_of, trained

SCHEMA: Final = "training-state-1"
WEIGHTS: Final = "weights.safetensors"
OPTIMISER: Final = "optimiser.safetensors"
STATE: Final = "state.json"
_NAME: Final = re.compile(r"step-(\d{6,})")


@dataclass(frozen=True, slots=True)
class Restored:
    """What a checkpoint says beside its tensors."""

    update: int
    """Updates that are done."""
    objective: JsonObject
    path: Path


class Checkpoints:
    """The checkpoints of one run. `identity` tells it from every other."""

    def __init__(self, directory: Path, identity: str, keep: int) -> None:
        self._directory = directory
        self._identity = identity
        self._keep = keep

    def save(
        self,
        update: int,
        model: torch.nn.Module,
        optimiser: Optimisers,
        objective: JsonObject,
    ) -> Path:
        """Write the checkpoint after `update` updates, then drop the oldest.

        Raises DiskFullError or CheckpointError; the ones before are then untouched.
        """
        target = self._directory / f"step-{update:06d}"
        weights = {name: p.detach().contiguous() for name, p in trained(model).items()}

        def fill(directory: Path) -> None:
            save_file(weights, directory / WEIGHTS)
            save_file(state_of(optimiser, model), directory / OPTIMISER)
            state: JsonObject = {
                "schema": SCHEMA,
                "identity": self._identity,
                "update": update,
                "objective": objective,
                "files": {name: _hash(directory / name) for name in (WEIGHTS, OPTIMISER)},
            }
            write_json_file(directory / STATE, state)

        write_directory(target, fill)
        for _, path in self.all()[: -self._keep]:
            remove_directory(path)
        return target

    def all(self) -> list[tuple[int, Path]]:
        """Those that are there, the oldest first."""
        if not self._directory.is_dir():
            return []
        found = ((_NAME.fullmatch(p.name), p) for p in self._directory.iterdir())
        return sorted((int(match[1]), path) for match, path in found if match)

    def restore(self, model: torch.nn.Module, optimiser: Optimisers) -> Restored | None:
        """Put model and optimiser where the newest checkpoint was; None when there is none.

        Raises CheckpointError for a damaged one, OtherRunError for that of another run.
        """
        there = self.all()
        if not there:
            return None
        _, path = there[-1]
        state = read_json_file(path / STATE)
        if state.get("schema") != SCHEMA:
            raise CheckpointError(
                f"{path} is of schema {str(state.get('schema'))[:40]!r}, not {SCHEMA}"
            )
        if state.get("identity") != self._identity:
            raise OtherRunError(
                f"{path} belongs to a run with another recipe, corpus or beginning",
                remedy="choose another --out",
            )
        files = cast("dict[str, str]", state["files"])
        weights, tensors = (self._read(path / name, files[name]) for name in (WEIGHTS, OPTIMISER))
        parameters = trained(model)
        if weights.keys() != parameters.keys():
            raise CheckpointError(f"{path} holds the weights of another model")
        with torch.no_grad():
            for name, parameter in parameters.items():
                if weights[name].shape != parameter.shape:
                    raise CheckpointError(f"{path}: {name} has another shape")
                parameter.copy_(weights[name])
        restore_state(optimiser, model, tensors)
        objective = cast("JsonObject", state["objective"])
        return Restored(cast("int", state["update"]), objective, path)

    def _read(self, path: Path, said: str) -> dict[str, Tensor]:
        try:
            if _hash(path) != said:
                raise CheckpointError(
                    f"{path} is damaged: its hash is another",
                    remedy=f"remove {path.parent}: the same command goes on from the one before",
                )
            loaded: Any = load_file(path)
        except OSError as error:
            raise CheckpointError(f"{path}: {error.strerror}") from error
        except SafetensorError as error:
            raise CheckpointError(f"{path} cannot be read: {str(error)[:200]}") from error
        return cast("dict[str, Tensor]", loaded)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
