"""The objective of Dr. GRPO: rollouts now and then, updates on what they taught.

Rollouts of the same weights serve `refresh_every` updates; those that come later lag behind
the weights they were made with by a bounded number of updates, which the importance ratio
against the sampler's own log-probabilities corrects for and the mismatch KL measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from scoring.types import JsonObject
from training.dr_grpo.groups import GroupCounts, Lesson, learn_from
from training.dr_grpo.recipe import GrpoSettings
from training.exceptions import NothingToLearnError, RolloutError
from training.forward import on_device
from training.losses.dr_grpo import dr_grpo_loss
from training.optimising.loop import Loss
from training.packing import Pack, pack
from training.reference import Reference, pack_logprobs
from training.render.checking import Scaffold, assert_mask
from training.rewards.scoring import Reward, RewardKind
from training.types import Sample, Trajectory

RollOut = Callable[[int], Sequence[Sequence[Trajectory]]]
"""The rollouts of generation `number` with the weights as they are: for each of the updates
that it serves `problems` groups, one after the other. The same number, asked for again with
the same weights, gives the same rollouts."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some of an update's sequences, side by side, with what is known of each token."""

    pack: Pack
    samples: tuple[Sample, ...]
    sampler: Tensor
    advantages: Tensor
    reference: Tensor | None


