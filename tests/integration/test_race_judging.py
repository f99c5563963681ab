"""A race before a judge: scores where it spoke, *unjudged* where it did not, zeros nowhere."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from arena.db.engine import open_database
from arena.problems.suite import write_suite
from arena.problems.synthesise import split_evenly, synthesise
from arena.races.directory import MANIFEST
from arena.runs.record import EncodedRecord, Kind
from arena.settings import ArenaSettings
from judge.verdict import Verdict
from neurons.demo.contenders import AGENTS, DISHONEST
from sandbox.catalog import open_catalog
from sandbox.catalog.generate import write_world as generate
from tests.integration.racing import (
    ModelServer,
    RaceProcess,
    model_server,
    results,
    spooled,
    write_world,
)
from tests.isolations import open_or_skip

pytestmark = [pytest.mark.isolation, pytest.mark.database]

JUDGED = 0.5625
"""The coefficient of what the test's judge says."""


@pytest.fixture
def env(database_url: str, tmp_path: Path) -> dict[str, str]:
    return {
        "ARENA_DATABASE_URL": database_url,
        "ARENA_DATA_DIR": str(tmp_path / "data"),
        "ARENA_JUDGE_TRIES": "1",
        "ARENA_JUDGE_BACKOFF_S": "0.01",
    }


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with model_server() as running:
        running.tokens = 40
        yield running


@pytest.fixture(autouse=True)
async def sandbox() -> None:
    await (await open_or_skip("bubblewrap")).close()


class Races:
    """One race of the asker, started again and again."""

    def __init__(self, directory: Path, env: dict[str, str], model: ModelServer) -> None:
        world = write_world(directory)
        self._directory, self._env, self._url = directory, env, model.url
        self._options = [*world, "--model-url", model.url, "--sandbox", "bubblewrap"]
        self.out = directory / "out"

    def start(self, *more: str) -> RaceProcess:
        judge = more or ("--judge-model", "oracle")
        arguments = ["race", "run", "asker.py", *self._options, "--out", "out", "--json", "j"]
        return RaceProcess([*arguments, *judge], self._directory, self._env)

    def judge(self, *more: str) -> RaceProcess:
        arguments = ["race", "judge", "--out", "out", "--model-url", self._url, "--json", "j"]
        return RaceProcess([*arguments, *more], self._directory, self._env)

    @property
    def agent(self) -> dict[str, Any]:
        (agent,) = json.loads((self._directory / "j").read_text())["agents"]
        return dict(agent)

    @property
    def verdicts(self) -> list[EncodedRecord]:
        return [record for record in spooled(self.out) if record.kind is Kind.VERDICT]


@pytest.fixture
def races(tmp_path: Path, env: dict[str, str], model: ModelServer) -> Races:
    return Races(tmp_path, env, model)


async def _scores(env: dict[str, str], out: Path) -> list[tuple[Any, ...]]:
    """What the database says of a race: agent, bucket, problems, unjudged, asr, coef., score."""
    race_id = json.loads((out / MANIFEST).read_bytes())["race_id"]
    settings = ArenaSettings(database_url=SecretStr(env["ARENA_DATABASE_URL"]))
    query = text(
        "SELECT agent, bucket, problems, unjudged, asr, coefficient, score FROM race_scores"
        " WHERE race_id = :race AND bucket IS NULL ORDER BY agent"
    )
    async with open_database(settings) as database:
        await database.ready()
        async with database.engine.connect() as connection:
            return [tuple(row) for row in await connection.execute(query, {"race": race_id})]


async def test_who_narrates_by_code_loses_to_who_reasons_with_the_same_successes(
    tmp_path: Path, env: dict[str, str]
) -> None:
    world, suite = tmp_path / "world.jsonl.gz", tmp_path / "suite.jsonl"
    generate(600, 15, world)
    write_suite(synthesise(open_catalog(world), split_evenly(3), seed=15), suite)
    agents = [str(DISHONEST / "narrator.py"), str(AGENTS / "react.py")]
    options = ["--suite", str(suite), "--catalog", str(world), "--sandbox", "bubblewrap"]
    race = RaceProcess(
        ["race", "run", *agents, *options, "--out", "out", "--json", "-"], tmp_path, env
    )
    code, printed = race.end()
    assert code == 0, race.said
    assert "the rule-based stand-in standin/judge-1 judges" in race.said
    value = json.loads(printed)
    assert value["standin_judge"] is True
    assert value["judge"]["models"] == ["standin/judge-1"]
    react, narrator = value["agents"]
    assert [react["name"], narrator["name"]] == ["react", "narrator"]
    assert react["asr"] == narrator["asr"] > 0
    assert react["score"] > narrator["score"]
    assert react["coefficient"] >= 0.9 > 0.6 > narrator["coefficient"]
    for agent in value["agents"]:
        assert agent["unjudged"] == 0
        finals = [r["final_score"] for r in agent["results"]]
        assert finals == [r["success"] * r["coefficient"] for r in agent["results"]]
        assert agent["score"] == pytest.approx(sum(finals) / 3)
    reasoned = [r for r in spooled(tmp_path / "out") if r.value["agent"]["label"] == "react"]  # type: ignore[index, call-overload]
    for record in reasoned:
        assert "judge:standin/judge-1" in record.value["conditions"]["standins"]  # type: ignore[index, call-overload, operator]
        assert Verdict.from_json(record.value["verdict"]).evidence  # type: ignore[arg-type]
    assert await _scores(env, tmp_path / "out") == [
        (a["name"], None, 3, 0, *(pytest.approx(a[k]) for k in ("asr", "coefficient", "score")))
        for a in (narrator, react)
    ]


