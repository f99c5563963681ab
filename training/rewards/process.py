"""A process-reward head: what a half-finished trajectory will come to, on each rule axis.

A small head reads the frozen backbone's hidden state where each of the model's turns ends, and
says how likely the trajectory is to meet each axis and to succeed. It is trained on finished
trajectories, whose outcome stands for all their turns. As a reward, a turn is credited with
what it adds to the expected success, so that over a rollout the credits sum to the last
expectation less the first: waiting earns nothing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from corpus_export.rows import OUTCOME_AXES
from scoring.types import Json, JsonObject
from training.attention import packed_attention
from training.exceptions import OtherBaseError, RewardError
from training.files import read_json_file, write_directory, write_json_file
from training.forward import computing_in, core_of, hidden_states, on_device
from training.packing import pack
from training.reference import Reference
from training.render.checking import runs
from training.rewards.scoring import Rewarded, outcome_reward
from training.types import Sample, Trajectory

SUCCESS: Final = "success"
TARGETS: Final = (*OUTCOME_AXES, SUCCESS)
"""What the head foretells: each rule axis as a share, and strict success."""
WEIGHTS: Final = "head.safetensors"
FACTS: Final = "head.json"
SCHEMA: Final = "process-head-1"


class ProcessHead(torch.nn.Module):
    """Hidden states to logits of `TARGETS`."""

    def __init__(self, hidden: int, width: int) -> None:
        super().__init__()
        self.hidden, self.width = hidden, width
        self.layers = torch.nn.Sequential(
            torch.nn.LayerNorm(hidden),
            torch.nn.Linear(hidden, width),
            torch.nn.GELU(),
            torch.nn.Linear(width, len(TARGETS)),
        )

    def forward(self, states: Tensor) -> Tensor:
        """Logits [N, targets] of states [N, hidden]."""
        return cast("Tensor", self.layers(states))


@dataclass(frozen=True, slots=True)
class Example:
    """A finished trajectory: what it looked like after each turn, and what came of it.

    `targets` are by `TARGETS`; NaN where the problem states no such axis.
    """

    states: Tensor
    targets: Tensor
    cluster: str


@dataclass(frozen=True, slots=True)
class HeadSettings:
    """How a head is trained."""

    width: int = 128
    epochs: int = 30
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    held_out: float = 0.2
    """Share of clusters that the head is measured on."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Measured:
    """How well a head foretells success, on clusters that it never saw.

    `brier` is the mean squared error of the expected success, `constant` that of always
    saying the training set's rate; `auc` is the chance that a success is expected above a
    failure, None when there are only the ones or the others. `after_last` are the same after
    the last turn alone.
    """

    turns: int
    brier: float
    constant: float
    auc: float | None
    auc_after_last: float | None

    def to_json(self) -> JsonObject:
        """By name."""
        return {name: getattr(self, name) for name in self.__slots__}


def turn_ends(sample: Sample) -> list[int]:
    """The last token of each of the model's turns."""
    return [end - 1 for _, end in runs(sample.mask)]


def turn_states(
    model: torch.nn.Module, samples: Sequence[Sample], capacity: int, dtype: torch.dtype
) -> list[Tensor]:
    """The frozen backbone's hidden states [turns, H] where each sample's turns end."""
    core = core_of(model)
    device = next(model.parameters()).device
    found: dict[int, Tensor] = {}
    for one in pack(samples, capacity):
        with torch.no_grad(), packed_attention(core), computing_in(dtype, device):
            hidden = hidden_states(model, one)[0]
        for member, start in zip(one.members, one.starts, strict=True):
            places = np.asarray([start + end for end in turn_ends(samples[member])])
            found[member] = hidden[on_device(places, device)].float().cpu()
    return [found[number] for number in range(len(samples))]


def targets_of(row: Mapping[str, Json]) -> Tensor:
    """What came of a row's trajectory, by `TARGETS`."""
    outcome = cast("Mapping[str, float | None]", row["outcome"])
    values = [outcome.get(name) for name in OUTCOME_AXES]
    values.append(float(bool(row["success"])))
    return torch.tensor([math.nan if value is None else float(value) for value in values])


