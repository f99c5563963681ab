"""From a corpus to a model: one run, gone on with, refused, compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from arena.problems.pools import Side
from neurons.cli import main
from tests.unit.training.optimising.test_loop import Quiet
from tests.unit.training.small import SIZE
from training.backbone import facts_of, load, weights_hash
from training.corpus import open_corpora
from training.exceptions import GuardError, OtherBaseError, OtherRunError
from training.recipe import BaseSettings, LoraSettings, TokenizerSettings
from training.sft.objective import Batch, SftObjective
from training.sft.recipe import SftSettings
from training.sft.running import Task, corpus_task, run_sft
from training.tokenizing.small import LEAST

BASE = BaseSettings(size=SIZE, tokenizer=TokenizerSettings(vocabulary=max(2_000, LEAST + 300)))
SETTINGS = SftSettings.model_validate(
    {
        "max_tokens": 20_000,
        "optimiser": {"learning_rate": 3e-3},
        "batch": {"samples": 4, "tokens_per_forward": 2_000},
        "loop": {"epochs": 1, "checkpoint_every": 2, "device": "cpu"},
        "held_out": 0.4,
        "measure_every": 2,
    }
)


def at(report: Any, *keys: str) -> Any:
    """What stands in a report."""
    for key in keys:
        report = report[key]
    return report


def task_of(
    corpus: Path, out: Path, settings: SftSettings = SETTINGS, start: str | None = None
) -> Task:
    return corpus_task(
        open_corpora([corpus]), settings, base=BASE, start=start, seed=2, out=out, recipe={}
    )


@pytest.fixture(scope="module")
def trained(day_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run")
    run_sft(task_of(day_corpus, out), Quiet())
    return out


def test_the_directory_holds_all_that_serving_and_the_next_stage_need(trained: Path) -> None:
    there = {path.name for path in (trained / "model").iterdir()}
    assert {"model.safetensors", "config.json", "tokenizer.json", "training.json"} <= there
    assert (trained / "curves.svg").read_text().startswith("<svg")
    facts = facts_of(trained)
    assert facts["stage"] == "sft"
    assert facts["seed"] == 2
    assert len(at(facts, "corpora")) == 1
    assert set(at(facts, "measured")) >= {
        "held_out_loss",
        "held_out_accuracy",
        "held_out_recommended_digits",
        "held_out_recommended_whole",
    }
    assert at(facts, "rows", "learnt", "samples") > 0
    assert at(facts, "rows", "held_out", "samples") > 0


def test_what_was_saved_is_loaded_with_its_hash(trained: Path) -> None:
    backbone = load(trained)
    assert backbone.base.hash == weights_hash(trained / "model")
    assert not backbone.model.training
    ids = torch.tensor([[1, 2, 3]])
    again = load(trained / "model")
    assert torch.equal(backbone.model(ids).logits, again.model(ids).logits)


def test_the_same_command_again_finds_it_done(day_corpus: Path, trained: Path) -> None:
    watcher = Quiet()
    before = weights_hash(trained / "model")
    report = run_sft(task_of(day_corpus, trained), watcher)
    assert watcher.began_at == []
    assert report == facts_of(trained)
    assert weights_hash(trained / "model") == before


def test_another_seed_or_recipe_in_the_same_directory_is_refused(
    day_corpus: Path, trained: Path
) -> None:
    other = SETTINGS.model_copy(update={"max_tokens": 19_999})
    task = corpus_task(
        open_corpora([day_corpus]),
        other,
        base=BASE,
        start=None,
        seed=2,
        out=trained,
        recipe={"changed": True},
    )
    with pytest.raises(OtherRunError, match="another recipe"):
        run_sft(task, Quiet())


def test_another_base_in_the_same_directory_is_refused(day_corpus: Path, trained: Path) -> None:
    with pytest.raises(OtherBaseError):
        run_sft(task_of(day_corpus, trained, start=str(trained / "model")), Quiet())


def test_a_second_stage_begins_where_the_first_ended(
    day_corpus: Path, trained: Path, tmp_path: Path
) -> None:
    small = SETTINGS.model_copy(
        update={"lora": LoraSettings(rank=2, targets="attention"), "save": "adapter"}
    )
    report = run_sft(task_of(day_corpus, tmp_path, small, start=str(trained)), Quiet())
    assert at(report, "base", "hash") == weights_hash(trained / "model")
    adapter = load_file(tmp_path / "model" / "adapter_model.safetensors")
    assert {name.split(".")[-3] for name in adapter} == {"q_proj", "k_proj", "v_proj", "o_proj"}
    ids = torch.tensor([[1, 2, 3]])
    base, adapted = load(trained), load(tmp_path)
    assert not torch.equal(base.model(ids).logits, adapted.model(ids).logits)
    names = ("model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight")
    changed = [
        not torch.equal(one.state_dict()[name], other.state_dict()[name])
        for name in names
        for one, other in [(base.model, adapted.model)]
    ]
    assert changed == [False, True]


def test_an_adapter_whose_base_is_another_now_is_refused(
    day_corpus: Path, trained: Path, tmp_path: Path
) -> None:
    import shutil

    base = shutil.copytree(trained / "model", tmp_path / "base")
    small = SETTINGS.model_copy(update={"lora": LoraSettings(rank=2), "save": "adapter"})
    run_sft(task_of(day_corpus, tmp_path / "out", small, start=str(base)), Quiet())
    config = base / "config.json"
    config.write_text(config.read_text().replace("}", " }"))
    with pytest.raises(OtherBaseError, match="another base"):
        load(tmp_path / "out")


@pytest.mark.parametrize("rates", [(1e-9, 3e-3), (3e-3, 1e-9)])
def test_the_held_out_loss_chooses_among_learning_rates(
    day_corpus: Path, tmp_path: Path, rates: tuple[float, float]
) -> None:
    sweep = SETTINGS.model_copy(update={"sweep": rates})
    report = run_sft(task_of(day_corpus, tmp_path, sweep), Quiet())
    assert report["learning_rate"] == 3e-3
    first, second = (at(one, "measured", "held_out_loss") for one in at(report, "sweep"))
    assert (second < first) == (rates[1] == 3e-3)
    weights = load_file(tmp_path / "model" / "model.safetensors")
    best = sorted((tmp_path / "lr-0.003" / "checkpoints").iterdir())[-1]
    expected = load_file(best / "weights.safetensors")
    assert all(torch.equal(weights[name], expected[name]) for name in weights)


def test_rows_of_a_bucket_come_as_often_as_the_recipe_says(
    day_corpus: Path, tmp_path: Path
) -> None:
    plain = run_sft(task_of(day_corpus, tmp_path / "one"), Quiet())
    buckets = [row["bucket"] for row in open_corpora([day_corpus])[0].train()]
    thrice = SETTINGS.model_copy(update={"repeat": {"voucher": 3, "product": 3, "shop": 3}})
    repeated = run_sft(task_of(day_corpus, tmp_path / "two", thrice), Quiet())
    count = [at(r, "rows", "learnt", "samples") for r in (plain, repeated)]
    assert set(buckets) == {"product", "shop", "voucher"}
    assert count[1] == 3 * count[0]


def test_no_cluster_of_evaluation_comes_to_an_update(
    day_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpora = open_corpora([day_corpus])
    learnt: list[str] = []
    check = SftObjective.check

    def seen(self: SftObjective, batch: Batch) -> None:
        learnt.extend(sample.cluster for sample in batch.samples)
        check(self, batch)

    monkeypatch.setattr(SftObjective, "check", seen)
    run_sft(task_of(day_corpus, tmp_path), Quiet())
    assert learnt
    assert not set(learnt) & {str(row["cluster"]) for row in corpora[0].evaluation()}


def test_a_cluster_that_is_forbidden_after_loading_stops_the_run(
    day_corpus: Path, tmp_path: Path
) -> None:
    task = task_of(day_corpus, tmp_path)
    corpora = open_corpora([day_corpus])
    guard = corpora[0].guard
    for row in task.rows:
        guard.forbidden_clusters[str(row["cluster"])] = Side.EVALUATION
    from dataclasses import replace

    guarded = replace(task, admit=lambda s: guard.admit_sample(s.cluster, s.row))
    with pytest.raises(GuardError):
        run_sft(guarded, Quiet())
    assert not (tmp_path / "model").exists()


RECIPE = """
stage: sft
base:
  size: {hidden: 32, layers: 2, heads: 2, kv_heads: 1, head_width: 16, feed_forward: 48}
  tokenizer: {vocabulary: 2000}
