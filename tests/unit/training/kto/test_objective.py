from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

from tests.unit.training.generation.models import plain_logprobs, tiny_model
from training.attention import packed_attention
from training.exceptions import MaskError, NothingToLearnError
from training.kto.objective import RECOMMEND_RATE, KtoObjective, Labelled, cross
from training.kto.recipe import KtoSettings, RecommendSettings
from training.losses.kto import kl_estimate, kto_loss
from training.recipe import BatchSettings, LoopSettings, OptimiserSettings
from training.render.checking import Scaffold
from training.types import Sample

HEADER, END, NEVER = (90, 91), 92, 93
SCAFFOLD = Scaffold(HEADER, END, frozenset({NEVER}))


def trajectory(seed: int, turns: int = 2) -> Sample:
    """A prompt, then turns of the model with what a tool said between them."""
    rng = random.Random(seed)
    ids: list[int] = []
    mask: list[bool] = []

    def add(tokens: list[int], said: bool) -> None:
        ids.extend(tokens)
        mask.extend([said] * len(tokens))

    add([rng.randrange(80) for _ in range(rng.randrange(3, 8))], False)
    for _ in range(turns):
        add([NEVER, rng.randrange(80), *HEADER], False)
        add([*(rng.randrange(80) for _ in range(rng.randrange(2, 5))), END], True)
    return Sample(np.asarray(ids, np.int32), np.asarray(mask), f"r{seed}", f"c{seed}")


def settings(**changes: Any) -> KtoSettings:
    return KtoSettings.model_validate(
        {
            "beta": 0.3,
            "lora": None,
            "optimiser": OptimiserSettings(learning_rate=1e-3),
            "batch": BatchSettings(samples=4, tokens_per_forward=60),
            "loop": LoopSettings(device="cpu", dtype="float32"),
            **changes,
        }
    )


def objective(model: torch.nn.Module, labels: list[bool], **changes: Any) -> KtoObjective:
    labelled = [Labelled(trajectory(seed), good) for seed, good in enumerate(labels)]
    measure = changes.pop("measure", None)
    return KtoObjective(
        model, labelled, settings(**changes), 3, SCAFFOLD, lambda _: None, torch.float32, measure
    )


def summed(model: Any, sample: Sample) -> float:
    """The log-probability of what the model says in a sample, one token at a time."""
    ids = sample.ids.tolist()
    logprobs = plain_logprobs(model, ids[:1], ids[1:], 1.0)
    return sum(value for value, said in zip(logprobs, sample.mask[1:], strict=True) if said)


def moved(model: Any) -> Any:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.9)  # flatter: what is unlikely becomes less so
    return model


def test_the_loss_is_that_of_each_trajectory_alone_whatever_packs_it_fell_into() -> None:
    model = tiny_model(1)
    made = objective(model, [True, False, False, True])
    reference = tiny_model(1)
    moved(model)
    batches = made.batches(0)
    assert len(batches) > 1
    with packed_attention(model):
        total = sum(float(made.loss(model, batch).value.detach()) for batch in batches)

    chosen = [sample for batch in batches for sample in batch.samples]
    ordered = made._chosen(0)
    samples = [one.sample for one in ordered]
    crossed = [cross(one, samples[i - 1]) for i, one in enumerate(samples)]
    kl = kl_estimate(
        torch.tensor([summed(model, s) for s in crossed]),
        torch.tensor([summed(reference, s) for s in crossed]),
    )
    expected = kto_loss(
        torch.tensor([summed(model, s) for s in samples]),
        torch.tensor([summed(reference, s) for s in samples]),
        torch.tensor([one.desirable for one in ordered]),
        kl,
        beta=0.3,
    )
    assert len(chosen) == 4
    assert float(kl) > 0.1
    assert total == pytest.approx(float(expected.loss), abs=1e-4)


def test_before_the_first_update_policy_and_reference_agree() -> None:
    model = tiny_model(2)
    made = objective(model, [True, False, True, False])
    with packed_attention(model):
        losses = [made.loss(model, batch) for batch in made.batches(0)]
    assert sum(float(x.value.detach()) for x in losses) == pytest.approx(0.5, abs=1e-5)
    sums = {key: sum(x.sums[key] for x in losses) for key in losses[0].sums}
    told = made.describe(sums)
    assert told["kl"] == pytest.approx(0, abs=1e-5)
    assert told["reward_margin"] == pytest.approx(0, abs=1e-4)


def test_a_mismatched_pair_is_a_prompt_with_anothers_words_and_tools() -> None:
    one, other = trajectory(1), trajectory(2)
    mixed = cross(one, other)
    begin, theirs = int(one.mask.argmax()), int(other.mask.argmax())
    assert mixed.ids.tolist() == [*one.ids[:begin].tolist(), *other.ids[theirs:].tolist()]
    assert mixed.mask.sum() == other.mask.sum()
    assert not mixed.mask[:begin].any()


def test_every_update_has_both_kinds_and_every_trajectory_comes_once_an_epoch() -> None:
    labels = [True] * 4 + [False] * 12
    made = objective(tiny_model(), labels, loop=LoopSettings(epochs=2))
    assert made.updates == 8
    rows = []
    for update in range(4):
        chosen = made._chosen(update)
        assert {one.desirable for one in chosen} == {True, False}
        rows += [one.sample.row for one in chosen]
    assert sorted(rows) == sorted(f"r{n}" for n in range(16))
    assert made._chosen(0) != made._chosen(4)


def test_the_rarer_kind_is_weighted_up() -> None:
    assert objective(tiny_model(), [True, False, False, False]).weights == (3.0, 1.0)
    assert objective(tiny_model(), [True, False, False], weights="equal").weights == (1.0, 1.0)


@pytest.mark.parametrize("labels", [[True, True], [False], []])
def test_one_kind_alone_teaches_nothing(labels: list[bool]) -> None:
    with pytest.raises(NothingToLearnError, match="both are needed"):
        objective(tiny_model(), labels)


def test_no_update_has_a_single_trajectory() -> None:
    made = objective(tiny_model(), [True, False, False, True, True], batch=BatchSettings(samples=2))
    sizes = [len(made._chosen(update)) for update in range(made.updates)]
    assert sum(sizes) == 5
    assert min(sizes) >= 2


def test_a_run_stops_when_the_model_recommends_too_rarely() -> None:
    rates = iter([0.95, 0.85])
    made = objective(
        tiny_model(),
        [True, False] * 8,
        recommend=RecommendSettings(floor=0.9, every=1),
        measure=lambda _: {RECOMMEND_RATE: next(rates)},
    )
    assert made.after(tiny_model(), 1) == {RECOMMEND_RATE: 0.95}
    assert made.stop() is None
    made.after(tiny_model(), 2)
    assert "85% of rollouts recommend" in str(made.stop())
    again = objective(tiny_model(), [True, False])
    again.restore(made.state())
    assert again.stop() == made.stop()


def test_a_mask_over_what_a_tool_said_never_reaches_a_gradient() -> None:
    made = objective(tiny_model(), [True, False])
    (batch, *_) = made.batches(0)
    batch.pack.mask[:] = True
    with pytest.raises(MaskError):
        made.check(batch)
