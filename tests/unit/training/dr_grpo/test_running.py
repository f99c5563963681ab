"""Rollouts of a random model through the race's gateway and scorer, and updates on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from arena.problems.pools import Side
from arena.problems.suite import load_suite
from corpus_export.normalise import SYSTEM_TEXT
from corpus_export.rows import TOOLS
from tests.integration.racing import write_world
from tests.unit.training.small import SIZE, tokenizer_of
from training.backbone import Backbone, random_qwen3
from training.corpus import Guard
from training.dr_grpo.generations import Generations, read_generation
from training.dr_grpo.objective import GrpoObjective
from training.dr_grpo.recipe import GrpoSettings
from training.exceptions import NothingToLearnError
from training.kto.running import adapted
from training.on_policy import Ground, OnPolicy, open_ground, recommend_rate
from training.optimising.loop import Run, optimise
from training.recipe import LoopSettings, OptimiserSettings
from training.render.checking import Scaffold
from training.rewards.scoring import Rewarded
from training.rollouts.collecting import RolloutSettings
from training.rollouts.models import TurnSampling
from training.tokenizing.small import LEAST
from training.types import Trajectory

SETTINGS = GrpoSettings.model_validate(
    {
        "updates": 4,
        "beta": 0.01,
        "lora": {"rank": 4, "alpha": 8},
        "optimiser": OptimiserSettings(learning_rate=3e-3),
        "rollouts": {
            "problems": 1,
            "group": 3,
            "max_turns": 2,
            "turn_tokens": 6,
            "rollout_tokens": 12,
            "context": 4096,
            "refresh_every": 2,
        },
        "loop": LoopSettings(device="cpu", dtype="float32", checkpoint_every=1),
    }
)


@pytest.fixture(scope="module")
def backbone() -> Backbone:
    torch.set_num_threads(1)
    tokenizer = tokenizer_of([SYSTEM_TEXT + TOOLS] * 4, LEAST + 900)
    return random_qwen3(SIZE.model_copy(update={"context": 4096}), tokenizer, seed=1)


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    write_world(tmp_path, products=3)
    guard = Guard()
    problems = load_suite(tmp_path / "suite.jsonl").problems
    guard.allowed_problems = {p.problem_id: f"c-{p.problem_id}" for p in problems[:3]}
    with open_ground([tmp_path / "suite.jsonl"], tmp_path / "catalog.jsonl", guard) as opened:
        yield opened


class KilledError(Exception):
    pass


class Silent:
    """Ends the run after so many updates, before their checkpoint is written."""

    def __init__(self, kill_after: int | None = None) -> None:
        self.kill_after = kill_after

    def began(self, total: int, done: int) -> None:
        self.done = done

    def updated(self, done: int, values: Mapping[str, float]) -> None:
        self.values = dict(values)
        if done == self.kill_after:
            raise KilledError


def wordy(trajectory: Trajectory, /) -> Rewarded:
    """A reward that rollouts of a random model differ in: how even their tokens are."""
    said = [token for turn in trajectory.turns for token in turn.completion_ids]
    return Rewarded(sum(token % 2 == 0 for token in said) / max(1, len(said)), (0.0,))


def train(
    backbone: Backbone,
    ground: Ground,
    out: Path,
    admit: Callable[..., None] = lambda _: None,
    kill_after: int | None = None,
) -> tuple[dict[str, torch.Tensor], Silent]:
    own = replace(backbone, model=deepcopy(backbone.model))
    model = adapted(own, SETTINGS.lora, SETTINGS.loop, 0)
    settings = SETTINGS
    objective = GrpoObjective(
        model,
        settings,
        Generations(OnPolicy(model, own, 4096), ground, settings.rollouts, 7, out / "rollouts"),
        wordy,
        Scaffold.of(backbone.tokenizer),
        admit,
        torch.float32,
        lambda _: None,
    )
    watcher = Silent(kill_after)
    optimise(model, objective, Run(out, "one", 0, settings.optimiser, settings.loop), watcher)
    return {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}, watcher


def test_a_run_that_was_killed_goes_on_with_its_rollouts_to_the_same_weights(
    backbone: Backbone, ground: Ground, tmp_path: Path
) -> None:
    clusters: list[str] = []
    whole, watcher = train(
        backbone, ground, tmp_path / "a", lambda sample: clusters.append(sample.cluster)
    )
    assert watcher.values["groups_learnt"] == 1
    assert watcher.values["mismatch_kl"] < 0.05
    assert {"truncation_rate", "error_rate", "kl", "reward"} <= watcher.values.keys()
    assert set(clusters) <= set(ground.clusters.values())
    assert any(p.any() for p in whole.values())

    with pytest.raises(KilledError):
        train(backbone, ground, tmp_path / "b", kill_after=3)
    kept = sorted((tmp_path / "b" / "rollouts").iterdir())
    stamps = [path.stat().st_mtime_ns for path in kept]
    assert len(kept) == 2
    again, watcher = train(backbone, ground, tmp_path / "b")
    assert watcher.done == 2
    assert [path.stat().st_mtime_ns for path in kept] == stamps
    for name, value in whole.items():
        torch.testing.assert_close(again[name], value)


def test_rollouts_of_a_generation_were_scored_by_the_race_and_hold_what_was_sampled(
    backbone: Backbone, ground: Ground, tmp_path: Path
) -> None:
    with pytest.raises(KilledError):
        train(backbone, ground, tmp_path, kill_after=1)
    found = read_generation(tmp_path / "rollouts" / "generation-000000.jsonl.zst")
    assert len(found) == 2 * 3  # two updates of one group
    for one in found:
        assert one.outcome is not None
        assert not one.outcome.success
        for turn in one.turns:
            assert 0 < len(turn.completion_ids) <= 6
            assert len(turn.logprobs) == len(turn.completion_ids)


def test_the_recommend_rate_is_measured_on_the_model_as_it_stands(
    backbone: Backbone, ground: Ground
) -> None:
    policy = OnPolicy(backbone.model, backbone, 4096)
    settings = RolloutSettings(max_turns=1, sampling=TurnSampling(0.9, 1.0, 4))
    measured = recommend_rate(policy, ground, settings, problems=2, seed=0)(backbone.model)
    assert measured == {"recommend_rate": 0.0, "rollout_success": 0.0}


def test_only_problems_of_the_training_side_are_rolled_out_on(tmp_path: Path) -> None:
    write_world(tmp_path, products=3)
    suite, catalog = tmp_path / "suite.jsonl", tmp_path / "catalog.jsonl"
    problems = load_suite(suite).problems
    guard = Guard()
    guard.allowed_problems = {problems[0].problem_id: "c0", problems[1].problem_id: "c1"}
    guard.forbidden_clusters = {"c1": Side.EVALUATION}
    with open_ground([suite], catalog, guard) as ground:
        assert [p.problem_id for p in ground.problems] == [problems[0].problem_id]
    with (
        pytest.raises(NothingToLearnError, match="none of 5 problems"),
        open_ground([suite], catalog, Guard()),
    ):
        pass
