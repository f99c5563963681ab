"""The objective of supervised fine-tuning: negative log-likelihood of what is to be said.

A token counts the same wherever it stands: the sum over an update is divided by the number of
its masked tokens (weights counted), however samples fell into packs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import torch

from scoring.types import JsonObject
from training.exceptions import CorpusRefusedError
from training.forward import head_of, hidden_states, on_device
from training.losses.tokens import masked_logprobs, sft_loss
from training.optimising.loop import Loss
from training.packing import Pack, pack
from training.render.checking import Scaffold, assert_mask
from training.sft.drills import Drill, Drills, assert_copied
from training.sft.recipe import SftSettings
from training.types import Sample

Measure = Callable[[torch.nn.Module], dict[str, float]]


@dataclass(frozen=True, slots=True)
class Batch:
    """A pack, with what it is divided by."""

    pack: Pack
    samples: tuple[Sample, ...]
    spoken: float
    """Weighted masked tokens of the whole update."""
    shown: float
    """Weighted other tokens of the whole update."""


class SftObjective:
    """Samples in an order that the seed decides, epoch by epoch; before and beside them drills,
    where the recipe has any."""

    def __init__(
        self,
        samples: Sequence[Sample],
        settings: SftSettings,
        seed: int,
        scaffold: Scaffold,
        admit: Callable[[Sample], None],
        measure: Measure | None = None,
        drills: Drills | None = None,
    ) -> None:
        if not samples:
            raise CorpusRefusedError("there is no sample to learn from")
        self._samples = samples
        self._settings = settings
        self._seed = seed
        self._scaffold = scaffold
        self._admit = admit
        self._measure = measure
        self._drills = drills
        self._first = drills.settings.updates if drills else 0
        self._of_epoch = math.ceil(len(samples) / settings.batch.samples)
        self._order = lru_cache(maxsize=2)(self._shuffled)

    @property
    def updates(self) -> int:
        """How many there are in all."""
        return self._first + max(1, round(self._settings.loop.epochs * self._of_epoch))

    def batches(self, update: int) -> list[Batch]:
        """The packs of an update."""
        chosen = self._chosen(update)
        spoken = sum(s.weight * int(s.mask.sum()) for s in chosen)
        shown = sum(s.weight * int((~s.mask).sum() - 1) for s in chosen if _is_text(s))
        return [
            Batch(one, tuple(chosen[i] for i in one.members), spoken, shown)
            for one in pack(chosen, self._settings.batch.tokens_per_forward)
        ]

    def _chosen(self, update: int) -> list[Sample]:
        if self._drills and update < self._first:
            return list(self._drills.alone(update))
        epoch, place = divmod(update - self._first, self._of_epoch)
        size = self._settings.batch.samples
        chosen = [self._samples[i] for i in self._order(epoch)[place * size : (place + 1) * size]]
        return [*chosen, *(self._drills.beside(update) if self._drills else ())]

    def check(self, batch: Batch) -> None:
        """Every sample's mask, and that its cluster may be learnt from."""
        for sample, start in zip(batch.samples, batch.pack.starts, strict=True):
            end = start + len(sample)
            ids, mask = batch.pack.ids[start:end], batch.pack.mask[start:end]
            if isinstance(sample, Drill):
                assert_copied(replace(sample, ids=ids, mask=mask))
            else:
                assert_mask(ids, mask, self._scaffold)
            self._admit(sample)

    def loss(self, model: torch.nn.Module, batch: Batch) -> Loss:
        """Of what is to be said, and with `context_loss` of what is shown, too."""
        hidden = hidden_states(model, batch.pack)
        device = hidden.device
        ids = on_device(batch.pack.ids, device)[None]
        mask = on_device(batch.pack.mask, device)[None]
        weights = on_device(batch.pack.spread([s.weight for s in batch.samples]), device)[None]
        share = self._settings.context_loss
        asked = mask
        if share and batch.shown:
            text = on_device(batch.pack.spread([_is_text(s) for s in batch.samples]), device)
            asked = mask | (text[None] > 0)
            asked[0, list(batch.pack.starts)] = False
        logprobs = masked_logprobs(hidden, head_of(model), ids, asked) * weights
        value = sft_loss(logprobs, mask, normaliser=batch.spoken)
        sums = {
            "tokens": float(len(batch.pack)),
            "spoken_tokens": float(mask.sum()),
            "spoken_loss": float(value.detach()),
        }
        if share and batch.shown:
            value = value + share * sft_loss(logprobs, asked & ~mask, normaliser=batch.shown)
        return Loss(value, sums)

    def describe(self, sums: Mapping[str, float]) -> dict[str, float]:
        """The loss of what is to be said, alone."""
        return {"spoken_loss": sums["spoken_loss"], "spoken_tokens": sums["spoken_tokens"]}

    def after(self, model: torch.nn.Module, done: int) -> dict[str, float]:
        """The held-out loss, now and then and at the end."""
        due = done % self._settings.measure_every == 0 or done == self.updates
        return self._measure(model) if due and self._measure else {}

    def stop(self) -> str | None:
        """Never before the last update."""
        return None

    def state(self) -> JsonObject:
        """None: the order follows from the seed."""
        return {}

    def restore(self, state: JsonObject) -> None:
        """Nothing to take back."""

    def _shuffled(self, epoch: int) -> tuple[int, ...]:
        order = list(range(len(self._samples)))
        random.Random(f"{self._seed} {epoch}").shuffle(order)  # noqa: S311
        return tuple(order)


def _is_text(sample: Sample) -> bool:
    """Whether what the sample shows is worth predicting: a drill's tokens are drawn by lot."""
    return not isinstance(sample, Drill)
