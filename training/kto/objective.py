"""The objective of KTO over packed trajectories.

TRL estimates the KL term within a micro-batch and takes everything after the prompt for the
model's words. Here the estimate is over the whole update, and of each trajectory only the
masked tokens count, in the matched pair as in the mismatched one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from scoring.types import JsonObject
from training.exceptions import NothingToLearnError
from training.kto.recipe import KtoSettings
from training.losses.kto import balanced_weights, kl_estimate, kto_loss, mismatched
from training.optimising.loop import Loss
from training.packing import Pack, pack
from training.reference import Reference, measured_logprobs, member_sums, pack_logprobs
from training.render.checking import Scaffold, assert_mask
from training.types import Sample

Measure = Callable[[torch.nn.Module], dict[str, float]]
RECOMMEND_RATE = "recommend_rate"


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """A trajectory, and whether it succeeded."""

    sample: Sample
    desirable: bool


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some of an update's trajectories. `reference` are their log-probabilities under the
    reference, `kl` and `of` the estimate and the number of trajectories of the whole update."""

    pack: Pack
    samples: tuple[Sample, ...]
    desirable: Tensor
    reference: Tensor
    kl: Tensor
    of: int


class KtoObjective:
    """Trajectories in an order that the seed decides, both kinds in every update.

    `measure` is asked every `every` updates, and at the end; when the share of rollouts that
    recommend falls below `floor` the run stops.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        labelled: Sequence[Labelled],
        settings: KtoSettings,
        seed: int,
        scaffold: Scaffold,
        admit: Callable[[Sample], None],
        dtype: torch.dtype,
        measure: Measure | None = None,
    ) -> None:
        try:
            good, bad = balanced_weights([one.desirable for one in labelled])
        except ValueError as error:
            raise NothingToLearnError(
                str(error), remedy="give trajectories of which some succeeded and some failed"
            ) from error
        self.weights = (good, bad) if settings.weights == "balanced" else (1.0, 1.0)
        self._model = model
        self._reference = Reference(model)
        self._labelled = labelled
        self._settings = settings
        self._seed = seed
        self._scaffold = scaffold
        self._admit = admit
        self._dtype = dtype
        self._measure = measure
        self._stop: str | None = None
        # An update of one has no mismatched pair: a remainder of one joins the last update.
        self._of_epoch = max(1, round(len(labelled) / max(2, settings.batch.samples)))
        self._order = lru_cache(maxsize=2)(self._shuffled)

    @property
    def updates(self) -> int:
        """How many there are in all."""
        return max(1, round(self._settings.loop.epochs * self._of_epoch))

    def batches(self, update: int) -> list[Batch]:
        """The packs of an update, with what the reference says of them and the KL estimate."""
        chosen = self._chosen(update)
        samples = [one.sample for one in chosen]
        capacity = self._settings.batch.tokens_per_forward
        kl = self._estimate(samples, capacity)
        labels = torch.tensor([one.desirable for one in chosen])
        batches = []
        for one in pack(samples, capacity):
            members = list(one.members)
            reference = member_sums(self._reference.logprobs(one, self._dtype), one)
            batches.append(
                Batch(
                    pack=one,
                    samples=tuple(samples[i] for i in members),
                    desirable=labels[members].to(reference.device),
                    reference=reference,
                    kl=kl,
                    of=len(chosen),
                )
            )
        return batches

    def check(self, batch: Batch) -> None:
        """Every trajectory's mask, and that its cluster may be learnt from."""
        for sample, start in zip(batch.samples, batch.pack.starts, strict=True):
            end = start + len(sample)
            assert_mask(
                batch.pack.ids[start:end],
                batch.pack.mask[start:end],
                self._scaffold,
                whole_turns=False,
            )
            self._admit(sample)

    def loss(self, model: torch.nn.Module, batch: Batch) -> Loss:
        """This batch's part of the mean over the update's trajectories."""
        policy = member_sums(pack_logprobs(model, batch.pack), batch.pack)
        good, bad = self.weights
        found = kto_loss(
            policy,
            batch.reference,
            batch.desirable,
            batch.kl,
            beta=self._settings.beta,
            desirable_weight=good,
            undesirable_weight=bad,
        )
        here = len(batch.samples)
        rewards = self._settings.beta * (policy.detach() - batch.reference)
        sums = {
            "tokens": float(len(batch.pack)),
            "spoken_tokens": float(batch.pack.mask.sum()),
            "desirable": float(batch.desirable.sum()),
            "undesirable": float((~batch.desirable).sum()),
            "reward_desirable": float(rewards[batch.desirable].sum()),
            "reward_undesirable": float(rewards[~batch.desirable].sum()),
            "kl": float(batch.kl) * here / batch.of,
        }
        return Loss(found.loss * here / batch.of, sums)

    def describe(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Mean rewards of both kinds, their margin, and the KL estimate."""
        told = {"kl": sums["kl"], "spoken_tokens": sums["spoken_tokens"]}
        for kind in ("desirable", "undesirable"):
            if sums[kind]:
                told[f"reward_{kind}"] = sums[f"reward_{kind}"] / sums[kind]
        if sums["desirable"] and sums["undesirable"]:
            told["reward_margin"] = told["reward_desirable"] - told["reward_undesirable"]
        return told

    def after(self, model: torch.nn.Module, done: int) -> dict[str, float]:
        """The share of rollouts that recommend, now and then and at the end."""
        watched = self._settings.recommend
        if watched is None or self._measure is None:
            return {}
        if done % watched.every and done != self.updates:
            return {}
        measured = self._measure(model)
        rate = measured[RECOMMEND_RATE]
        if rate < watched.floor:
            self._stop = (
                f"after update {done} only {rate:.0%} of rollouts recommend something, less than"
                f" {watched.floor:.0%}"
            )
        return measured

    def stop(self) -> str | None:
        """Why the run ends before its last update, if it does."""
        return self._stop

    def state(self) -> JsonObject:
        """Whether it was stopped."""
        return {"stopped": self._stop}

    def restore(self, state: JsonObject) -> None:
        """Take that back."""
        stopped = state.get("stopped")
        self._stop = stopped if isinstance(stopped, str) else None

    def _estimate(self, samples: Sequence[Sample], capacity: int) -> Tensor:
        """z0 over the update: each trajectory under another's prompt, by policy and reference."""
        pairs = mismatched(len(samples))
        crossed = [cross(one, samples[other]) for one, other in zip(samples, pairs, strict=True)]
        policy, reference = [], []
        for one in pack(crossed, capacity):
            policy.append(member_sums(measured_logprobs(self._model, one, self._dtype), one))
            reference.append(member_sums(self._reference.logprobs(one, self._dtype), one))
        return kl_estimate(torch.cat(policy), torch.cat(reference))

    def _chosen(self, update: int) -> list[Labelled]:
        epoch, place = divmod(update, self._of_epoch)
        order, of = self._order(epoch), self._of_epoch
        ends = [round(len(order) * number / of) for number in (place, place + 1)]
        return [self._labelled[number] for number in order[ends[0] : ends[1]]]

    def _shuffled(self, epoch: int) -> tuple[int, ...]:
        """Both kinds shuffled, then spread evenly, so that every update has both if it can."""
        chance = random.Random(f"{self._seed} {epoch}")  # noqa: S311
        placed = []
        for kind in (True, False):
            numbers = [n for n, one in enumerate(self._labelled) if one.desirable is kind]
            chance.shuffle(numbers)
            placed += [
                ((place + 0.5) / len(numbers), kind, number) for place, number in enumerate(numbers)
            ]
        return tuple(number for _, _, number in sorted(placed))


def cross(prompt: Sample, completion: Sample) -> Sample:
    """The prompt of one trajectory with all that came after the prompt of another."""
    begin, other = (int(np.argmax(sample.mask)) for sample in (prompt, completion))
    return Sample(
        ids=np.concatenate((prompt.ids[:begin], completion.ids[other:])),
        mask=np.concatenate((prompt.mask[:begin], completion.mask[other:])),
        row=completion.row,
        cluster=completion.cluster,
    )
