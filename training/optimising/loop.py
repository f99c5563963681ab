"""The loop: batches in, updates out, a checkpoint now and then, curves all the way.

A stage is an `Objective`: which batches an update has and what their loss is. All else is
here. The same seed gives the same weights, and so does a run that was killed and started
again: whatever an update draws, it draws from (seed, update) alone.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar

import torch
from torch import Tensor

from scoring.types import JsonObject
from training.attention import packed_attention
from training.exceptions import DivergedError
from training.forward import computing_in, core_of
from training.optimising import memory, parallel
from training.optimising.adamw import Optimisers, make_optimiser, trained
from training.optimising.checkpoints import Checkpoints
from training.optimising.curves import Curves
from training.optimising.schedule import rate_at
from training.recipe import LoopSettings, OptimiserSettings

BatchT = TypeVar("BatchT")
SHOWN: Final = ("loss", "held_out_*", "learning_rate", "gradient_norm", "tokens_per_second")


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of a batch, and what else is counted in it.

    The losses of an update's batches are added, so each is to be divided already by what the
    whole update is normalised with. `sums` are added as well; `Objective.describe` makes
    measurements of them.
    """

    value: Tensor
    sums: Mapping[str, float]


class Objective(Protocol[BatchT]):
    """What a stage optimises."""

    @property
    def updates(self) -> int:
        """How many there are in all."""
        ...

    def batches(self, update: int) -> Sequence[BatchT]:
        """The batches of an update, the first being 0; rollouts are made here, in eval mode."""
        ...

    def check(self, batch: BatchT) -> None:
        """Raise MaskError when the batch would teach what the model did not say."""
        ...

    def loss(self, model: torch.nn.Module, batch: BatchT) -> Loss:
        """The loss of a batch, within `packed_attention` and mixed precision."""
        ...

    def describe(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Measurements out of an update's sums."""
        ...

    def after(self, model: torch.nn.Module, done: int) -> dict[str, float]:
        """Measurements after `done` updates, with the model in eval mode; may be none."""
        ...

    def stop(self) -> str | None:
        """Why the run is to end before its last update; None to go on."""
        ...

    def state(self) -> JsonObject:
        """What the objective itself has to remember beside weights."""
        ...

    def restore(self, state: JsonObject) -> None:
        """Take back what `state` gave."""
        ...


@dataclass(frozen=True, slots=True)
class Finished:
    """What a run came to."""

    updates: int
    stopped: str | None
    measured: Mapping[str, float]
    """The last value of each measurement."""


class Watcher(Protocol):
    """Who is told how a run goes."""

    def began(self, total: int, done: int) -> None:
        """A run of `total` updates begins, or goes on after `done`."""
        ...

    def updated(self, done: int, values: Mapping[str, float]) -> None:
        """One more update is done."""
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """Where a run lies, what it is and how it goes."""

    directory: Path
    identity: str
    seed: int
    optimiser: OptimiserSettings
    loop: LoopSettings
    shown: tuple[str, ...] = SHOWN


def optimise(
    model: torch.nn.Module,
    objective: Objective[BatchT],
    run: Run,
    watcher: Watcher,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Finished:
    """Train until the last update, from the newest checkpoint on if there is one.

    Raises DivergedError, MaskError, DiskFullError, CheckpointError, OtherRunError, and what
    the objective raises. The model is left in eval mode.
    """
    optimiser = make_optimiser(model, run.optimiser)
    checkpoints = Checkpoints(
        run.directory / "checkpoints", run.identity, run.loop.keep_checkpoints
    )
    curves = Curves(run.directory, run.shown)
    done = 0
    if restored := checkpoints.restore(model, optimiser):
        objective.restore(restored.objective)
        done = restored.update
    if parallel.is_first():
        curves.rewind(done)
    parallel.wait()
    total = objective.updates
    watcher.began(total, done)
    measured = {k: v for line in curves.read() for k, v in line.items() if k != "update"}
    stopped = objective.stop()
    while done < total and stopped is None:
        began = clock()
        values = _update(model, objective, optimiser, run, done)
        done += 1
        values["seconds"] = clock() - began
        if values["seconds"] > 0:
            values["tokens_per_second"] = values["tokens"] / values["seconds"]
        set_mode(model, training=False)
        values |= objective.after(model, done)
        if parallel.is_first():
            curves.add(done, values)
        measured |= values
        if done % memory.EVERY == 0:
            memory.give_back()
        watcher.updated(done, values)
        stopped = objective.stop()
        if done % run.loop.checkpoint_every == 0 or done == total or stopped is not None:
            if parallel.is_first():
                checkpoints.save(done, model, optimiser, objective.state())
                curves.draw()
            parallel.wait()
    set_mode(model, training=False)
    return Finished(done, stopped, measured)


def _update(
    model: torch.nn.Module,
    objective: Objective[BatchT],
    optimiser: Optimisers,
    run: Run,
    update: int,
) -> dict[str, float]:
    """One update; its measurements. Raises DivergedError before a weight is spoilt."""
    rate = rate_at(update, objective.updates, run.optimiser)
    optimiser.set_rate(rate)
    device = next(model.parameters()).device
    dtype = compute_dtype(run.loop, device)
    set_mode(model, training=False)
    batches = objective.batches(update)
    torch.manual_seed(seed_of(run.seed, update))
    set_mode(model, training=True)
    optimiser.zero_grad()
    sums: Counter[str] = Counter()
    total = 0.0
    for batch in parallel.share(batches):
        objective.check(batch)
        with packed_attention(core_of(model)):
            with computing_in(dtype, device):
                loss = objective.loss(model, batch)
            total += float(loss.value.detach())
            if not math.isfinite(total):
                break
            # Inside as well: gradient checkpointing makes the forward pass again.
            loss.value.backward()  # type: ignore[no-untyped-call]
        sums.update(loss.sums)
    # Over all processes, so that none goes on where another has to stop.
    total, sums = parallel.add_numbers(total, sums)
    if not math.isfinite(total):
        raise _diverged("loss", update, rate)
    parallel.add_gradients(model)
    norm = float(torch.nn.utils.clip_grad_norm_(trained(model).values(), run.optimiser.clip))
    if not math.isfinite(norm):
        raise _diverged("gradient", update, rate)
    optimiser.step()
    found = objective.describe(sums)
    return {
        "loss": total,
        "learning_rate": rate,
        "gradient_norm": norm,
        "tokens": float(sums["tokens"]),
        **found,
    }


def _diverged(what: str, update: int, rate: float) -> DivergedError:
    return DivergedError(
        f"the {what} of update {update + 1} is no number; the last checkpoint is as it was",
        remedy=f"a smaller learning rate than {rate:g}, or float32",
    )


def seed_of(seed: int, update: int) -> int:
    """The seed of what an update draws; unlike those of its neighbours."""
    return int.from_bytes(hashlib.sha256(f"{seed} {update}".encode()).digest()[:7])


def set_mode(model: torch.nn.Module, *, training: bool) -> None:
    """Dropout on or off. Rollouts and measurements are made with it off."""
    model.train(training)


def compute_dtype(settings: LoopSettings, device: torch.device) -> torch.dtype:
    """What is computed in on this device."""
    if settings.dtype == "auto":
        half = device.type == "cuda" and torch.cuda.is_bf16_supported()
        return torch.bfloat16 if half else torch.float32
    return torch.bfloat16 if settings.dtype == "bfloat16" else torch.float32


def choose_device(settings: LoopSettings) -> torch.device:
    """The device of a recipe; auto is a GPU where there is one."""
    if settings.device != "auto":
        return torch.device(settings.device)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
