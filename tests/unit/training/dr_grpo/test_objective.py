from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from tests.unit.training.dr_grpo.rollouts import SCAFFOLD, group
from tests.unit.training.generation.models import plain_logprobs, tiny_model
from training.attention import packed_attention
from training.dr_grpo.objective import GrpoObjective
from training.dr_grpo.recipe import GrpoSettings
from training.exceptions import GuardError, MaskError, RolloutError
from training.recipe import LoopSettings, OptimiserSettings
from training.rewards.scoring import OutcomeReward
from training.types import Sample, Trajectory

RollOut = Callable[[int], Sequence[Sequence[Trajectory]]]


def settings(**changes: Any) -> GrpoSettings:
    rollouts = {"problems": 1, "group": 2, "rollout_tokens": 10, **changes.pop("rollouts", {})}
    return GrpoSettings.model_validate(
        {
            "updates": 6,
            "beta": 0.0,
            "lora": None,
            "optimiser": OptimiserSettings(learning_rate=1e-3),
            "rollouts": rollouts,
            "tokens_per_forward": 30,
            "loop": LoopSettings(device="cpu", dtype="float32"),
            **changes,
        }
    )


def objective(
    model: torch.nn.Module,
    roll_out: RollOut,
    said: list[str] | None = None,
    admit: Callable[[Sample], None] = lambda _: None,
    **changes: Any,
) -> GrpoObjective:
    return GrpoObjective(
        model,
        settings(**changes),
        roll_out,
        OutcomeReward(),
        SCAFFOLD,
        admit,
        torch.float32,
        (said if said is not None else []).append,
    )


def total(made: GrpoObjective, model: torch.nn.Module, update: int) -> tuple[float, dict[str, Any]]:
    sums: dict[str, float] = {}
    value = 0.0
    for batch in made.batches(update):
        made.check(batch)
        with packed_attention(model):  # type: ignore[arg-type]
            loss = made.loss(model, batch)
        value += float(loss.value.detach())
        for name, one in loss.sums.items():
            sums[name] = sums.get(name, 0.0) + one
    return value, made.describe(sums)


def test_on_fresh_rollouts_the_loss_is_minus_advantage_times_tokens_over_the_constant() -> None:
    model = tiny_model(1)
    rollouts = group([True, False], model=model)
    made = objective(model, lambda _: [rollouts])
    value, told = total(made, model, 0)
    tokens = [sum(len(t.completion_ids) for t in one.turns) for one in rollouts]
    assert value == pytest.approx(-(0.5 * tokens[0] - 0.5 * tokens[1]) / (1 * 2 * 10), abs=1e-5)
    assert told["mismatch_kl"] == pytest.approx(0, abs=1e-6)
    assert told["ratio"] == pytest.approx(1, abs=1e-4)
    assert (told["reward"], told["success"], told["groups_learnt"]) == (0.5, 0.5, 1)


def test_a_step_along_the_gradient_makes_success_likelier_and_failure_less_likely() -> None:
    model = tiny_model(2)
    rollouts = group([True, False], model=model)

    def likelihood(one: Trajectory) -> float:
        return sum(
            sum(plain_logprobs(model, turn.prompt_ids, turn.completion_ids, 1.0))
            for turn in one.turns
        )

    before = [likelihood(one) for one in rollouts]
    made = objective(model, lambda _: [rollouts])
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    for batch in made.batches(0):
        with packed_attention(model):
            torch.autograd.backward(made.loss(model, batch).value)
    optimiser.step()
    after = [likelihood(one) for one in rollouts]
    assert after[0] > before[0]
    assert after[1] < before[1]


def test_the_sampler_that_lags_behind_is_measured_and_weighed() -> None:
    model = tiny_model(3)
    rollouts = group([True, False], model=model)
    made = objective(model, lambda _: [rollouts])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.02)
    _, told = total(made, model, 0)
    assert told["mismatch_kl"] > 1e-4
    assert told["ratio"] != pytest.approx(1, abs=1e-4)


def test_the_anchor_is_the_model_that_training_began_with() -> None:
    model = tiny_model(4)
    rollouts = group([True, False], model=model)
    made = objective(model, lambda _: [rollouts], beta=0.5)
    assert total(made, model, 0)[1]["kl"] == pytest.approx(0, abs=1e-6)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.05)
    assert total(made, model, 0)[1]["kl"] > 1e-3


def test_rollouts_are_made_anew_every_so_many_updates() -> None:
    asked: list[int] = []

    def roll_out(number: int) -> list[list[Trajectory]]:
        asked.append(number)
        return [group([True, False], f"{number}-{place}") for place in range(2)]

    made = objective(tiny_model(), roll_out, rollouts={"refresh_every": 2})
    problems = [batch.samples[0].row for u in range(4) for batch in made.batches(u)[:1]]
    assert asked == [0, 1]
    assert [row.partition("#")[0] for row in problems] == ["0-0", "0-1", "1-0", "1-1"]


def test_refreshing_less_often_than_staleness_allows_is_refused() -> None:
    with pytest.raises(ValueError, match="staler"):
        settings(rollouts={"refresh_every": 4, "staleness": 2})


def test_an_update_that_teaches_nothing_is_said_and_after_some_the_run_stops() -> None:
    said: list[str] = []
    made = objective(
        tiny_model(), lambda _: [group([False, False])], said, stop={"empty_updates": 2}
    )
    assert made.batches(0) == []
    assert said == [
        "update 1 learns nothing: of 1 groups 1 failed alike, 0 succeeded alike, 0 had too few"
        " rollouts"
    ]
    assert made.stop() is None
    told = made.describe({})
    assert (told["empty_in_a_row"], told["groups_failed"]) == (1, 1)
    again = objective(tiny_model(), lambda _: [group([False, False])], stop={"empty_updates": 2})
    again.restore(made.state())
    assert again.batches(1) == []
    assert "2 updates in a row" in str(again.stop())


def test_too_many_rollouts_that_fail_on_the_host_end_the_run() -> None:
    made = objective(tiny_model(), lambda _: [group([None, None, True])])
    with pytest.raises(RolloutError, match="2 of 3 rollouts of update 1 failed"):
        made.batches(0)


def test_a_sampler_of_another_model_ends_the_run() -> None:
    model = tiny_model(5)
    rollouts = group([True, False])  # says -0.5 of each token, which the model does not
    made = objective(model, lambda _: [rollouts], stop={"mismatch_kl": 0.01})
    total(made, model, 0)
    assert "sampler and trainer disagree" in str(made.stop())


def test_what_others_said_and_clusters_that_are_held_out_never_reach_a_gradient() -> None:
    made = objective(tiny_model(), lambda _: [group([True, False])])
    batch = made.batches(0)[0]
    batch.pack.mask[:] = True
    with pytest.raises(MaskError):
        made.check(batch)

    def refuse(sample: Sample) -> None:
        raise GuardError(f"cluster {sample.cluster} is evaluation")

    guarded = objective(tiny_model(), lambda _: [group([True, False])], admit=refuse)
    with pytest.raises(GuardError, match="cluster-p"):
        guarded.check(guarded.batches(0)[0])
