"""Steps that are done are passed over, a slow one is ended, an idle stage hands its model on."""

from __future__ import annotations

import json
import runpy
import time
from pathlib import Path

import pytest

from neurons.agents import distilled
from scoring.types import JsonObject
from tests.unit.sandbox.agent_kit.wire import scripted
from training.exceptions import OtherRunError, OverBudgetError, StepFailedError
from training.files import write_json_file
from training.path.final_race import write_agent
from training.path.practice import chosen
from training.path.recipe import PathRecipe
from training.path.running import Way
from training.path.steps import Layout, training_step
from training.path.summary import markdown, write_summary
from training.recipe import load_recipe_of

RECIPE = load_recipe_of(PathRecipe, "tiniest")
BUDGETED = ("world", "sft", "reject", "teacher", "kto", "grpo", "eval", "race")


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def way(tmp_path: Path, said: list[str]) -> Way:
    return Way(RECIPE, Layout(tmp_path), {}, said.append)


def finish(way: Way, step: str, at: float = 0.0, **more: object) -> None:
    marker: JsonObject = {"step": step, "seconds": 60.0, "finished_at": at}
    write_json_file(way.layout.out / "steps" / f"{step}.json", marker | more)  # type: ignore[arg-type]


def test_dr_grpo_begins_with_the_teachers_model_as_kto_does(way: Way) -> None:
    for stage in ("kto", "grpo"):
        step = training_step(way.layout, RECIPE, stage, way.start_of)
        start = step.arguments[step.arguments.index("--from") + 1]
        assert start == str(way.layout.out / "teacher")


def test_a_stage_that_had_nothing_to_learn_hands_on_the_model_before_it(way: Way) -> None:
    finish(way, "reject", nothing="no rollout succeeded")
    finish(way, "teacher", nothing="the teacher solved no problem")
    assert way.start_of("grpo") == str(way.layout.out / "sft")
    assert way.models() == ["sft", "kto", "grpo"]
    assert way.idle() == ["reject", "teacher"]


def test_a_step_that_takes_too_long_is_ended_and_named(way: Way) -> None:
    with pytest.raises(OverBudgetError, match="slow took longer than the"):
        way.spend("slow", ("doctor",), 0.05)


def test_the_time_of_a_step_that_was_ended_counts_when_it_comes_to_its_end(way: Way) -> None:
    def ended() -> JsonObject:
        raise OverBudgetError("too long")

    with pytest.raises(OverBudgetError):
        way._done("slow", ended)
    spent = way.layout.out / "spent" / "slow.json"
    assert json.loads(spent.read_text())["seconds"] >= 0
    write_json_file(spent, {"seconds": 2700.0})
    with pytest.raises(OverBudgetError):
        way._done("slow", ended)
    way._done("slow", dict)
    assert float(str(way.steps_done()["slow"]["seconds"])) >= 2700.0


def test_a_step_that_fails_is_named_with_what_it_said(way: Way) -> None:
    arguments = ("train", "recipes", "no_such_recipe")
    with pytest.raises(StepFailedError, match=r"show: training\.bad_recipe: there is no recipe"):
        way.spend("show", arguments, 60)
    done = way.spend("show", ("train", "recipes", "tiniest"), 60)
    assert done == {"command": ["arena", "train", "recipes", "tiniest"]}


def test_another_recipe_is_refused_in_the_same_directory(way: Way, tmp_path: Path) -> None:
    way._begin()
    way._begin()
    other = RECIPE.model_copy(update={"seed": 5})
    with pytest.raises(OtherRunError, match="another recipe"):
        Way(other, Layout(tmp_path), {}, print)._begin()


def test_a_run_goes_on_with_other_budgets(way: Way, tmp_path: Path) -> None:
    way._begin()
    longer = {name: getattr(RECIPE, name).model_copy(update={"minutes": 99.0}) for name in BUDGETED}
    Way(RECIPE.model_copy(update=longer), Layout(tmp_path), {}, print)._begin()


def test_the_copy_of_the_agent_asks_the_model_it_is_named_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "agents" / "distilled-grpo.py"
    write_agent(copy, Path(distilled.__file__), 'gr"po', 320)
    with scripted() as wire:
        monkeypatch.setenv("SANDBOX_PROXY_URL", wire.url)
        monkeypatch.setenv("SANDBOX_MODEL", "another")
        agent = runpy.run_path(str(copy))
        wire.say({"choices": [{"message": {"role": "assistant", "content": "none"}}]})
        agent["Door"](time.monotonic() + 60, waits_s=(0.0,)).complete([])
        ((_, _, body, _),) = wire.seen
    assert (body["model"], body["max_tokens"]) == ('gr"po', 320)


def test_the_same_seed_draws_the_same_problems() -> None:
    from dataclasses import replace

    from tests.unit.training.rollouts.shopping import PROBLEM

    problems = [replace(PROBLEM, problem_id=f"p{n}") for n in range(20)]
    drawn = chosen(problems, 5, "0 grpo")
    assert chosen(list(reversed(problems)), 5, "0 grpo") == drawn
    assert chosen(problems, 5, "0 reject") != drawn
    assert len(chosen(problems, 99, "x")) == len(chosen(problems, None, "x")) == 20


def test_the_summary_says_what_is_known_so_far(way: Way) -> None:
    finish(way, "sft", 1)
    finish(way, "reject", 2, nothing="no rollout succeeded")
    model = way.layout.model("sft") / "model"
    write_json_file(model / "training.json", {"parameters": 5, "measured": {"loss": 1.5}})
    curve = way.layout.model("sft") / "curves.jsonl"
    curve.write_text('{"update":1,"loss":2.0}\n{"update":2,"loss":1.5}\n')
    rate = {"estimate": 0.25, "low": 0.1, "high": 0.4}
    overall = {"problems": 8, "pass_at": {"1": rate}, "recommended": None, "truncated": None}
    report = {"overall": overall | {"invented_ids_per_step": 0.5, "steps": 3.0}}
    (way.layout.evaluation("sft")).mkdir(parents=True)
    (way.layout.evaluation("sft") / "report.json").write_text(json.dumps(report))
    found = write_summary(way)
    text = markdown(found)
    assert "| sft | 2 | 1.0 | 25.0 | 10.0 to 40.0 |" in text
    assert "no rollout succeeded" in text
    assert "2 steps took 2.0 minutes." in text
    assert "sft: loss" in (way.layout.out / "summary.svg").read_text()
    assert json.loads((way.layout.out / "summary.json").read_text()) == found
