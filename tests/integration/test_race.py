"""`arena race run` as a person uses it: real sandboxes, a real database, real interruptions."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy.engine import make_url

from arena.db.embedded import EmbeddedPostgres
from arena.db.engine import open_database
from arena.races.directory import MANIFEST
from arena.records.store import RecordStore
from arena.settings import ArenaSettings
from tests.integration.racing import (
    ModelServer,
    RaceProcess,
    model_server,
    results,
    write_world,
)
from tests.isolations import NAMES, open_or_skip

pytestmark = [pytest.mark.isolation, pytest.mark.database]


@pytest.fixture(scope="session")
def catalog_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def env(database_url: str, catalog_cache: Path) -> dict[str, str]:
    return {
        "ARENA_DATABASE_URL": database_url,
        "ARENA_DATA_DIR": str(catalog_cache),
        "ARENA_RETRY_SECONDS": "0",
        "ARENA_ATTEMPTS": "2",
    }


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def _race(
    agents: list[str], world: list[str], directory: Path, env: dict[str, str], *more: str
) -> RaceProcess:
    named = [str(directory / f"{agent}.py") for agent in agents]
    return RaceProcess(["race", "run", *named, *world, *more], directory, env)


async def _stored(env: dict[str, str], out: Path) -> set[str]:
    race_id = json.loads((out / MANIFEST).read_bytes())["race_id"]
    settings = ArenaSettings(database_url=SecretStr(env["ARENA_DATABASE_URL"]))
    async with open_database(settings) as database:
        return await RecordStore(database.engine).stored_runs(race_id)


@pytest.mark.parametrize("kind", NAMES)
async def test_a_race_scores_stores_and_ranks_every_agent_on_every_problem(
    kind: str, tmp_path: Path, env: dict[str, str]
) -> None:
    await (await open_or_skip(kind)).close()
    world = write_world(tmp_path)
    out = tmp_path / "out"
    agents = ["wrong", "crasher", "knower", "knower"]
    race = _race(agents, world, tmp_path, env, "--sandbox", kind, "--out", "out", "--json", "-")
    code, printed = race.end()
    assert code == 0, race.said
    value: dict[str, Any] = json.loads(printed)
    assert "stand-in" in race.said
    ranked = [agent["name"] for agent in value["agents"]]
    assert ranked == ["knower", "knower-2", "crasher", "wrong"]
    best, crashed = value["agents"][0], value["agents"][2]
    assert best["problems"] == 4
    assert (best["asr"], best["asr_upstream"], best["axis_a_share"]) == (1.0, 1.0, 0.0)
    # It asked no model: the lowest quality, and a coefficient above zero.
    rates = {"asr": 1.0, "score": 0.3875, "coefficient": 0.3875}
    assert best["by_bucket"] == {
        "product": {"problems": 2, **rates},
        "shop": {"problems": 1, **rates},
        "voucher": {"problems": 1, **rates},
    }
    assert best["by_axis"] == {"price": 1.0, "shop": 1.0, "budget": 1.0}
    assert best["failures"] == {"agent": 0, "validator": 0, "platform": 0}
    assert best["wall_s"] > 0
    assert crashed["failures"] == {"agent": 4, "validator": 0, "platform": 0}
    assert (crashed["asr"], crashed["open"]) == (0.0, 0)
    assert crashed["by_axis"] == {"price": 0.0, "shop": 0.0, "budget": 0.0}
    assert await _stored(env, out) == {r.run_id for r in results(out)}


@pytest.mark.parametrize("finished", [0, 1, 3])
async def test_after_kill_9_nothing_finished_is_run_again_and_nothing_is_lost(
    finished: int, tmp_path: Path, env: dict[str, str], model: ModelServer, sandbox: str
) -> None:
    world = [*write_world(tmp_path), "--model-url", model.url, "--out", "out"]
    options = [*world, "--sandbox", sandbox, "--workers", "2"]
    allowed = iter([True] * finished)
    model.held = lambda query: not next(allowed, False)
    race = _race(["asker", "knower"], options, tmp_path, env)
    for _ in range(finished + 1):
        model.arrived.get(timeout=120)
    if finished:
        race.until(f"{finished}/8")
    race.signal(signal.SIGKILL)
    assert race.end()[0] == -signal.SIGKILL
    before = results(tmp_path / "out") if finished else []
    model.held = lambda query: False
    model.let_go.set()
    again = _race(["asker", "knower"], options, tmp_path, env)
    assert again.end()[0] == 0, again.said
    after = results(tmp_path / "out")
    assert after[: len(before)] == before
    assert len(before) >= finished
    runs = Counter((r.agent, r.problem_id) for r in after)
    assert len(runs) == 8
    assert set(runs.values()) == {1}
    assert all(r.success for r in after)
    assert await _stored(env, tmp_path / "out") == {r.run_id for r in after}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_an_interrupted_race_keeps_what_is_finished_and_tells_how_to_go_on(
    number: signal.Signals,
    code: int,
    tmp_path: Path,
    env: dict[str, str],
    model: ModelServer,
    sandbox: str,
) -> None:
    world = [*write_world(tmp_path), "--model-url", model.url, "--out", "out"]
    options = [*world, "--sandbox", sandbox, "--workers", "1"]
    model.held = lambda query: query.startswith("problem 1")
    race = _race(["asker"], options, tmp_path, env)
    race.until("1/4")
    while not model.arrived.get(timeout=120).startswith("problem 1"):
        pass
    race.signal(number)
    assert race.end()[0] == code, race.said
    assert "1 of 4 runs are finished and kept" in race.said
    assert "--out out" in race.said
    assert len(results(tmp_path / "out")) == 1
    model.let_go.set()
    again = _race(["asker"], options, tmp_path, env)
    assert again.end()[0] == 0, again.said
    assert "1 of 4 runs are done" in again.said
    assert "removed what" not in again.said
    assert len(results(tmp_path / "out")) == 4


async def test_a_race_directory_refuses_other_inputs(
    tmp_path: Path, env: dict[str, str], sandbox: str
) -> None:
    world = [*write_world(tmp_path), "--sandbox", sandbox, "--out", "out"]
    assert _race(["knower"], world, tmp_path, env).end()[0] == 0
    before = results(tmp_path / "out")
    with (tmp_path / "knower.py").open("a") as file:
        file.write("# changed\n")
    other = _race(["knower"], world, tmp_path, env, "--title", "lexical", "--limit", "1")
    assert other.end()[0] == 1
    for named in ("agent knower (its file changed)", "the problems (4, now 1)", "the scoring"):
        assert named in other.said
    assert results(tmp_path / "out") == before


@pytest.mark.parametrize("status", [500, 429])
async def test_a_failing_model_provider_leaves_problems_open_and_going_on_closes_them(
    status: int, tmp_path: Path, env: dict[str, str], model: ModelServer, sandbox: str
) -> None:
    world = [*write_world(tmp_path), "--model-url", model.url, "--out", "out", "--json", "j"]
    options = [*world, "--sandbox", sandbox, "--workers", "4", "--limit", "1"]
    model.status = status
    race = _race(["asker", "knower"], options, tmp_path, env | {"ARENA_ATTEMPTS": "1"})
    assert race.end()[0] == 1, race.said
    assert "race.incomplete" in race.said
    knower, asker = json.loads((tmp_path / "j").read_text())["agents"]
    assert (knower["name"], knower["asr"]) == ("knower", 1.0)
    assert (asker["asr"], asker["problems"], asker["open"]) == (None, 1, 1)
    assert asker["failures"] == {"agent": 0, "validator": 1, "platform": 0}
    model.status = 200
    again = _race(["asker", "knower"], options, tmp_path, env)
    assert again.end()[0] == 0, again.said
    for agent in json.loads((tmp_path / "j").read_text())["agents"]:
        assert (agent["asr"], agent["open"]) == (1.0, 0)
        assert agent["failures"]["validator"] == 0
    asked = [r for r in results(tmp_path / "out") if r.agent == "asker"]
    assert [(r.attempt, r.closed) for r in asked] == [(1, False), (2, True)]


async def test_a_database_that_stops_in_the_middle_is_told_and_gets_everything_when_back(
    tmp_path: Path, env: dict[str, str], model: ModelServer, sandbox: str
) -> None:
    directory = Path(tempfile.mkdtemp(prefix="arena-test-"))
    server = EmbeddedPostgres(directory)
    try:
        server.start()
        url = make_url(server.url).set(drivername="postgresql")
        env |= {"ARENA_DATABASE_URL": url.render_as_string(hide_password=False)}
        world = [*write_world(tmp_path), "--model-url", model.url, "--out", "out"]
        options = [*world, "--sandbox", sandbox, "--workers", "1"]
        model.held = lambda query: query.startswith("problem 1")
        race = _race(["asker"], options, tmp_path, env)
        race.until("1/4")
        while not model.arrived.get(timeout=120).startswith("problem 1"):
            pass
        server.stop()
        model.let_go.set()
        race.until("the database is away")
        server.start()
        code, _ = race.end()
        assert code == 0, race.said
        assert race.said.count("the database is away") == 1
        assert race.said.count("the database is back") == 1
        found = results(tmp_path / "out")
        assert len(found) == 4
        assert await _stored(env, tmp_path / "out") == {r.run_id for r in found}
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (["--suite", "missing.jsonl"], "missing.jsonl"),
        (["--catalog", "missing.jsonl"], "missing.jsonl"),
        (["--model-url", "http://127.0.0.1:1"], "127.0.0.1:1"),
    ],
)
async def test_what_is_missing_is_said_in_one_line(
    change: list[str], named: str, tmp_path: Path, env: dict[str, str], sandbox: str
) -> None:
    world = [*write_world(tmp_path), "--sandbox", sandbox]
    race = _race(["knower"], [*world, *change], tmp_path, env)
    assert race.end()[0] == 1
    assert named in race.said
    assert "Traceback" not in race.said


async def test_the_local_test_shows_a_line_a_problem_the_log_of_failures_and_a_trace(
    tmp_path: Path, model: ModelServer, sandbox: str, catalog_cache: Path
) -> None:
    world = [*write_world(tmp_path), "--sandbox", sandbox, "--model-url", model.url]
    env = {"ARENA_DATA_DIR": str(catalog_cache), "ARENA_DATABASE_URL": "postgresql://nowhere:1/x"}
    crasher = str(tmp_path / "crasher.py")
    local = RaceProcess(["agent", "run", crasher, *world, "--json", "j"], tmp_path, env)
    assert local.end()[0] == 0, local.said
    assert local.said.count("✗") == 4
    assert "RuntimeError" in local.said
    assert "\x1b" not in local.said
    assert "0 of 4 problems solved" in local.said
    problem_id = json.loads((tmp_path / "j").read_text())[0]["problem_id"]
    asker = str(tmp_path / "asker.py")
    traced = RaceProcess(["agent", "run", asker, *world, "--trace", problem_id], tmp_path, env)
    code, printed = traced.end()
    assert code == 0, traced.said
    assert traced.said.count("✓") == 1
    record = json.loads(printed)
    assert record["problem"]["problem_id"] == problem_id
    assert [event["kind"] for event in record["trace"]["events"]] == ["llm"]
    assert record["conditions"]["standins"] == []
