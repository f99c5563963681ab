"""Judges against labels: what is counted, the file, the shipped set, the command."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from judge.bench import Score, score_facts, score_judge
from judge.bench_cli import app, rows
from judge.bench_set import SHIPPED, Labelled, read_labelled, write_labelled
from judge.exceptions import ErrorInfo, Fault, JudgeError
from judge.judging import Judge
from judge.labelled.recipes import RECIPES
from judge.settings import JudgeSettings
from judge.verdict import Gate, Unjudged, Verdict
from sandbox.models import ModelClient, ModelRoute
from scoring.types import JsonObject
from tests.unit.judge.scenes import AIMLESS, NAMING, QUERY, REASONED, VAGUE, shopping
from tests.unit.sandbox.provider import provider
from tests.unit.sandbox.provider import said as answer

THOUGHTS = {
    Gate.REFERENCE: AIMLESS,
    Gate.DATUM: VAGUE,
    Gate.COMPARISON: NAMING,
    Gate.PASSED: REASONED,
}
ITEMS = [
    Labelled(gate.value, gate, shopping(text).trace, "rule", "agent", "model", QUERY, ({"a": 1},))
    for gate, text in THOUGHTS.items()
]


def verdict(gate: Gate, capped_from: float | None = None) -> Verdict:
    return Verdict(
        gate.quality,
        gate,
        (),
        ("j",),
        "1",
        capped_from=capped_from,
        calls=2,
        prompt_tokens=100,
        completion_tokens=10,
        cost_usd=0.25,
    )


def test_agreement_counts_every_trace_and_tells_too_high_from_too_low() -> None:
    score = Score("j")
    score.count(ITEMS[0], verdict(Gate.REFERENCE))
    score.count(ITEMS[1], verdict(Gate.PASSED))
    score.count(ITEMS[2], verdict(Gate.INFERENCE, capped_from=0.9))
    score.count(ITEMS[3], Unjudged(ErrorInfo("judge.unjudged", Fault.VALIDATOR, "no"), calls=3))
    assert (score.traces, score.agreeing, score.unjudged) == (4, 1, 1)
    assert (score.too_high, score.too_low, score.capped) == (1, 1, 1)
    assert score.agreement == 0.25
    assert score.calls == 9
    assert score.usd_per_thousand == 187.5
    assert [given for _, _, given in score.differ] == [Gate.PASSED, Gate.INFERENCE, None]


def test_the_json_says_the_same_and_every_row_adds_up() -> None:
    score = Score("j")
    for item in ITEMS:
        score.add(item, None)
    written = score.to_json()
    table = written["confusion"]
    assert isinstance(table, dict)
    for label in Gate:
        row = table[label.value]
        assert isinstance(row, dict)
        assert sum(int(str(n)) for n in row.values()) == (label in THOUGHTS)
    assert written["unjudged"] == len(ITEMS)
    assert written["agreement"] == 0.0


def test_the_facts_alone_are_scored_without_a_model() -> None:
    score = score_facts(ITEMS)
    assert (score.agreement, score.calls) == (1.0, 0)


async def test_what_a_judge_cannot_read_is_unjudged_and_paid_for() -> None:
    ticks: list[None] = []
    async with provider() as server:
        server.default = answer("I would rather not say.")
        client = ModelClient([ModelRoute("j", "s", server.url, usd_in=1000.0, usd_out=0.0)])
        settings = JudgeSettings(models=("j",), tries=2, backoff_s=0.0001, cost_limit_usd=1e6)
        score = await score_judge("j", Judge(client, settings), ITEMS, lambda: ticks.append(None))
        await client.close()
    assert score.unjudged == len(ITEMS) == len(ticks)
    assert score.agreement == 0.0
    assert score.calls > 0
    assert score.cost_usd == pytest.approx(score.calls * 10 * 1000 / 1e6)


@pytest.mark.parametrize("name", ["set.jsonl", "set.jsonl.zst"])
def test_a_file_is_read_as_it_was_written(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    assert write_labelled(ITEMS, file) == file.stat().st_size
    assert list(read_labelled(file)) == ITEMS


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"gate": "superb"}', '{"gate": "datum", "trace": {"schema": 99}}']
)
def test_a_line_that_is_no_labelled_trace_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "set.jsonl"
    write_labelled(ITEMS[:1], file)
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(JudgeError, match="line 2") as raised:
        list(read_labelled(file))
    assert raised.value.fault is Fault.CALLER


def test_a_cut_file_is_an_error_and_not_a_smaller_set(tmp_path: Path) -> None:
    file = tmp_path / "set.jsonl.zst"
    file.write_bytes(SHIPPED.read_bytes()[:-2000])
    with pytest.raises(JudgeError):
        list(read_labelled(file))


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(JudgeError, match="nowhere"):
        list(read_labelled(tmp_path / "nowhere.jsonl"))


def test_the_shipped_set_is_what_its_recipes_say() -> None:
    items = list(read_labelled(SHIPPED))
    assert len(items) >= 60
    assert len({item.name for item in items}) == len(items)
    assert set(Counter(item.gate for item in items)) == set(Gate)
    by_name = {recipe.name: recipe for recipe in RECIPES}
    counts = Counter(item.name.rpartition("-")[0] for item in items)
    assert counts == {recipe.name: recipe.problems for recipe in RECIPES}
    for item in items:
        recipe = by_name[item.name.rpartition("-")[0]]
        assert (item.gate, item.rule, item.model) == (recipe.gate, recipe.rule, recipe.model)
        assert list(item.trace.tools())
    assert SHIPPED.stat().st_size < 1_000_000


def test_each_model_judges_alone_and_then_the_panel() -> None:
    settings = JudgeSettings(models=("a", "b", "a"), panel=2)
    assert [(n, s.models, s.panel) for n, s in rows(settings)] == [
        ("a", ("a",), 1),
        ("b", ("b",), 1),
        ("median of 2", ("a", "b", "a"), 2),
    ]


def test_the_command_holds_the_stand_in_against_the_shipped_set(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    result = CliRunner().invoke(app, ["--json", str(out)])
    assert result.exit_code == 0, result.output
    facts, standin = json.loads(out.read_text())["judges"]
    assert facts["judge"] == "facts alone"
    assert facts["too_low"] == standin["too_low"] == standin["unjudged"] == 0
    assert standin["agreement"] >= max(0.9, facts["agreement"])
    # Dictation in other words is what no rule can see: the set holds some, and says so.
    assert {entry["name"].rpartition("-")[0] for entry in standin["differ"]} <= {"reworder"}


def test_a_trace_that_stays_unjudged_fails_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "set.jsonl"
    write_labelled(ITEMS[:1], file)
    table: list[JsonObject] = [{"model": "j", "base_url": "http://127.0.0.1:9/v1"}]
    monkeypatch.setenv("ARENA_MODELS", json.dumps(table))
    monkeypatch.setenv("ARENA_JUDGE_TRIES", "1")
    result = CliRunner().invoke(app, [str(file), "--models", "j", "--json", "-"])
    assert result.exit_code == 1
    assert '"unjudged": 1' in result.stdout