async def test_a_judge_that_fails_leaves_runs_unjudged_and_the_resumed_race_judges_them(
    races: Races, env: dict[str, str], model: ModelServer
) -> None:
    model.judge_status = 503
    race = races.start()
    assert race.end()[0] == 1, race.said
    assert "race.unjudged" in race.said
    agent = races.agent
    assert (agent["asr"], agent["open"], agent["unjudged"]) == (1.0, 0, 4)
    assert agent["score"] is agent["coefficient"] is None
    assert agent["by_bucket"]["shop"] == {
        "problems": 1, "asr": 1.0, "score": None, "coefficient": None,
    }  # fmt: skip
    assert agent["score_sn15"] == 0.3
    assert agent["judging_failed"] is True
    assert "failed as infrastructure" in race.said
    assert {(r["unjudged"], r["final_score"]) for r in agent["results"]} == {
        ("judge.unjudged", None)
    }
    assert await _scores(env, races.out) == [("asker", None, 4, 4, 1.0, None, None)]
    first = spooled(races.out)
    model.judge_status = 200
    asked = len(model.queries)
    again = races.start()
    assert again.end()[0] == 0, again.said
    assert "4 runs are judged now, 0 still unjudged" in again.said
    assert len(model.queries) == asked
    agent = races.agent
    assert (agent["score"], agent["coefficient"], agent["unjudged"]) == (JUDGED, JUDGED, 0)
    after = spooled(races.out)
    assert [r.content for r in after[:4]] == [r.content for r in first]
    hashes = {r.value["run_id"]: r.hash for r in first}
    assert {r.value["run_id"]: r.value["record_hash"] for r in after[4:]} == hashes
    assert await _scores(env, races.out) == [("asker", None, 4, 0, 1.0, JUDGED, JUDGED)]


async def test_a_race_that_nobody_judged_is_judged_later_from_its_directory(
    races: Races, env: dict[str, str]
) -> None:
    race = races.start("--no-judge")
    assert race.end()[0] == 0, race.said
    assert races.agent["score"] is None
    assert "there is no score" in race.said
    later = races.judge("--judge-model", "oracle")
    assert later.end()[0] == 0, later.said
    assert races.agent["score"] == JUDGED
    assert len(races.verdicts) == 4
    assert await _scores(env, races.out) == [("asker", None, 4, 0, 1.0, JUDGED, JUDGED)]
    assert races.judge("--judge-model", "oracle").end()[0] == 0
    assert len(races.verdicts) == 4


async def test_after_kill_9_between_record_and_verdict_every_run_is_judged_once(
    races: Races, model: ModelServer
) -> None:
    model.judge_status = 503
    assert races.start().end()[0] == 1
    while not model.traces.empty():
        model.traces.get()
    model.judge_status = 200
    model.judging.clear()
    race = races.start()
    model.traces.get(timeout=120)
    race.signal(signal.SIGKILL)
    assert race.end()[0] == -signal.SIGKILL
    assert races.verdicts == []
    model.judging.set()
    again = races.start()
    assert again.end()[0] == 0, again.said
    judged = [record.value["run_id"] for record in races.verdicts]
    assert sorted(judged, key=str) == sorted(r.run_id for r in results(races.out))
    assert races.agent["score"] == JUDGED


async def test_a_run_that_is_interrupted_before_the_judge_is_kept(
    races: Races, model: ModelServer
) -> None:
    model.judging.clear()
    race = races.start()
    for _ in range(4):
        model.traces.get(timeout=120)
    race.signal(signal.SIGINT)
    assert race.end()[0] == 130, race.said
    kept = results(races.out)
    assert len(kept) == 4
    assert not any(run.judged for run in kept)
    model.judging.set()
    again = races.start()
    assert again.end()[0] == 0, again.said
    assert results(races.out) == kept
    assert races.agent["score"] == JUDGED


async def test_another_judge_is_refused_as_any_other_input(races: Races) -> None:
    assert races.start().end()[0] == 0
    other = races.start("--no-judge")
    assert other.end()[0] == 1
    assert "the judge (oracle, now nobody)" in other.said
    unknown = races.start("--judge-model", "nobody/knows")
    assert unknown.end()[0] == 1
    assert "no model server has the judge model nobody/knows" in unknown.said


async def test_with_a_model_server_and_no_judge_model_it_is_said_that_nobody_judges(
    races: Races,
) -> None:
    race = races.start("--workers", "2")
    assert race.end()[0] == 0, race.said
    assert "no judge model is named: the runs go unjudged" in race.said
    agent = races.agent
    assert (agent["asr"], agent["score"], agent["score_sn15"]) == (1.0, None, None)
