"""The loop: one seed, one result, also after kill -9; what goes wrong costs no checkpoint."""

from __future__ import annotations

import math
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.unit.training.optimising.killed import (
    KILLED_AFTER,
    SETTINGS,
    fresh_model,
    objective_of,
    run_of,
)
from training.exceptions import (
    CheckpointError,
    DiskFullError,
    DivergedError,
    MaskError,
    OtherRunError,
)
from training.optimising.adamw import make_optimiser
from training.optimising.checkpoints import OPTIMISER, Checkpoints
from training.optimising.curves import Curves
from training.optimising.loop import Loss, optimise, seed_of


class Quiet:
    """Watches and says nothing; may end the run."""

    def __init__(self) -> None:
        self.began_at: list[tuple[int, int]] = []
        self.done: list[int] = []

    def began(self, total: int, done: int) -> None:
        self.began_at.append((total, done))

    def updated(self, done: int, values: Mapping[str, float]) -> None:
        self.done.append(done)


def weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)


def test_the_same_seed_gives_the_same_weights_bit_for_bit(tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        model = fresh_model()
        optimise(model, objective_of(), run_of(tmp_path / name), Quiet())
        found.append(weights(model))
    assert same(*found)
    assert not same(found[0], weights(fresh_model()))


def test_after_kill_minus_nine_it_comes_to_the_same_weights(tmp_path: Path) -> None:
    whole = fresh_model()
    optimise(whole, objective_of(), run_of(tmp_path / "whole"), Quiet())
    killed = subprocess.run(
        [sys.executable, "-m", "tests.unit.training.optimising.killed", str(tmp_path / "killed")],
        cwd=Path(__file__).parents[4],
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    model, watcher = fresh_model(), Quiet()
    optimise(model, objective_of(), run_of(tmp_path / "killed"), watcher)
    ((total, went_on_after),) = watcher.began_at
    assert 0 < went_on_after <= KILLED_AFTER < total
    assert same(weights(whole), weights(model))
    # Measured once each, though some updates were made twice.
    lines = Curves(tmp_path / "killed", ()).read()
    assert [line["update"] for line in lines] == list(range(1, total + 1))
    losses = [line["loss"] for line in Curves(tmp_path / "whole", ()).read()]
    assert [line["loss"] for line in lines] == losses


def test_with_muon_a_run_that_goes_on_comes_to_the_same_weights(tmp_path: Path) -> None:
    settings = SETTINGS.optimiser.model_copy(update={"muon": 0.02})
    whole = fresh_model()
    optimise(
        whole, objective_of(), replace(run_of(tmp_path / "whole"), optimiser=settings), Quiet()
    )

    class Interrupted(Quiet):
        def updated(self, done: int, values: Mapping[str, float]) -> None:
            if done == KILLED_AFTER:
                raise KeyboardInterrupt

    run = replace(run_of(tmp_path / "parts"), optimiser=settings)
    with pytest.raises(KeyboardInterrupt):
        optimise(fresh_model(), objective_of(), run, Interrupted())
    model = fresh_model()
    optimise(model, objective_of(), run, Quiet())
    assert same(weights(whole), weights(model))


def test_muon_takes_the_matrices_in_between_and_adamw_the_rest(tmp_path: Path) -> None:
    settings = SETTINGS.optimiser.model_copy(update={"muon": 0.02})
    model = fresh_model()
    run = replace(run_of(tmp_path), optimiser=settings)
    optimise(model, objective_of(), run, Quiet())
    names = load_file(next(iter(sorted((tmp_path / "checkpoints").iterdir()))) / OPTIMISER)
    by_muon = {name.split("/")[1] for name in names if name.startswith("momentum_buffer/")}
    by_adamw = {name.split("/")[1] for name in names if name.startswith("exp_avg/")}
    assert by_muon | by_adamw == {name for name, _ in model.named_parameters()}
    assert not by_muon & by_adamw
    assert "model.embed_tokens.weight" in by_adamw
    assert all(("proj" in name) == (name in by_muon) for name in by_muon | by_adamw)


def test_dropout_is_drawn_anew_in_each_update_and_the_same_again() -> None:
    assert seed_of(1, 2) == seed_of(1, 2)
    assert len({seed_of(seed, update) for seed in range(5) for update in range(50)}) == 250


def test_the_loss_falls(tmp_path: Path) -> None:
    model = fresh_model()
    optimise(model, objective_of(), run_of(tmp_path), Quiet())
    losses = [line["loss"] for line in Curves(tmp_path, ()).read()]
    assert losses[-1] < losses[0] - 0.2


def test_a_loss_that_is_no_number_is_one_line_and_spoils_nothing(tmp_path: Path) -> None:
    model = fresh_model()
    objective = objective_of()
    sound = objective.loss

    def broken(model: torch.nn.Module, batch: object) -> Loss:
        found = sound(model, batch)  # type: ignore[arg-type]
        factor = math.nan if len(Curves(tmp_path, ()).read()) == 5 else 1.0
        return Loss(found.value * factor, found.sums)

    objective.loss = broken  # type: ignore[method-assign]
    with pytest.raises(DivergedError, match="loss of update 6 is no number") as caught:
        optimise(model, objective, run_of(tmp_path), Quiet())
    assert "learning rate" in str(caught.value.remedy)
    assert all(p.isfinite().all() for p in model.parameters())
    ((done, _), *_) = Checkpoints(tmp_path / "checkpoints", "test", 3).all()[::-1]
    assert done == 4


def test_a_gradient_that_is_no_number_is_seen_before_the_weights_are_changed(
    tmp_path: Path,
) -> None:
    model = fresh_model()
    before = weights(model)
    parameter: Any = next(iter(model.parameters()))
    parameter.register_hook(lambda gradient: gradient * math.inf)
    with pytest.raises(DivergedError, match="gradient of update 1"):
        optimise(model, objective_of(), run_of(tmp_path), Quiet())
    assert same(before, weights(model))


def test_a_wrong_mask_stops_the_run_before_the_update(tmp_path: Path) -> None:
    model = fresh_model()
    before = weights(model)
    with pytest.raises(MaskError):
        optimise(model, objective_of(spoil=True), run_of(tmp_path), Quiet())
    assert same(before, weights(model))


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file may grow beyond `size` bytes: the nearest to a full disk that a test can have."""
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_disk_that_fills_leaves_the_last_checkpoint_and_no_leftovers(tmp_path: Path) -> None:
    model = fresh_model()
    optimiser = make_optimiser(model, SETTINGS.optimiser)
    checkpoints = Checkpoints(tmp_path, "test", 3)
    checkpoints.save(1, model, optimiser, {})
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    with full_disk(10_000), pytest.raises(DiskFullError, match="no room") as caught:
        checkpoints.save(2, model, optimiser, {})
    assert "goes on" in str(caught.value.remedy)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    assert os.listdir(tmp_path) == ["step-000001"]
    restored = checkpoints.restore(model, optimiser)
    assert restored is not None
    assert restored.update == 1


def test_a_damaged_checkpoint_is_named_and_without_it_the_one_before_is_used(
    tmp_path: Path,
) -> None:
    model = fresh_model()
    optimiser = make_optimiser(model, SETTINGS.optimiser)
    checkpoints = Checkpoints(tmp_path, "test", 3)
    for update in (1, 2):
        path = checkpoints.save(update, model, optimiser, {"at": update})
    file = path / "weights.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"\x7f")
    with pytest.raises(CheckpointError, match=r"step-000002.*damaged") as caught:
        checkpoints.restore(model, optimiser)
    assert str(path) in str(caught.value.remedy)
    file.unlink()
    with pytest.raises(CheckpointError):
        checkpoints.restore(model, optimiser)
    import shutil

    shutil.rmtree(path)
    restored = checkpoints.restore(model, optimiser)
    assert restored is not None
    assert restored.objective == {"at": 1}


def test_the_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    model = fresh_model()
    optimiser = make_optimiser(model, SETTINGS.optimiser)
    Checkpoints(tmp_path, "one", 3).save(1, model, optimiser, {})
    with pytest.raises(OtherRunError):
        Checkpoints(tmp_path, "other", 3).restore(model, optimiser)


def test_the_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    model = fresh_model()
    optimiser = make_optimiser(model, SETTINGS.optimiser)
    Checkpoints(tmp_path, "test", 3).save(1, model, optimiser, {})
    other = torch.nn.Linear(2, 2)
    with pytest.raises(CheckpointError, match="another model"):
        Checkpoints(tmp_path, "test", 3).restore(other, optimiser)


def test_only_the_newest_checkpoints_are_kept(tmp_path: Path) -> None:
    model = fresh_model()
    optimiser = make_optimiser(model, SETTINGS.optimiser)
    checkpoints = Checkpoints(tmp_path, "test", 2)
    for update in range(1, 5):
        checkpoints.save(update, model, optimiser, {})
    assert [update for update, _ in checkpoints.all()] == [3, 4]


def test_checkpoints_hold_no_pickle(tmp_path: Path) -> None:
    optimise(fresh_model(), objective_of(), run_of(tmp_path), Quiet())
    (_, newest) = Checkpoints(tmp_path / "checkpoints", "test", 3).all()[-1]
    assert sorted(os.listdir(newest)) == [
        "optimiser.safetensors",
        "state.json",
        "weights.safetensors",
    ]
    assert load_file(newest / "optimiser.safetensors")


def test_a_run_that_is_done_makes_no_update_again(tmp_path: Path) -> None:
    optimise(fresh_model(), objective_of(), run_of(tmp_path), Quiet())
    watcher = Quiet()
    again = optimise(fresh_model(), objective_of(), run_of(tmp_path), watcher)
    assert watcher.done == []
    assert again.measured["loss"] > 0
