from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from corpus_export.normalise import SYSTEM_TEXT
from scoring.types import JsonObject
from tests.unit.training.small import SIZE, TOKENIZER_TEXTS, row, tokenizer_of
from training.backbone import load, random_qwen3, save
from training.exceptions import NothingToLearnError, OtherRunError
from training.files import write_directory
from training.kto.recipe import KtoRecipe
from training.kto.running import KtoTask, run_kto
from training.recipe import load_recipe, parse_recipe
from training.tokenizing.small import LEAST
from training.types import Sample

RECIPE = """
stage: kto
kto:
  beta: 0.5
  lora: {rank: 4, alpha: 8, targets: attention}
  optimiser: {learning_rate: 1.0e-2, schedule: constant, warm_up: 0}
  batch: {samples: 4, tokens_per_forward: 4000}
  loop: {epochs: 3, checkpoint_every: 1, device: cpu, dtype: float32}
"""


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of random weights."""
    tokenizer = tokenizer_of([SYSTEM_TEXT, *TOKENIZER_TEXTS], LEAST + 200)
    backbone = random_qwen3(SIZE, tokenizer, seed=1)
    path = tmp_path_factory.mktemp("start") / "model"
    facts: JsonObject = {"base": backbone.base.to_json()}
    write_directory(path, lambda d: save(backbone.model, tokenizer, d, facts))
    return path


def rows() -> list[JsonObject]:
    return [row(number, success=number % 2 == 0) for number in range(8)]


def task(start: Path, out: Path, rows: list[JsonObject], text: str = RECIPE) -> KtoTask:
    recipe = parse_recipe(text, "test")
    assert isinstance(recipe, KtoRecipe)
    return KtoTask(rows, admit, recipe, str(start), out, {"recipe": "test", "rows": len(rows)})


def admit(sample: Sample) -> None:
    assert sample.cluster.startswith("c")


class KilledError(Exception):
    pass


class Watching:
    def __init__(self, kill_after: int | None = None) -> None:
        self.lines: list[dict[str, float]] = []
        self.began_at = -1
        self._kill_after = kill_after

    def began(self, total: int, done: int) -> None:
        self.began_at = done

    def updated(self, done: int, values: Mapping[str, float]) -> None:
        self.lines.append(dict(values))
        if done == self._kill_after:
            raise KilledError


def test_it_learns_to_tell_them_apart_and_writes_a_model(start: Path, tmp_path: Path) -> None:
    watching = Watching()
    report = run_kto(task(start, tmp_path, rows()), watching)
    assert len(watching.lines) == 6
    assert watching.lines[-1]["reward_margin"] > watching.lines[0]["reward_margin"] + 0.01
    assert watching.lines[-1]["loss"] < watching.lines[0]["loss"]
    trajectories = report["trajectories"]
    assert isinstance(trajectories, dict)
    assert (trajectories["desirable"], trajectories["undesirable"]) == (4, 4)
    assert load(tmp_path).base.hash != load(start).base.hash
    # Found done: nothing is trained again.
    again = Watching()
    assert run_kto(task(start, tmp_path, rows()), again) == report
    assert again.lines == []


def test_killed_and_started_again_it_comes_to_the_same_weights(start: Path, tmp_path: Path) -> None:
    run_kto(task(start, tmp_path / "a", rows()), Watching())
    with pytest.raises(KilledError):
        run_kto(task(start, tmp_path / "b", rows()), Watching(kill_after=4))
    watching = Watching()
    run_kto(task(start, tmp_path / "b", rows()), watching)
    assert watching.began_at == 3
    assert load(tmp_path / "a").base.hash == load(tmp_path / "b").base.hash


def test_other_rows_are_another_run(start: Path, tmp_path: Path) -> None:
    run_kto(task(start, tmp_path, rows()), Watching())
    with pytest.raises(OtherRunError):
        run_kto(task(start, tmp_path, rows()[:6]), Watching())


def test_a_row_that_does_not_say_whether_it_succeeded_is_refused(
    start: Path, tmp_path: Path
) -> None:
    with pytest.raises(NothingToLearnError, match="does not say"):
        run_kto(task(start, tmp_path, [*rows(), row(9)]), Watching())


@pytest.mark.parametrize(("name", "beta", "epochs"), [("kto_b002", 0.02, 1), ("kto_b001", 0.01, 2)])
def test_the_papers_recipes(name: str, beta: float, epochs: float) -> None:
    recipe = load_recipe(name)
    assert isinstance(recipe, KtoRecipe)
    kto = recipe.kto
    assert (kto.beta, kto.loop.epochs, kto.max_tokens) == (beta, epochs, 16_384)
    assert kto.optimiser.learning_rate == 5e-6
    assert kto.lora is not None
    assert (kto.lora.rank, kto.lora.targets) == (16, "attention")
    assert kto.recommend is not None
    assert kto.recommend.floor == 0.9
