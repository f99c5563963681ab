"""A miner's commands and its neuron against a real arena: app, database and HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from arena.api.app import create_app
from arena.api.inputs import open_evaluation
from arena.api.settings import ApiSettings
from arena.client.backoff import ONCE
from arena.client.miner import MinerClient
from arena.client.session import ArenaSession
from arena.client.validator import ValidatorClient
from arena.db.engine import Database
from arena.exceptions import ErrorInfo, Fault
from arena.settings import ArenaSettings
from arena.submissions.artefacts import ArtefactLimits, Manifest
from arena.submissions.cli import app as agent_app
from arena.submissions.store import AgentVersion, SubmissionStore
from arena.wallets import open_hotkey
from arena.work.types import EvaluationKind
from neurons.mining.memory import Memory
from neurons.mining.watching import Watcher
from neurons.validating.artefact_cache import ArtefactCache, sources
from tests.integration.past_season import PastSeason
from tests.unit.arena import builders
from tests.unit.arena.api.world import GATE, Peer, World, frames, problem, served
from tests.unit.arena.submissions.artefact_builder import model_directory

pytestmark = pytest.mark.database

TOKEN = "sk-secret-0123456789abcdef"


@pytest.fixture
def world(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """An arena where this machine's local hotkey is registered."""
    monkeypatch.setenv("ARENA_DATA_DIR", str(tmp_path / "miner"))
    settings = ApiSettings(data_dir=tmp_path, artefact_part_bytes=64 << 10)
    made = World(database, tmp_path, settings)
    hotkey = open_hotkey(ArenaSettings(data_dir=tmp_path / "miner")).signer.address
    made.chain.peers.append(Peer(9, hotkey, permit=False, stake=0))
    return made


def _agent(path: Path, answer: str) -> Path:
    path.write_text(f"def agent_main(problem):\n    answer = {answer!r}\n    return [answer]\n")
    return path


async def _run(url: str, *argv: str, stdin: str | None = None) -> Result:
    line = [*argv, "--arena.url", url]
    return await asyncio.to_thread(CliRunner().invoke, agent_app, line, input=stdin)


async def _json(url: str, *argv: str) -> Any:
    with NamedTemporaryFile() as file:  # the server in this process logs to standard output
        done = await _run(url, *argv, "--json", file.name)
        assert done.exit_code == 0, done.output
        return json.load(file)


@asynccontextmanager
async def _miner(url: str, tmp_path: Path) -> AsyncIterator[MinerClient]:
    signer = open_hotkey(ArenaSettings(data_dir=tmp_path / "miner")).signer
    async with ArenaSession(url, signer) as session:
        yield MinerClient(session, backoff=ONCE)


async def test_an_agent_is_submitted_and_followed(world: World, tmp_path: Path) -> None:
    agent = _agent(tmp_path / "mine.py", "one")
    async with served(create_app(world.services())) as url:
        made = await _json(url, "submit", str(agent), "--name", "My agent")
        again = await _json(url, "submit", str(agent), "--name", "My agent")
        assert again["agent_version_id"] == made["agent_version_id"]
        status = await _json(url, "status")
        assert status["status"]["agent_version_id"] == made["agent_version_id"]
        assert status["status"]["state"] == "RECEIVED"
        assert status["rank"] is None
        listed = await _json(url, "versions")
        assert [(v["agent_name"], v["version_number"]) for v in listed] == [("My agent", 1)]


async def test_a_cooldown_is_told_with_the_time_it_ends(world: World, tmp_path: Path) -> None:
    async with served(create_app(world.services())) as url:
        await _json(url, "submit", str(_agent(tmp_path / "a.py", "one")))
        soon = await _run(url, "submit", str(_agent(tmp_path / "a.py", "two")))
    assert soon.exit_code == 1
    assert "submit again: 2" in soon.output
    assert "UTC (in 11 h 59 min)" in soon.output


async def test_the_gate_is_asked_here_first(world: World, tmp_path: Path) -> None:
    agent = tmp_path / "bad.py"
    agent.write_text("import socket\n\n\ndef agent_main(problem):\n    return []\n")
    async with served(create_app(world.services())) as url:
        here = await _run(url, "submit", str(agent))
        assert here.exit_code == 1
        assert await world.rows("refused_submissions") == 0
        there = await _run(url, "submit", str(agent), "--no-check")
    assert there.exit_code == 1
    assert f"{agent}:1" in there.output.replace("\n", "")
    assert "module.not_allowed" in there.output
    assert await world.rows("refused_submissions") == 1