def train_head(
    examples: Sequence[Example], settings: HeadSettings
) -> tuple[ProcessHead, Measured | None]:
    """Train a head; it, and how well it does on held-out clusters (None when there are none).

    Raises RewardError when every trajectory came out alike.
    """
    learnt, held = _split(examples, settings)
    if len({float(example.targets[-1]) for example in learnt}) < 2:
        raise RewardError(
            "every trajectory came out alike: a head would learn nothing from them",
            remedy="give rollouts of which some succeed and some fail",
        )
    states, targets = _flat(learnt)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        head = ProcessHead(states.shape[1], settings.width)
        optimiser = torch.optim.AdamW(
            head.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        for _ in range(settings.epochs):
            for chosen in torch.split(torch.randperm(len(states)), 256):
                loss = head_loss(head(states[chosen]), targets[chosen])
                optimiser.zero_grad(set_to_none=True)
                torch.autograd.backward(loss)
                optimiser.step()
    head.eval().requires_grad_(False)
    return head, _measure(head, held, float(targets[:, -1].mean())) if held else None


def head_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy with shares as soft labels, the mean over what is stated (not NaN)."""
    known = ~targets.isnan()
    each = torch.nn.functional.binary_cross_entropy_with_logits(
        logits, targets.nan_to_num(), reduction="none"
    )
    return (each * known).sum() / known.sum().clamp(min=1)


def save_head(head: ProcessHead, directory: Path, base: str, facts: JsonObject) -> None:
    """Write a head, whole or not at all. `base` is the hash of the backbone it reads."""

    def fill(target: Path) -> None:
        save_file({k: v.contiguous() for k, v in head.state_dict().items()}, target / WEIGHTS)
        size: JsonObject = {"hidden": head.hidden, "width": head.width}
        targets: list[Json] = list(TARGETS)
        written: JsonObject = {"schema": SCHEMA, "base": base, **size, "targets": targets, **facts}
        write_json_file(target / FACTS, written)

    write_directory(directory, fill)


def load_head(directory: Path, base: str) -> ProcessHead:
    """Read what `save_head` wrote. Raises OtherBaseError for a head of another backbone:
    another one's hidden states mean something else."""
    facts = read_json_file(directory / FACTS)
    if facts.get("schema") != SCHEMA or facts.get("targets") != list(TARGETS):
        raise RewardError(f"{directory} is no process-reward head of this version")
    if facts.get("base") != base:
        raise OtherBaseError(
            f"the head in {directory} reads another backbone than the one at hand",
            remedy="train a head on this one with `arena train head`",
        )
    head = ProcessHead(int(cast("int", facts["hidden"])), int(cast("int", facts["width"])))
    loaded: Any = load_file(directory / WEIGHTS)
    head.load_state_dict(loaded)
    return head.eval().requires_grad_(False)


class ProcessReward:
    """The outcome for the whole, and for each turn what it adds to the expected success.

    The hidden states come from the backbone that the head was trained on, which training
    begins with, and not from the policy as it goes on: a head cannot follow what moves.
    """

    def __init__(
        self, head: ProcessHead, reference: Reference, capacity: int, dtype: torch.dtype
    ) -> None:
        self._head, self._reference = head, reference
        self._capacity, self._dtype = capacity, dtype

    def __call__(self, trajectory: Trajectory) -> Rewarded:
        """The outcome, and a credit for each turn."""
        expected = self.expected(trajectory)
        credits, before = [], None
        for value in expected:
            credits.append(0.0 if before is None or value is None else value - before)
            before = value if value is not None else before
        return Rewarded(outcome_reward(trajectory), tuple(credits))

    def expected(self, trajectory: Trajectory) -> list[float | None]:
        """Expected success after each turn; None for a turn that no segment holds."""
        found: list[float | None] = [None] * len(trajectory.turns)
        samples = [
            Sample(segment.ids, segment.mask, trajectory.problem_id, trajectory.cluster)
            for segment in trajectory.segments
        ]
        with self._reference.model() as backbone:
            states = turn_states(backbone, samples, self._capacity, self._dtype)
        for segment, sample, here in zip(trajectory.segments, samples, states, strict=True):
            chances = torch.sigmoid(self._head(here)[:, -1]).tolist()
            for end, chance in zip(turn_ends(sample), chances, strict=True):
                found[int(segment.turn_of[end])] = float(chance)
        return found


def _split(
    examples: Sequence[Example], settings: HeadSettings
) -> tuple[list[Example], list[Example]]:
    """Whole clusters on one side, by their names and the seed."""
    learnt: list[Example] = []
    held: list[Example] = []
    for example in examples:
        told = f"process head {settings.seed} {example.cluster}".encode()
        share = int.from_bytes(hashlib.sha256(told).digest()[:8], "big") / 2**64
        (held if share < settings.held_out else learnt).append(example)
    return learnt, held


def _flat(examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
    states = torch.cat([example.states for example in examples])
    targets = torch.cat([e.targets.expand(len(e.states), -1) for e in examples])
    return states, targets


def _measure(head: ProcessHead, held: Sequence[Example], rate: float) -> Measured:
    states, targets = _flat(held)
    chances = torch.sigmoid(head(states)[:, -1])
    truth = targets[:, -1]
    last = torch.stack([torch.sigmoid(head(e.states[-1:])[0, -1]) for e in held])
    return Measured(
        turns=len(states),
        brier=float(((chances - truth) ** 2).mean()),
        constant=float(((rate - truth) ** 2).mean()),
        auc=auc(chances.tolist(), truth.tolist()),
        auc_after_last=auc(last.tolist(), [float(e.targets[-1]) for e in held]),
    )


def auc(scores: Sequence[float], truth: Sequence[float]) -> float | None:
    """Chance that a success scores above a failure, ties half; None without either."""
    good = [score for score, is_good in zip(scores, truth, strict=True) if is_good]
    bad = [score for score, is_good in zip(scores, truth, strict=True) if not is_good]
    if not good or not bad:
        return None
    wins = sum((g > b) + 0.5 * (g == b) for g in good for b in bad)
    return wins / (len(good) * len(bad))
