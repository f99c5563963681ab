"""The optimiser, and its state as tensors by name: no pickle in a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor

from training.exceptions import CheckpointError, TrainingError
from training.recipe import OptimiserSettings

_KEYS: Final = ("exp_avg", "exp_avg_sq", "step")


def trained(model: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """The parameters that are trained, by name. Raises TrainingError if there is none."""
    found = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not found:
        raise TrainingError("the model has no weight that is trained")
    return found


def make_optimiser(model: torch.nn.Module, settings: OptimiserSettings) -> torch.optim.AdamW:
    """AdamW over what is trained; vectors (norms, biases) do not decay."""
    parameters = trained(model)
    matrices = [p for p in parameters.values() if p.ndim > 1]
    vectors = [p for p in parameters.values() if p.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": settings.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=settings.learning_rate,
        betas=settings.betas,
        eps=settings.epsilon,
        fused=True,
    )


def state_of(optimiser: torch.optim.Optimizer, model: torch.nn.Module) -> dict[str, Tensor]:
    """The optimiser's tensors, by the names of the parameters."""
    tensors: dict[str, Tensor] = {}
    for name, parameter in trained(model).items():
        state: Mapping[str, Any] = optimiser.state.get(parameter, {})
        for key in _KEYS:
            if key in state:
                tensors[f"{key}/{name}"] = torch.as_tensor(state[key]).detach().contiguous()
    return tensors


def restore_state(
    optimiser: torch.optim.Optimizer, model: torch.nn.Module, tensors: Mapping[str, Tensor]
) -> None:
    """Give the optimiser what `state_of` took. Raises CheckpointError."""
    names = trained(model)
    known = {f"{key}/{name}" for name in names for key in _KEYS}
    if tensors and tensors.keys() != known:
        raise CheckpointError("the optimiser's state is that of another model")
    for name, parameter in names.items():
        if tensors:
            optimiser.state[parameter] = {
                key: tensors[f"{key}/{name}"].to(
                    parameter.device if key != "step" else tensors[f"{key}/{name}"].device
                )
                for key in _KEYS
            }
