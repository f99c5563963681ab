from __future__ import annotations

import importlib
import math
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from training.losses.kto import balanced_weights, kl_estimate, kto_loss, mismatched
from training.losses.tokens import masked_sum

torch.set_num_threads(1)

LN3 = math.log(3)


def test_the_loss_is_worked_out_by_hand() -> None:
    # β = 1, z0 = 0. Desirable, ratio ln 3: 1 - sigmoid(ln 3) = 1 - 3/4.
    # Undesirable, ratio ln 3: 1 - sigmoid(-ln 3) = 1 - 1/4.
    policy, reference = torch.tensor([LN3 - 2, LN3 - 5]), torch.tensor([-2.0, -5.0])
    out = kto_loss(policy, reference, torch.tensor([True, False]), torch.tensor(0.0), beta=1.0)
    assert out.loss.item() == pytest.approx((0.25 + 0.75) / 2)
    assert out.chosen.item() == pytest.approx(LN3)
    assert out.rejected.item() == pytest.approx(LN3)


def test_beta_and_the_kl_estimate_shift_where_a_trajectory_counts_as_good() -> None:
    # β = 0.5, z0 = 1. Desirable with ratio 1 + 2 ln 3: sigmoid(0.5 * 2 ln 3) = 3/4.
    # Undesirable with ratio 1: sigmoid(0) = 1/2.
    policy, reference = torch.tensor([1 + 2 * LN3, 1.0]), torch.zeros(2)
    out = kto_loss(policy, reference, torch.tensor([True, False]), torch.tensor(1.0), beta=0.5)
    assert out.loss.item() == pytest.approx((0.25 + 0.5) / 2)


def test_weights_multiply_the_loss_of_their_kind() -> None:
    out = kto_loss(
        torch.zeros(3),
        torch.zeros(3),
        torch.tensor([True, False, False]),
        torch.tensor(0.0),
        beta=0.02,
        desirable_weight=2.0,
        undesirable_weight=0.5,
    )
    assert out.loss.item() == pytest.approx((2 * 0.5 + 2 * 0.5 * 0.5) / 3)


def test_a_gradient_raises_what_is_desirable_and_lowers_what_is_not() -> None:
    policy = torch.zeros(2, requires_grad=True)
    out = kto_loss(
        policy, torch.zeros(2), torch.tensor([True, False]), torch.tensor(0.0), beta=0.02
    )
    torch.autograd.backward(out.loss)
    # d/dx (1 - sigmoid(βx)) at 0 is -β/4, over two trajectories.
    assert policy.grad is not None
    assert policy.grad.tolist() == pytest.approx([-0.02 / 8, 0.02 / 8])


def test_the_kl_estimate_is_a_mean_not_below_zero_without_a_gradient() -> None:
    policy = torch.tensor([-1.0, -2.0], requires_grad=True)
    assert kl_estimate(policy, torch.tensor([-2.0, -5.0])).item() == pytest.approx(2.0)
    assert kl_estimate(policy, torch.tensor([0.0, 0.0])).item() == 0
    assert not kl_estimate(policy, torch.tensor([-2.0, -5.0])).requires_grad


@given(st.integers(2, 40))
def test_a_mismatched_pair_is_never_a_trajectorys_own(count: int) -> None:
    pairs = mismatched(count)
    assert sorted(pairs) == list(range(count))
    assert all(number != other for number, other in enumerate(pairs))


def test_a_batch_of_one_is_refused() -> None:
    with pytest.raises(ValueError, match="two or more"):
        mismatched(1)


def test_the_rarer_kind_is_weighted_up() -> None:
    assert balanced_weights([True, False, False, False]) == (3.0, 1.0)
    assert balanced_weights([True, True, True, False]) == (1.0, 3.0)
    with pytest.raises(ValueError, match="2 desirable and 0 undesirable"):
        balanced_weights([True, True])


class _Scores:
    """A model for TRL: what it says of each token is fixed by its input."""

    training = False
    peft_config: dict[str, Any]

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, *, input_ids: Any, labels: Any, **_: Any) -> SimpleNamespace:
        return SimpleNamespace(
            log_probs=_token_scores(input_ids, self.scale)[:, 1:].masked_fill(
                labels[:, 1:] == -100, 0.0
            ),
            entropy=torch.zeros(input_ids.shape[0], input_ids.shape[1] - 1),
            mean_logits=torch.zeros(input_ids.shape[0], input_ids.shape[1] - 1),
        )


def _token_scores(ids: torch.Tensor, scale: float) -> torch.Tensor:
    position = torch.arange(ids.shape[1])
    return -scale * (1.0 + (ids * (position + 1) % 7) / 7.0)