async def test_a_hotkey_that_is_not_registered_is_told_what_to_do(
    world: World, tmp_path: Path
) -> None:
    world.chain.peers.pop()
    async with served(create_app(world.services())) as url:
        refused = await _run(url, "submit", str(_agent(tmp_path / "a.py", "one")))
    assert refused.exit_code == 1
    assert "not registered" in refused.output
    assert "btcli subnet register" in refused.output


async def test_a_model_comes_back_with_its_agent_to_the_validator(
    world: World, tmp_path: Path
) -> None:
    agent = _agent(tmp_path / "mine.py", "one")
    model = model_directory(tmp_path / "model", size=150_000)
    async with served(create_app(world.services())) as url:
        made = await _json(url, "submit", str(agent), "--artefact", str(model))
        status = await _json(url, "status", made["agent_version_id"])
        store = SubmissionStore(world.database.engine)
        (version,) = await store.versions()
        assert version.artefact is not None
        assert str(version.version_id) == status["status"]["agent_version_id"]
        await open_evaluation(
            world.queue,
            world.inputs,
            version.version_id,
            EvaluationKind.QUALIFYING,
            None,
            name=version.name,
            source=await store.source(version.version_id),
            problems=[problem(1)],
            suite=20261120,
            needed=1,
            at=world.clock(),
        )
        async with ArenaSession(url, world.validators[0].signer) as session:
            claim = await ValidatorClient(session).claim(working=())
            assert claim is not None
            assert claim.artefact is not None
            manifest = Manifest.of(dict(claim.artefact))
            assert manifest.hash == made["artefact"]
            cache = ArtefactCache(tmp_path / "c", max_bytes=1 << 30, limits=ArtefactLimits())
            async with cache.laid_out(manifest, sources("http://none", None, session)) as (at, _):
                for path in model.iterdir():
                    assert (at / path.name).read_bytes() == path.read_bytes()


async def test_a_model_with_code_is_refused_before_anything_is_sent(
    world: World, tmp_path: Path
) -> None:
    model = model_directory(tmp_path / "model")
    (model / "modeling.py").write_text("print('hello')\n")
    async with served(create_app(world.services())) as url:
        refused = await _run(
            url, "submit", str(_agent(tmp_path / "a.py", "x")), "--artefact", str(model)
        )
    assert refused.exit_code == 1
    assert refused.exception is not None
    assert "modeling.py" in str(refused.exception)
    assert await world.rows("artefact_uploads") == 0
    assert await world.rows("agent_versions") == 0


async def _evaluated(world: World, url: str, version: AgentVersion) -> None:
    """By Alice, on an open problem and on one that is held out; the agent failed on both."""
    season = PastSeason(world, datetime.now(UTC) - timedelta(hours=1))
    await season.import_problems({"bank:open": [problem(1)], "bank:held_out": [problem(2)]})
    source = await SubmissionStore(world.database.engine).source(version.version_id)
    evaluation = await open_evaluation(
        world.queue,
        world.inputs,
        version.version_id,
        EvaluationKind.QUALIFYING,
        None,
        name=version.name,
        source=source,
        problems=[problem(1), problem(2)],
        suite=20261120,
        needed=1,
        at=world.clock(),
    )
    alice = world.validators[0]
    sealed = []
    for number in (1, 2):
        failure = ErrorInfo("agent.crashed", Fault.AGENT, f"[red]\x1b[31mno key {number}")
        failed = builders.record(problem(number), failure=failure, gate=GATE)
        made = replace(
            season.record(version, evaluation, number, "alice"),
            outcome=failed.outcome,
            failure=failure,
            final_score=failed.final_score,
            log_tail=f"I see: find {number}\x1b[2J\n[bold]rank 1[/]\n",
        )
        sealed.append(alice.seal(made.encode()))
    async with ArenaSession(url, alice.signer) as session:
        client = ValidatorClient(session)
        claim = await client.claim(working=())
        assert claim is not None
        await client.send_records(frames(sealed))
        await client.complete(claim.run_id, 0.0, {})