sft:
  max_tokens: 20000
  optimiser: {learning_rate: 3.0e-3}
  batch: {samples: 4, tokens_per_forward: 2000}
  loop: {epochs: 1, device: cpu}
  held_out: 0.4
"""


def arena(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(["train", *arguments])
    return int(stopped.value.code or 0)


def test_the_command_compares_two_corpora_at_the_same_size(
    day_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.yaml").write_text(RECIPE)
    where = ("--corpus", str(day_corpus), "--matched", str(day_corpus))
    out = ("--out", str(tmp_path / "out"), "--json", str(tmp_path / "told.json"))
    assert arena("sft", "--recipe", str(tmp_path / "r.yaml"), *where, *out) == 0
    told = json.loads((tmp_path / "told.json").read_text())
    rows = [told[name]["rows"] for name in ("corpus", "matched")]
    assert rows[0]["learnt"]["samples"] == rows[1]["learnt"]["samples"] > 0
    assert rows[0]["held_out"] == rows[1]["held_out"]
    assert "held out loss" in capsys.readouterr().err


def test_a_corpus_that_is_refused_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ("--out", str(tmp_path / "out"))
    assert arena("sft", "--recipe", "tiny_sft", "--corpus", str(tmp_path), *out) == 1
    said = capsys.readouterr().err
    assert "training.corpus_refused" in said
    assert "Traceback" not in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["sft", "recipes"])
def test_every_command_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert arena(command, "--help") == 0
    assert f"Example: arena train {command}" in capsys.readouterr().out


def test_recipes_are_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert arena("recipes", "--json", "-") == 0
    assert {"sft", "tiny_sft"} <= json.loads(capsys.readouterr().out).keys()
    assert arena("recipes", "sft") == 0
    assert capsys.readouterr().out.startswith("# Stage 1 of the paper")