@pytest.mark.filterwarnings("ignore")
def test_it_is_the_loss_of_trl_where_nothing_but_the_model_speaks() -> None:
    KTOTrainer: Any = importlib.import_module("trl").KTOTrainer  # noqa: N806
    from trl.trainer.kto_trainer import DataCollatorForUnpairedPreference

    rows: list[dict[str, Any]] = [
        {"prompt_ids": [1, 2], "completion_ids": [3, 4, 5], "label": True},
        {"prompt_ids": [6], "completion_ids": [7, 8], "label": False},
        {"prompt_ids": [9, 1, 3], "completion_ids": [2], "label": False},
    ]
    pairs = mismatched(3)
    for number, row in enumerate(rows):
        row["KL_completion_ids"] = rows[pairs[number]]["completion_ids"]
    batch = DataCollatorForUnpairedPreference(pad_token_id=0)(rows)
    policy, reference = _Scores(0.8), _Scores(1.0)
    losses: list[torch.Tensor] = []
    trainer: Any = SimpleNamespace(
        model=policy,
        ref_model=reference,
        accelerator=SimpleNamespace(device="cpu", gather_for_metrics=lambda x: x),
        calculate_KL=True,
        aux_loss_enabled=False,
        precompute_ref_logps=False,
        loss_type="kto",
        beta=0.3,
        desirable_weight=1.5,
        undesirable_weight=0.75,
        args=SimpleNamespace(gradient_checkpointing_kwargs=None),
        _metrics=_Anything(),
        _total_train_tokens=0,
        _tp_size=1,
    )
    trainer._compute_kl_logps = lambda model, batch: KTOTrainer._compute_kl_logps(
        trainer, model, batch
    )
    import trl.trainer.kto_trainer as module

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "disable_gradient_checkpointing", lambda *_: nullcontext())
        patch.setattr(module, "is_peft_model", lambda _: False)
        losses.append(KTOTrainer._compute_loss(trainer, policy, batch, return_outputs=False))

    def summed(ids: str, mask: str, scale: float) -> torch.Tensor:
        values: torch.Tensor = (_token_scores(batch[ids], scale) * batch[mask]).sum(-1)
        return values

    kl = kl_estimate(
        summed("KL_input_ids", "KL_completion_mask", 0.8),
        summed("KL_input_ids", "KL_completion_mask", 1.0),
    )
    ours = kto_loss(
        summed("input_ids", "completion_mask", 0.8),
        summed("input_ids", "completion_mask", 1.0),
        batch["label"],
        kl,
        beta=0.3,
        desirable_weight=1.5,
        undesirable_weight=0.75,
    )
    assert kl.item() > 0
    torch.testing.assert_close(ours.loss, losses[0])


class _Anything(dict[str, Any]):
    def __missing__(self, key: str) -> Any:
        value: Any = _Anything() if key in ("train", "eval") else []
        self[key] = value
        return value


class _Words:
    """A tokenizer for TRL: one token a message, ten times its role's number plus its place."""

    ROLES = ("system", "user", "assistant", "tool")

    def apply_chat_template(self, messages: Any, **_: Any) -> dict[str, list[int]]:
        return {
            "input_ids": [
                10 * self.ROLES.index(message["role"]) + place
                for place, message in enumerate(messages)
            ]
        }


@pytest.mark.filterwarnings("ignore")
def test_trl_counts_what_tools_say_as_the_models_own_words_where_ours_does_not() -> None:
    """Why this stage has a loss of its own: TRL has one mask for all after the prompt."""
    Dataset: Any = importlib.import_module("datasets").Dataset  # noqa: N806
    KTOTrainer: Any = importlib.import_module("trl").KTOTrainer  # noqa: N806
    from trl.trainer.kto_trainer import DataCollatorForUnpairedPreference

    def say(role: str) -> dict[str, str]:
        return {"role": role, "content": role}

    row = {"prompt": [say("user")], "label": True}
    row["completion"] = [say("assistant"), say("tool"), say("assistant")]
    trainer: Any = SimpleNamespace(calculate_KL=False, undesirable_weight=1, desirable_weight=1)
    arguments = SimpleNamespace(dataset_num_proc=None, max_length=None)
    prepared = KTOTrainer._prepare_dataset(
        trainer, Dataset.from_list([row]), _Words(), arguments, "train"
    )
    batch = DataCollatorForUnpairedPreference(pad_token_id=0)(list(prepared))
    assert batch["input_ids"].tolist() == [[11 - 1, 21, 32, 23]]
    assert batch["completion_mask"].tolist() == [[0, 1, 1, 1]]  # 32 is the tool's

    said = torch.tensor([[False, True, False, True]])  # as `training.render` masks it
    policy = torch.tensor([[0.0, -1.0, -7.0, -1.0]])
    assert masked_sum(policy, batch["completion_mask"]).item() == -9
    assert masked_sum(policy, said).item() == -2