async def test_its_owner_reads_why_it_failed_and_no_held_out_text(
    world: World, tmp_path: Path
) -> None:
    async with served(create_app(world.services())) as url:
        await _json(url, "submit", str(_agent(tmp_path / "mine.py", "one")))
        empty = await _run(url, "logs")
        assert "nothing yet" in empty.output
        (version,) = await SubmissionStore(world.database.engine).versions()
        await _evaluated(world, url, version)
        shown = await _run(url, "logs", str(version.version_id))
        assert shown.exit_code == 0, shown.output
        one = await _run(url, "logs", "--problem", problem(1).problem_id)
        found = await _json(url, "logs")
        status = await _json(url, "status")
        table = await _run(url, "status")
    text = shown.output.replace("\n", "")
    assert "agent.crashed: [red]�[31mno key 1; judge: no model call of 30" in text
    assert "│ I see: find 1�[2J" in text
    assert "│ [bold]rank 1[/]" in text
    assert "its text is withheld: the problem is still raced" in text
    assert "\x1b[2J" not in shown.output
    assert problem(2).problem_id not in one.output
    by_id = {log["problem_id"]: log for log in found["logs"]}
    assert by_id[problem(1).problem_id]["log_tail"].startswith("I see: find 1\x1b")
    assert by_id[problem(2).problem_id]["failure"] == {"code": "agent.crashed", "message": None}
    assert [log["log_tail"] for log in status["reasons"]] == ["", None]
    assert "agent.cras" in table.output.replace("\n", "")
    for said in (shown.output, json.dumps(found), json.dumps(status), table.output):
        assert "find 2" not in said
        assert "no key 2" not in said


async def test_credentials_never_come_from_the_command_line(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(create_app(world.services())) as url:
        bare = await _run(url, "credentials", "store", "chutes")
        assert bare.exit_code == 1
        stored = await _run(url, "credentials", "store", "chutes", "--file", "-", stdin=TOKEN)
        assert stored.exit_code == 0, stored.output
        assert TOKEN not in stored.output
        listed = await _json(url, "credentials", "list")
        assert [p["provider"] for p in listed["providers"] if p["connected"]] == ["chutes"]
        monkeypatch.setenv("THE_KEY", TOKEN)
        again = await _run(url, "credentials", "store", "openrouter", "--env", "THE_KEY")
        assert again.exit_code == 0, again.output
        gone = await _run(url, "credentials", "delete", "chutes")
        assert gone.exit_code == 0, gone.output
        listed = await _json(url, "credentials", "list")
        assert [p["provider"] for p in listed["providers"] if p["connected"]] == ["openrouter"]


async def test_the_neuron_submits_a_change_once_the_cooldown_is_over(
    world: World, tmp_path: Path
) -> None:
    agent, memory = _agent(tmp_path / "a.py", "one"), tmp_path / "memory.json"
    said: list[str] = []
    now = datetime.now(UTC)
    async with served(create_app(world.services())) as url, _miner(url, tmp_path) as client:
        watcher = Watcher(client, agent, memory, tell=said.append)
        await watcher.look(now)
        assert await world.rows("agent_versions") == 0  # it may still be written to
        await watcher.look(now)
        assert await world.rows("agent_versions") == 1
        first = watcher.memory.version
        assert any("RECEIVED" in line for line in said)

        _agent(agent, "two")
        for _ in range(3):
            await watcher.look(now)
        assert await world.rows("agent_versions") == 1
        assert watcher.memory.version == first

        # A new start knows what was submitted, and asks how long the wait is.
        said.clear()
        started = Watcher(client, agent, memory, tell=said.append)
        assert started.memory.version == first
        for _ in range(3):
            await started.look(now)
        assert any("is submitted after" in line for line in said)
        assert await world.rows("agent_versions") == 1
        later = now + timedelta(hours=12, minutes=1)
        await started.look(later)  # by our clock it may; the arena's says no
        assert await world.rows("agent_versions") == 1
        assert any(line.startswith("too soon") for line in said)


async def test_the_neuron_submits_nothing_twice_that_the_gate_refuses(
    world: World, tmp_path: Path
) -> None:
    agent, memory = tmp_path / "a.py", tmp_path / "memory.json"
    agent.write_text("import socket\n")
    async with served(create_app(world.services())) as url, _miner(url, tmp_path) as client:
        watcher = Watcher(client, agent, memory, tell=lambda _: None)
        for _ in range(4):
            await watcher.look(datetime.now(UTC))
        handled = Memory.load(memory).handled
        assert handled is not None
        assert await world.rows("refused_submissions") == 0
        _agent(agent, "one")
        for _ in range(2):
            await watcher.look(datetime.now(UTC))
        assert await world.rows("agent_versions") == 1


async def test_the_neuron_goes_on_when_the_arena_is_away(world: World, tmp_path: Path) -> None:
    agent, memory = _agent(tmp_path / "a.py", "one"), tmp_path / "memory.json"
    said: list[str] = []
    async with _miner("http://127.0.0.1:9", tmp_path) as client:
        watcher = Watcher(client, agent, memory, tell=said.append)
        for _ in range(2):
            await watcher.look(datetime.now(UTC))
    assert any(line.startswith("api.unreachable") for line in said)
    assert not memory.exists()
