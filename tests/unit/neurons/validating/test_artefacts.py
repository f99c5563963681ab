"""Models that agents bring: fetched by hash, verified, served by a child, ended for sure."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from uuid import uuid4

import pytest

from arena.client.session import ArenaSession
from arena.client.validator import Claim
from arena.exceptions import ArtefactError, Fault
from arena.problems.suite import load_suite
from arena.runs.agent import AgentFile
from arena.runs.execution import World, execute
from arena.runs.opening import OpenWorld
from arena.runs.record import AgentRef
from arena.submissions.artefact_files import make_manifest
from arena.submissions.artefacts import ArtefactFile, BaseModelFiles, Manifest
from neurons.validating.artefact_cache import ArtefactCache, sources
from neurons.validating.artefact_settings import ArtefactSettings
from neurons.validating.artefacts import served
from neurons.validating.model_server import GUARD, free_port, group_memory
from neurons.validating.run_world import world_for
from sandbox.catalog import open_catalog
from sandbox.exceptions import ModelError
from sandbox.gateway import HttpGateway
from sandbox.isolation.interface import SandboxResult, SandboxSpec
from sandbox.models import ChatRequest, ModelClient, ModelRoute
from sandbox.models.client import RetryPolicy
from scoring.titles import NoTitles
from tests.integration.racing import write_world
from tests.unit.arena.submissions.artefact_builder import adapter_directory, model_directory
from tests.unit.neurons.validating import artefact_servers

REVISION = "0123456789abcdef0123456789abcdef01234567"
REPO = "someone/tiny"


class Hub:
    """A hub on loopback: repositories as folders."""

    def __init__(self, root: Path, port: int) -> None:
        self.root = root
        self.url = f"http://127.0.0.1:{port}"
        self.asked: list[str] = []

    def folder(self, repo: str = REPO) -> Path:
        return self.root / repo / "resolve" / REVISION


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    root = tmp_path / "hub"
    root.mkdir()
    asked: list[str] = []

    class Files(SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(root))  # type: ignore[arg-type]

        def log_message(self, *args: object) -> None:
            asked.append(self.path)

    with ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        found = Hub(root, server.server_address[1])
        found.asked = asked
        yield found
        server.shutdown()
        thread.join()


def _on_hub(hub: Hub, *, size: int = 64) -> Manifest:
    directory = model_directory(hub.folder(), size=size)
    return make_manifest(directory, name="tiny", source=f"hub:{REPO}@{REVISION}")


def _settings(hub: Hub, command: str, **more: object) -> ArtefactSettings:
    given = {"load_seconds": 30.0, **more}
    return ArtefactSettings(command=command, hub_endpoint=hub.url, **given)  # type: ignore[arg-type]


async def _ask(route: ModelRoute, text: str) -> dict[str, list[str]]:
    client = ModelClient([route], retry=RetryPolicy(tries=1))
    try:
        request = ChatRequest(route.model, ({"role": "user", "content": text},))
        answer = await client.complete(request)
    finally:
        await client.close()
    told: dict[str, list[str]] = json.loads(answer.text)
    return told


async def test_an_agents_calls_reach_the_model_under_its_hash(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARENA_MODEL_KEY", "secret")
    manifest = _on_hub(hub)
    settings = _settings(hub, artefact_servers.answers(tmp_path))
    async with served(manifest.to_json(), settings=settings, data_dir=tmp_path) as route:
        assert route.model == manifest.hash
        assert route.upstream_model == "tiny"
        told = await _ask(route, "hello")
    assert told["files"] == sorted(file.path for file in manifest.files)
    assert "ARENA_MODEL_KEY" not in told["env"]
    assert "HF_HUB_OFFLINE" in told["env"]
    assert list((tmp_path / "artefacts" / "served").iterdir()) == []


async def test_what_is_cached_is_not_fetched_again(hub: Hub, tmp_path: Path) -> None:
    settings = _settings(hub, artefact_servers.answers(tmp_path))
    manifest = _on_hub(hub)
    for _ in range(2):
        async with served(manifest, settings=settings, data_dir=tmp_path):
            pass
    assert len(hub.asked) == len(manifest.files)


async def test_a_cached_file_that_changed_on_disk_is_fetched_again(
    hub: Hub, tmp_path: Path
) -> None:
    manifest = _on_hub(hub)
    cache = ArtefactCache(tmp_path / "c", max_bytes=1 << 20, limits=_settings(hub, "x").limits())
    source_of = sources(hub.url, None, None)
    async with cache.laid_out(manifest, source_of):
        pass
    kept = tmp_path / "c" / "files" / manifest.files[0].sha256
    kept.write_bytes(b"x" * manifest.files[0].bytes)
    async with cache.laid_out(manifest, source_of) as (model, _):
        content = (model / manifest.files[0].path).read_bytes()
    assert content == (hub.folder() / manifest.files[0].path).read_bytes()


async def test_other_bytes_than_the_manifest_names_never_reach_a_server(
    hub: Hub, tmp_path: Path
) -> None:
    manifest = _on_hub(hub)
    (hub.folder() / "config.json").write_text('{"changed": 1}')
    started = tmp_path / "started"
    settings = _settings(hub, f"touch {started}")
    with pytest.raises(ArtefactError, match=r"config\.json") as caught:
        async with served(manifest, settings=settings, data_dir=tmp_path):
            pass
    assert caught.value.fault is Fault.AGENT
    assert not started.exists()


async def test_a_longer_file_is_cut_off_while_it_comes(hub: Hub) -> None:
    manifest = _on_hub(hub)
    with (hub.folder() / "model.safetensors").open("ab") as file:
        file.write(bytes(5 << 20))
    weights = next(file for file in manifest.files if file.path == "model.safetensors")
    into = BytesIO()
    with pytest.raises(ArtefactError, match="not the file"):
        await sources(hub.url, None, None)(manifest.source).fetch(weights, into)
    assert into.tell() <= weights.bytes


async def test_a_file_that_is_not_on_the_hub_is_the_agents_fault(hub: Hub, tmp_path: Path) -> None:
    manifest = _on_hub(hub)
    (hub.folder() / "tokenizer.json").unlink()
    with pytest.raises(ArtefactError) as caught:
        async with served(manifest, settings=_settings(hub, "true"), data_dir=tmp_path):
            pass
    assert (caught.value.code, caught.value.fault) == ("artefact.not_there", Fault.AGENT)


async def test_a_hub_that_is_away_is_not(hub: Hub, tmp_path: Path) -> None:
    manifest = _on_hub(hub)
    settings = ArtefactSettings(hub_endpoint=f"http://127.0.0.1:{free_port()}")
    with pytest.raises(ArtefactError) as caught:
        async with served(manifest, settings=settings, data_dir=tmp_path):
            pass
    assert (caught.value.code, caught.value.fault) == ("artefact.fetch_failed", Fault.VALIDATOR)


async def test_a_model_that_cannot_be_loaded_is_the_agents_fault(hub: Hub, tmp_path: Path) -> None:
    settings = _settings(hub, artefact_servers.fails(tmp_path))
    with pytest.raises(ArtefactError, match="KeyError: model_type") as caught:
        async with served(_on_hub(hub), settings=settings, data_dir=tmp_path):
            pass
    assert (caught.value.code, caught.value.fault) == ("artefact.cannot_load", Fault.AGENT)


async def test_a_server_that_is_not_installed_is_the_validators(hub: Hub, tmp_path: Path) -> None:
    settings = _settings(hub, str(tmp_path / "no-such-program"))
    with pytest.raises(ArtefactError) as caught:
        async with served(_on_hub(hub), settings=settings, data_dir=tmp_path):
            pass
    assert (caught.value.code, caught.value.fault) == ("artefact.no_server", Fault.VALIDATOR)


async def test_one_that_never_answers_is_killed_with_all_its_processes(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[int] = []
    start = asyncio.create_subprocess_exec

    async def noted(*argv: str, **options: object) -> asyncio.subprocess.Process:
        process = await start(*argv, **options)  # type: ignore[arg-type]
        groups.append(process.pid)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    settings = _settings(hub, artefact_servers.sleeps(tmp_path), load_seconds=0.5)
    with pytest.raises(ArtefactError) as caught:
        async with served(_on_hub(hub), settings=settings, data_dir=tmp_path):
            pass
    assert (caught.value.code, caught.value.fault) == ("artefact.load_timeout", Fault.VALIDATOR)
    # A zombie that nobody reaped yet has no memory.
    assert group_memory(groups[0]) == 0


async def test_one_with_too_much_memory_is_the_agents_fault(hub: Hub, tmp_path: Path) -> None:
    settings = _settings(hub, artefact_servers.grows(tmp_path), memory_gib=0.125)
    with pytest.raises(ArtefactError) as caught:
        async with served(_on_hub(hub), settings=settings, data_dir=tmp_path):
            pass
    assert (caught.value.code, caught.value.fault) == ("artefact.too_much_memory", Fault.AGENT)


async def test_a_server_that_dies_in_the_middle_is_the_validators_fault(
    hub: Hub, tmp_path: Path
) -> None:
    settings = _settings(hub, artefact_servers.answers(tmp_path))
    async with served(_on_hub(hub), settings=settings, data_dir=tmp_path) as route:
        with pytest.raises(ModelError) as caught:
            await _ask(route, "die")
    assert caught.value.fault is Fault.VALIDATOR


def test_the_server_goes_with_the_validator_however_that_ends(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    program = f"open({str(ready)!r}, 'w').close(); import time; time.sleep(600)"
    reading, writing = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-I", str(GUARD), sys.executable, "-c", program],
        stdin=reading,
        start_new_session=True,
    ) as guard:
        os.close(reading)
        os.close(writing)
        assert guard.wait(timeout=30) == -9
    assert group_memory(guard.pid) == 0


async def test_an_adapter_is_served_with_its_base(hub: Hub, tmp_path: Path) -> None:
    base = _on_hub(hub)
    adapter = "someone/adapter"
    directory = adapter_directory(hub.folder(adapter), REPO)
    files = BaseModelFiles(source=base.source, files=base.files)
    manifest = make_manifest(
        directory, name="adapter", base=files, source=f"hub:{adapter}@{REVISION}"
    )
    command = artefact_servers.answers(tmp_path).replace("{dir}", "{base}")
    settings = _settings(hub, "false", adapter_command=command)
    async with served(manifest, settings=settings, data_dir=tmp_path) as route:
        assert (await _ask(route, "hello"))["files"] == [f.path for f in base.files]


async def test_files_not_used_for_longest_make_room(hub: Hub, tmp_path: Path) -> None:
    limits = _settings(hub, "x").limits()
    cache = ArtefactCache(tmp_path / "c", max_bytes=9_000, limits=limits)
    source_of = sources(hub.url, None, None)
    manifests = []
    for number in range(3):
        repo = f"someone/m{number}"
        directory = model_directory(hub.folder(repo), size=3_000, seed=number)
        manifests.append(make_manifest(directory, name="m", source=f"hub:{repo}@{REVISION}"))
        async with cache.laid_out(manifests[-1], source_of):
            if number == 0:
                os.utime(tmp_path / "c" / "files" / manifests[0].files[1].sha256, (1, 1))
    weights = [m.files[1].sha256 for m in manifests]
    there = {p.name for p in (tmp_path / "c" / "files").iterdir()}
    assert weights[0] not in there
    assert {weights[1], weights[2]} <= there


async def test_a_file_in_use_does_not_make_room(hub: Hub, tmp_path: Path) -> None:
    cache = ArtefactCache(tmp_path / "c", max_bytes=4_000, limits=_settings(hub, "x").limits())
    source_of = sources(hub.url, None, None)
    first = _on_hub(hub, size=3_000)
    directory = model_directory(hub.folder("someone/other"), size=3_000, seed=5)
    second = make_manifest(directory, name="m", source=f"hub:someone/other@{REVISION}")
    async with cache.laid_out(first, source_of) as (model, _):
        with pytest.raises(ArtefactError) as caught:
            async with cache.laid_out(second, source_of):
                pass
        assert (caught.value.code, caught.value.fault) == ("artefact.no_room", Fault.VALIDATOR)
        assert (model / "model.safetensors").is_file()


class _Sandboxes:
    """An isolation that nobody may ask."""

    name = "none"

    async def run(self, spec: SandboxSpec) -> SandboxResult:
        raise AssertionError("an agent was started")

    async def reclaim(self) -> list[str]:
        return []

    async def close(self) -> None:
        raise AssertionError("closed by the wrong one")

    def environment(self) -> dict[str, str]:
        return {"isolation": self.name}


@asynccontextmanager
async def _opened(directory: Path) -> AsyncIterator[OpenWorld]:
    write_world(directory)
    catalog = open_catalog(directory / "catalog.jsonl")
    models = ModelClient(())
    gateway = HttpGateway(catalog, models)
    try:
        yield OpenWorld(World(catalog, gateway, _Sandboxes(), NoTitles(), "m"), "none")
    finally:
        await gateway.close()
        await models.close()


def _claim(manifest: Manifest) -> Claim:
    return Claim(
        run_id=uuid4(),
        evaluation_id=uuid4(),
        version=uuid4(),
        phase="qualifying",
        agent_name="agent",
        source_hash="0" * 64,
        suite=1,
        code_url="http://none",
        expires_at=datetime.now(UTC),
        resumed=False,
        artefact=manifest.to_json(),
    )


async def test_an_agent_whose_model_cannot_be_loaded_fails_on_every_problem(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARENA_ARTEFACT_COMMAND", artefact_servers.fails(tmp_path))
    monkeypatch.setenv("ARENA_ARTEFACT_HUB_ENDPOINT", hub.url)
    session = ArenaSession("http://127.0.0.1:9", None)
    async with _opened(tmp_path) as opened, session:
        (problem, *_) = load_suite(tmp_path / "suite.jsonl").problems
        claim = _claim(_on_hub(hub))
        async with world_for(opened, claim, session=session, data_dir=tmp_path) as run:
            agent = AgentFile(AgentRef("v", "agent", "0" * 64), b"def agent_main(p): return []")
            record = await execute(run.world, agent, problem)
    assert record.failure is not None
    assert (record.failure.code, record.failure.fault) == ("artefact.cannot_load", Fault.AGENT)
    assert record.closed
    assert record.outcome is not None


async def test_a_validator_without_a_model_server_gives_the_run_up(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARENA_ARTEFACT_COMMAND", str(tmp_path / "no-such-program"))
    monkeypatch.setenv("ARENA_ARTEFACT_HUB_ENDPOINT", hub.url)
    session = ArenaSession("http://127.0.0.1:9", None)
    async with _opened(tmp_path) as opened, session:
        with pytest.raises(ArtefactError, match="cannot be started"):
            async with world_for(opened, _claim(_on_hub(hub)), session=session, data_dir=tmp_path):
                pass


def test_a_manifests_file_cannot_lead_out_of_the_directory() -> None:
    with pytest.raises(ArtefactError):
        Manifest.of(
            {
                "schema": 1,
                "kind": "model",
                "name": "x",
                "source": "upload",
                "files": [ArtefactFile(path="../x", sha256="0" * 64, bytes=1).model_dump()],
                "base": None,
                "context": 4096,
                "dtype": "bfloat16",
                "chat_format": "template",
            }
        )
