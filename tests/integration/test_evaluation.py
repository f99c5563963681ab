"""`arena eval` as a person uses it: real sandboxes, a model server on loopback, kill -9."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.racing import (
    ModelServer,
    RaceProcess,
    model_server,
    spooled,
    write_world,
)

pytestmark = pytest.mark.isolation


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def env(data_dir: Path) -> dict[str, str]:
    return {
        "ARENA_DATA_DIR": str(data_dir),
        "ARENA_RETRY_SECONDS": "0",
        "ARENA_ATTEMPTS": "1",
    }


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def evaluate(
    directory: Path, env: dict[str, str], sandbox: str, *more: str, agent: str = "asker"
) -> RaceProcess:
    world = ["--suite", "suite.jsonl", "--catalog", "catalog.jsonl"]
    given = ["--agent", f"{agent}.py", "--sandbox", sandbox, "--out", "out", "--json", "-"]
    return RaceProcess(["eval", *more, *world, *given], directory, env)


def lines(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(x) for x in (directory / "out" / "results.jsonl").read_text().splitlines()]


def test_every_sample_is_run_scored_saved_and_compared(
    tmp_path: Path, env: dict[str, str], model: ModelServer, sandbox: str
) -> None:
    write_world(tmp_path)
    first = evaluate(tmp_path, env, sandbox, model.url, "--samples", "2", agent="wrong")
    code, printed = first.end()
    assert code == 0, first.said
    assert json.loads(printed)["overall"]["pass_at"]["1"]["estimate"] == 0
    (tmp_path / "out").rename(tmp_path / "before")

    run = evaluate(
        tmp_path, env, sandbox, model.url, "--samples", "2", "--against", "before", "--label", "new"
    )
    code, printed = run.end()
    assert code == 0, run.said
    value = json.loads(printed)
    assert value["overall"]["pass_at"]["1"]["estimate"] == 1
    assert value["overall"]["pass_at"]["2"]["estimate"] == 1
    assert value["by_bucket"]["shop"]["problems"] == 1
    assert value["comparisons"][0]["better"] == 4
    assert len(lines(tmp_path)) == len(spooled(tmp_path / "out")) == 8
    assert all(line["observed"]["steps"] == 1 for line in lines(tmp_path))
    assert {row["harness"] for row in value["table"]} == {"paper", "ours"}
    report = (tmp_path / "out" / "report.md").read_text()
    assert "| ours | new | 4 | 100.0 |" in report
    assert (tmp_path / "out" / "table.svg").read_bytes().startswith(b"<svg")


def test_the_evaluations_sampling_takes_the_place_of_the_agents(
    tmp_path: Path, env: dict[str, str], sandbox: str
) -> None:
    write_world(tmp_path)
    bodies: list[dict[str, Any]] = []
    with model_server() as model:
        answer = model.answer
        model.answer = lambda body: (bodies.append(body), answer(body))[1]  # type: ignore[func-returns-value,method-assign]
        options = ("--samples", "2", "--temperature", "0.7", "--top-p", "0.9", "--seed", "5")
        run = evaluate(tmp_path, env, sandbox, model.url, *options)
        code, _ = run.end()
    assert code == 0, run.said
    assert {(b["temperature"], b["top_p"]) for b in bodies} == {(0.7, 0.9)}
    seeds = [(b["messages"][-1]["content"], b["seed"]) for b in bodies]
    assert len(set(seeds)) == 8, "two samples of a problem would be one"


def test_a_failing_model_server_leaves_the_evaluation_incomplete_and_it_can_go_on(
    tmp_path: Path, env: dict[str, str], model: ModelServer, sandbox: str
) -> None:
    write_world(tmp_path)
    model.status = 401  # nobody waits for a key to mend itself
    run = evaluate(tmp_path, env, sandbox, model.url)
    code, printed = run.end()
    assert code == 1
    assert "evaluation.incomplete" in run.said
    value = json.loads(printed)
    assert value["overall"]["state"] == "incomplete"
    assert value["overall"]["samples"] == 4
    assert value["overall"]["pass_at"] == {}
    assert sum(value["errors"].values()) == 4

    model.status = 200
    again = evaluate(tmp_path, env, sandbox, model.url)
    code, printed = again.end()
    assert code == 0, again.said
    assert json.loads(printed)["overall"]["pass_at"]["1"]["estimate"] == 1


def test_killed_in_the_middle_it_goes_on_and_runs_nothing_twice(
    tmp_path: Path, env: dict[str, str], model: ModelServer, sandbox: str
) -> None:
    write_world(tmp_path)
    model.held = lambda query: query == "find 4,5"
    run = evaluate(tmp_path, env, sandbox, model.url, "--workers", "1")
    run.until("3/4")
    run.signal(signal.SIGKILL)
    run.end()
    assert len(lines(tmp_path)) == 3
    model.held = lambda query: False
    model.let_go.set()
    model.queries.clear()
    again = evaluate(tmp_path, env, sandbox, model.url, "--workers", "1")
    code, printed = again.end()
    assert code == 0, again.said
    assert model.queries == ["find 4,5"]
    assert json.loads(printed)["overall"]["pass_at"]["1"]["estimate"] == 1

    other = evaluate(tmp_path, env, sandbox, model.url, agent="wrong")
    code, _ = other.end()
    assert code == 1
    assert "was begun with another agent" in other.said


def test_what_is_no_model_is_said_in_one_line(tmp_path: Path, env: dict[str, str]) -> None:
    write_world(tmp_path)
    run = evaluate(tmp_path, env, "bubblewrap", "nowhere/at/all")
    code, _ = run.end()
    assert code == 1
    assert "neither an address nor a checkpoint" in run.said
    assert "Traceback" not in run.said


async def test_a_checkpoint_is_served_by_a_child_that_ends_with_the_evaluation(
    tmp_path: Path,
) -> None:
    pytest.importorskip("torch")
    from corpus_export.normalise import SYSTEM_TEXT
    from tests.unit.training.small import SIZE, TOKENIZER_TEXTS, tokenizer_of
    from training.backbone import random_qwen3, save, weights_hash
    from training.evaluation.target import open_target
    from training.exceptions import EvaluationError
    from training.files import write_directory
    from training.tokenizing.small import LEAST

    tokenizer = tokenizer_of([SYSTEM_TEXT, *TOKENIZER_TEXTS], LEAST + 200)
    backbone = random_qwen3(SIZE, tokenizer, seed=1)
    run = tmp_path / "my-run"
    write_directory(run / "model", lambda d: save(backbone.model, tokenizer, d, {}))
    said: list[str] = []
    async with open_target(str(run), None, said.append) as target:
        assert (target.model, target.label) == ("my-run", "my-run")
        assert target.checkpoint == weights_hash(run / "model")
        url = target.url
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(f"{url}/models")).status_code == 200
    assert "in a process of its own" in said[0]
    async with httpx.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx.TransportError):
            await client.get(f"{url}/models")

    (run / "model" / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(EvaluationError, match="could not be served"):
        async with open_target(str(run), None, said.append):
            pass