class GrpoObjective:
    """Dr. GRPO on what `roll_out` makes. `tell` hears of updates that teach nothing."""

    def __init__(
        self,
        model: torch.nn.Module,
        settings: GrpoSettings,
        roll_out: RollOut,
        reward: Reward,
        scaffold: Scaffold,
        admit: Callable[[Sample], None],
        dtype: torch.dtype,
        tell: Tell,
    ) -> None:
        self._settings = settings
        self._roll_out = roll_out
        self._reward = reward
        self._scaffold = scaffold
        self._admit = admit
        self._dtype = dtype
        self._tell = tell
        self._reference = Reference(model) if settings.beta else None
        self._generation: tuple[int, Sequence[Sequence[Trajectory]]] | None = None
        self._counts = GroupCounts()
        self._empty = 0
        self._stop: str | None = None

    @property
    def updates(self) -> int:
        """How many there are in all."""
        return self._settings.updates

    @property
    def normaliser(self) -> float:
        """The constant that the loss of an update is divided by: all rollouts at full length.

        Not the tokens that there happen to be: an update whose rollouts are short, or whose
        groups mostly taught nothing, is a small one.
        """
        rollouts = self._settings.rollouts
        return float(rollouts.problems * rollouts.group * rollouts.rollout_tokens)

    def batches(self, update: int) -> list[Batch]:
        """The packs of an update; none when every group came out alike.

        Raises RolloutError when too many rollouts failed by no fault of the policy.
        """
        groups = self._groups(update)
        lessons, self._counts = self._learnt(groups)
        self._watch(update)
        found = []
        for one in pack([lesson.sample for lesson in lessons], self._settings.tokens_per_forward):
            members = [lessons[i] for i in one.members]
            reference = None
            if self._reference is not None:
                temperature = self._settings.rollouts.temperature
                reference = self._reference.logprobs(one, self._dtype, temperature=temperature)
            found.append(
                Batch(
                    pack=one,
                    samples=tuple(lesson.sample for lesson in members),
                    sampler=torch.from_numpy(np.concatenate([m.sampler for m in members])),
                    advantages=torch.from_numpy(np.concatenate([m.advantages for m in members])),
                    reference=reference,
                )
            )
        return found

    def check(self, batch: Batch) -> None:
        """Every sequence's mask, and that its cluster may be learnt from."""
        for sample, start in zip(batch.samples, batch.pack.starts, strict=True):
            end = start + len(sample)
            ids, mask = batch.pack.ids[start:end], batch.pack.mask[start:end]
            assert_mask(ids, mask, self._scaffold, whole_turns=False, sampled=True)
            self._admit(sample)

    def loss(self, model: torch.nn.Module, batch: Batch) -> Loss:
        """This batch's part of the update's loss."""
        settings = self._settings
        temperature = settings.rollouts.temperature
        logprobs = pack_logprobs(model, batch.pack, temperature=temperature)[None]
        device = logprobs.device
        # A pack begins with a prompt: what stands first is never the policy's.
        mask = on_device(batch.pack.mask, device)[None]
        found = dr_grpo_loss(
            logprobs,
            batch.sampler.to(device)[None],
            batch.advantages.to(device)[None],
            mask,
            normaliser=self.normaliser,
            reference=None if batch.reference is None else batch.reference[None],
            beta=settings.beta,
            clip_low=settings.clip_low,
            clip_high=settings.clip_high,
        )
        spoken = float(mask.sum())
        sums = {
            "tokens": float(len(batch.pack)),
            "spoken_tokens": spoken,
            "kl": float(found.kl) * spoken,
            "mismatch_kl": float(found.mismatch_kl) * spoken,
            "clipped": float(found.clipped) * spoken,
            "ratio": float(found.ratio) * spoken,
        }
        return Loss(found.loss, sums)

    def describe(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Reward, rates of truncation and error, groups, KL and mismatch of the update."""
        counts = self._counts
        sound = counts.rollouts - counts.errors
        told = {
            "spoken_tokens": sums.get("spoken_tokens", 0.0),
            "groups": float(counts.groups),
            "groups_learnt": float(counts.learnt),
            "groups_solved": float(counts.solved),
            "groups_failed": float(counts.failed),
            "groups_short": float(counts.short),
            "error_rate": counts.errors / counts.rollouts if counts.rollouts else 0.0,
            "truncation_rate": counts.truncated / counts.rollouts if counts.rollouts else 0.0,
            "empty_in_a_row": float(self._empty),
        }
        if sound:
            told |= {
                "reward": counts.reward / sound,
                "success": counts.successes / sound,
                "turns": counts.turns / sound,
                "rollout_tokens": counts.spoken / sound,
            }
        if spoken := sums.get("spoken_tokens"):
            for name in ("kl", "mismatch_kl", "clipped", "ratio"):
                told[name] = sums[name] / spoken
            self._distrust(told["mismatch_kl"])
        return told

    def after(self, model: torch.nn.Module, done: int) -> dict[str, float]:
        """Nothing: rollouts measure already."""
        return {}

    def stop(self) -> str | None:
        """Why the run ends before its last update, if it does."""
        return self._stop

    def state(self) -> JsonObject:
        """Empty updates in a row, and why it was stopped."""
        return {"empty": self._empty, "stopped": self._stop}

    def restore(self, state: JsonObject) -> None:
        """Take that back."""
        empty, stopped = state.get("empty"), state.get("stopped")
        self._empty = empty if isinstance(empty, int) else 0
        self._stop = stopped if isinstance(stopped, str) else None

    def _groups(self, update: int) -> Sequence[Sequence[Trajectory]]:
        """The groups of an update, out of the generation that serves it."""
        rollouts = self._settings.rollouts
        number, place = divmod(update, rollouts.refresh_every)
        if self._generation is None or self._generation[0] != number:
            self._generation = (number, self._roll_out(number))
        size = rollouts.problems
        groups = self._generation[1][place * size : (place + 1) * size]
        if not groups:
            raise NothingToLearnError(
                f"update {update + 1} has no group of rollouts: there is no problem to learn from"
            )
        return groups

    def _learnt(self, groups: Sequence[Sequence[Trajectory]]) -> tuple[list[Lesson], GroupCounts]:
        settings = self._settings
        by_turn = settings.reward in (RewardKind.TURN_LEVEL, RewardKind.PROCESS)
        weight = settings.reward_weight if by_turn else 0.0
        lessons: list[Lesson] = []
        counts = GroupCounts()
        for group in groups:
            found, counted = learn_from(group, self._reward, turn_weight=weight)
            lessons += found
            counts = counts.plus(counted)
        return lessons, counts

    def _watch(self, update: int) -> None:
        """Say, and count, what teaches nothing. Raises RolloutError."""
        counts, limits = self._counts, self._settings.stop
        if counts.errors > limits.error_rate * counts.rollouts:
            raise RolloutError(
                f"{counts.errors} of {counts.rollouts} rollouts of update {update + 1} failed by no"
                " fault of the policy; the last checkpoint is as it was",
                remedy="see what failed (`arena doctor`), then start the same command again",
            )
        if counts.learnt:
            self._empty = 0
            return
        self._empty += 1
        self._tell(
            f"update {update + 1} learns nothing: of {counts.groups} groups {counts.failed} failed"
            f" alike, {counts.solved} succeeded alike, {counts.short} had too few rollouts"
        )
        if self._empty >= limits.empty_updates:
            self._stop = (
                f"{self._empty} updates in a row had no group that differs in its rewards: the"
                " problems are too hard or too easy for this policy"
            )

    def _distrust(self, mismatch: float) -> None:
        limit = self._settings.stop.mismatch_kl
        if mismatch > limit:
            self._stop = (
                f"sampler and trainer disagree: a mismatch KL of {mismatch:.3g} a token is above"
                f" {limit:g}"
            )
