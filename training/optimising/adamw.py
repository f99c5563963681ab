"""The optimiser, and its state as tensors by name: no pickle in a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor

from training.exceptions import CheckpointError, TrainingError
from training.recipe import OptimiserSettings

_ADAMW: Final = ("exp_avg", "exp_avg_sq", "step")
_MUON: Final = ("momentum_buffer",)
_ENDS: Final = ("embed_tokens", "lm_head")
"""Parameters that Muon is not for: rows of them stand for tokens."""


def trained(model: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """The parameters that are trained, by name. Raises TrainingError if there is none."""
    found = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not found:
        raise TrainingError("the model has no weight that is trained")
    return found


class Optimisers:
    """Several optimisers, each for its own parameters, used as one.

    A group's `share` is its learning rate's share of the run's.
    """

    def __init__(self, *parts: torch.optim.Optimizer) -> None:
        self._parts = parts
        self._of = {p: part for part in parts for g in part.param_groups for p in g["params"]}

    def set_rate(self, rate: float) -> None:
        """The learning rate of the next step."""
        for part in self._parts:
            for group in part.param_groups:
                group["lr"] = rate * group["share"]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for part in self._parts:
            part.zero_grad(set_to_none=True)

    def step(self) -> None:
        """Change the weights."""
        for part in self._parts:
            part.step()

    def keys_of(self, parameter: torch.nn.Parameter) -> tuple[str, ...]:
        """The names of what is kept of a parameter between two steps."""
        return _MUON if isinstance(self._of[parameter], torch.optim.Muon) else _ADAMW

    def state_of(self, parameter: torch.nn.Parameter) -> dict[str, Any]:
        """What is kept of a parameter between two steps; empty before the first."""
        found: dict[str, Any] = self._of[parameter].state.get(parameter, {})
        return found

    def restore(self, parameter: torch.nn.Parameter, state: dict[str, Any]) -> None:
        """Put back what `state_of` gave."""
        self._of[parameter].state[parameter] = state


def make_optimiser(model: torch.nn.Module, settings: OptimiserSettings) -> Optimisers:
    """AdamW over what is trained, Muon over the matrices in between where it is asked for.

    Vectors (norms, biases) do not decay.
    """
    parameters = trained(model)
    for_muon = {
        name
        for name, p in parameters.items()
        if settings.muon is not None and p.ndim == 2 and not any(end in name for end in _ENDS)
    }
    matrices = [p for n, p in parameters.items() if p.ndim > 1 and n not in for_muon]
    vectors = [p for p in parameters.values() if p.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": settings.weight_decay, "share": 1.0},
        {"params": vectors, "weight_decay": 0.0, "share": 1.0},
    ]
    parts: list[torch.optim.Optimizer] = []
    if kept := [group for group in groups if group["params"]]:
        parts.append(
            torch.optim.AdamW(
                kept,
                lr=settings.learning_rate,
                betas=settings.betas,
                eps=settings.epsilon,
                fused=True,
            )
        )
    if for_muon:
        assert settings.muon is not None
        group = {
            "params": [parameters[name] for name in sorted(for_muon)],
            "share": settings.muon / settings.learning_rate,
        }
        parts.append(
            torch.optim.Muon([group], lr=settings.muon, weight_decay=settings.weight_decay)
        )
    return Optimisers(*parts)


def state_of(optimiser: Optimisers, model: torch.nn.Module) -> dict[str, Tensor]:
    """The optimiser's tensors, by the names of the parameters."""
    tensors: dict[str, Tensor] = {}
    for name, parameter in trained(model).items():
        for key, value in optimiser.state_of(parameter).items():
            tensors[f"{key}/{name}"] = torch.as_tensor(value).detach().contiguous()
    return tensors


def restore_state(
    optimiser: Optimisers, model: torch.nn.Module, tensors: Mapping[str, Tensor]
) -> None:
    """Give the optimiser what `state_of` took. Raises CheckpointError."""
    parameters = trained(model)
    known = {f"{key}/{name}" for name, p in parameters.items() for key in optimiser.keys_of(p)}
    if not tensors:
        return
    if tensors.keys() != known:
        raise CheckpointError("the optimiser's state is that of another model")
    for name, parameter in parameters.items():
        # The fused kernel wants its count of steps on the device, too.
        kept = {
            key: tensors[f"{key}/{name}"].to(parameter.device)
            for key in optimiser.keys_of(parameter)
        }
        optimiser.restore(parameter, kept)
