"""Whose fault a failure was, and what a run with it means."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import httpx
import pytest

from arena.problems.suite import load_suite
from arena.runs.agent import AgentFile, read_agents
from arena.runs.attempts import RetryPolicy, run_until_closed
from arena.runs.execution import Seen, World, _judged, execute
from arena.runs.record import EncodedRecord
from arena.runs.rescoring import actions
from sandbox.catalog import open_catalog
from sandbox.exceptions import IsolationError
from sandbox.gateway import HttpGateway
from sandbox.gateway.interface import GatewayLimits
from sandbox.isolation.interface import Isolation, SandboxLimits, SandboxResult, SandboxSpec
from sandbox.models import ModelClient, discover
from sandbox.models import RetryPolicy as ModelRetries
from sandbox.trace import LlmEvent, ToolEvent, Trace
from scoring.dialogue import Recommendation, Termination
from scoring.exceptions import ErrorInfo, Fault
from scoring.titles import NoTitles
from scoring.types import Json, JsonObject
from tests.integration.racing import ModelServer, model_server, write_world

NO_RETRIES = ModelRetries(tries=1)


def _tool(name: str, arguments: JsonObject, status: int = 200, result: Json = "done") -> ToolEvent:
    return ToolEvent(0, 0.0, 0.0, "tools", name, arguments, status, result)


def test_only_what_the_gateway_answered_with_success_counts_as_done() -> None:
    refused = ErrorInfo("tool.bad_arguments", Fault.AGENT, "no")
    trace = Trace(
        events=(
            _tool("find_product", {"q": "mug"}),
            replace(_tool("recommend_product", {"product_ids": "1"}), error=refused),
            _tool("recommend_product", {"product_ids": "1"}, result={"error": "no"}),
            _tool("recommend_product", {"product_ids": "2, 3"}),
            _tool("recommend_product", {"product_ids": "4"}, status=409),
            _tool("terminate", {"status": "failure"}),
            _tool("terminate", {}),
        )
    )
    assert list(actions(trace)) == [
        Recommendation(("2", "3")),
        Termination(success=False),
        Termination(success=True),
    ]


def test_pauses_double_up_to_the_longest() -> None:
    policy = RetryPolicy(attempts=9, pause_s=5.0, longest_pause_s=30.0)
    assert [policy.pause_after(n) for n in range(1, 6)] == [5.0, 10.0, 20.0, 30.0, 30.0]


class _List:
    """A sink in memory."""

    def __init__(self) -> None:
        self.records: list[EncodedRecord] = []

    async def put(self, record: EncodedRecord) -> None:
        self.records.append(record)


class _Broken:
    """A host on which no sandbox can be made: speaks the interface, runs nothing."""

    name = "broken"

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def run(self, spec: SandboxSpec) -> SandboxResult:
        raise self._error

    async def reclaim(self) -> list[str]:
        return []

    async def close(self) -> None:
        pass

    def environment(self) -> dict[str, str]:
        return {"isolation": self.name}


@asynccontextmanager
async def _world(
    directory: Path, isolation: Isolation, url: str | None, limits: GatewayLimits | None = None
) -> AsyncIterator[World]:
    catalog = open_catalog(directory / "catalog.jsonl")
    routes = await discover(url) if url else ()
    client = ModelClient(routes, retry=NO_RETRIES)
    gateway = HttpGateway(catalog, client)
    try:
        yield World(
            catalog=catalog,
            gateway=gateway,
            isolation=isolation,
            titles=NoTitles(),
            model="oracle",
            sandbox_limits=SandboxLimits(wall_s=60.0),
            gateway_limits=limits or GatewayLimits(),
        )
    finally:
        await gateway.close()
        await client.close()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARENA_DATA_DIR", str(tmp_path / "data"))
    write_world(tmp_path)
    return tmp_path


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def _agent(files: Path, name: str) -> AgentFile:
    return read_agents([str(files / f"{name}.py")], {})[0]


@pytest.mark.parametrize(
    ("error", "code", "fault"),
    [
        (IsolationError("no cgroup"), "isolation.failed", Fault.VALIDATOR),
        (OSError("no file handles"), "validator.host_failed", Fault.VALIDATOR),
        (TimeoutError(), "validator.hard_stop", Fault.VALIDATOR),
        (ZeroDivisionError("a bug"), "platform.unexpected", Fault.PLATFORM),
    ],
)
async def test_a_host_that_fails_leaves_the_problem_open_after_bounded_attempts(
    files: Path, error: Exception, code: str, fault: Fault
) -> None:
    problem = load_suite(files / "suite.jsonl").problems[0]
    sink = _List()
    async with _world(files, _Broken(error), None) as world:
        record = await run_until_closed(
            world,
            _agent(files, "knower"),
            problem,
            sink,
            policy=RetryPolicy(attempts=3, pause_s=0.0),
            first_attempt=4,
        )
    assert (record.closed, record.outcome, record.axis) == (False, None, None)
    assert record.failure is not None
    assert (record.failure.code, record.failure.fault) == (code, fault)
    assert [r.value["attempt"] for r in sink.records] == [4, 5, 6]
    assert len({r.value["run_id"] for r in sink.records}) == 3


@pytest.mark.isolation
async def test_a_model_that_never_answers_is_the_validators_fault(
    files: Path, model: ModelServer, each_isolation: Isolation
) -> None:
    model.held = lambda query: True
    problem = load_suite(files / "suite.jsonl").problems[0]
    limits = GatewayLimits(model_timeout_s=0.5)
    async with _world(files, each_isolation, model.url, limits) as world:
        record = await execute(world, _agent(files, "asker"), problem)
    model.let_go.set()
    assert record.failure is not None
    assert (record.failure.code, record.failure.fault) == ("model.timeout", Fault.VALIDATOR)
    assert not record.closed


@pytest.mark.isolation
async def test_a_run_that_ends_well_is_judged_and_recorded_whole(
    files: Path, model: ModelServer, each_isolation: Isolation
) -> None:
    problem = load_suite(files / "suite.jsonl").problems[-1]
    async with _world(files, each_isolation, model.url) as world:
        record = await execute(world, _agent(files, "asker"), problem, race_id="r", attempt=2)
    value = record.encode().value
    outcome, axis, trace = value["outcome"], value["axis"], value["trace"]
    assert isinstance(outcome, dict)
    assert isinstance(axis, dict)
    assert isinstance(trace, dict)
    assert (outcome["success"], outcome["upstream_success"]) == (True, True)
    assert outcome["recommended_ids"] == ["4", "5"]
    assert axis["axis"] == "B"  # it never looked anything up
    assert [e["kind"] for e in trace["events"]] == ["llm"]  # type: ignore[union-attr,call-overload,index]
    assert problem.query.encode() in record.encode().content  # the prompt, as recorded
    assert b"mug 4" not in record.encode().content  # and nothing of the reward


@pytest.mark.isolation
async def test_an_agent_that_raises_has_failed_whatever_it_recommended(
    files: Path, each_isolation: Isolation
) -> None:
    problem = load_suite(files / "suite.jsonl").problems[0]
    async with _world(files, each_isolation, None) as world:
        record = await execute(world, _agent(files, "crasher"), problem)
    assert record.closed
    assert record.failure is not None
    assert (record.failure.code, record.failure.fault) == ("agent.exception", Fault.AGENT)
    assert record.outcome is not None
    assert (record.outcome["success"], record.outcome["reason"]) == (False, "run_failed")
    assert "RuntimeError" in record.log_tail
    record.encode()


async def test_what_the_axis_stumbles_over_buys_no_second_try(files: Path) -> None:
    problem = load_suite(files / "suite.jsonl").problems[0]
    told = ErrorInfo("agent.exception", Fault.AGENT, "it raised")
    # With a prompt that names its messages by text, which no recorder writes.
    event = LlmEvent(0, 0, 0, 0, "m", "s", standin=True, prompt=(), params={}, status=200)
    broken = Trace(events=(replace(event, prompt=cast("tuple[int]", ("0",))),))
    async with _world(files, _Broken(OSError("unused")), None) as world:
        record = await execute(world, _agent(files, "knower"), problem)
        record = replace(record, failure=told, trace=broken.to_json())
        seen = Seen(broken, None, told)
        judged = _judged(world, _agent(files, "knower"), problem, seen, record)
    assert judged.closed
    assert judged.failure == told
    assert judged.outcome is not None
    assert (judged.outcome["reason"], judged.axis) == ("run_failed", None)
    assert [note.fault for note in judged.notes] == [Fault.PLATFORM]
    judged.encode()


class _Talkative(_Broken):
    """Asks the model once, as an agent inside would, and is stopped after `excused_s` more."""

    def __init__(self, excused_s: float) -> None:
        super().__init__(OSError("unused"))
        self._excused_s = excused_s

    async def run(self, spec: SandboxSpec) -> SandboxResult:
        transport = httpx.AsyncHTTPTransport(uds=str(spec.gateway_socket))
        question = {"model": "oracle", "messages": [{"role": "user", "content": "x"}]}
        async with httpx.AsyncClient(transport=transport) as http:
            await http.post("http://proxy/inference/chat/completions", json=question)
        error = ErrorInfo("validator.hard_stop", Fault.VALIDATOR, "stopped")
        excused_s = spec.excused_s() + self._excused_s
        return SandboxResult(None, error, "", wall_s=900.0, excused_s=excused_s)


@pytest.mark.parametrize(
    ("excused_s", "code"), [(-1.0, "agent.timeout"), (700.0, "validator.hard_stop")]
)
async def test_a_hard_stop_is_the_agents_unless_the_provider_was_slow(
    files: Path, model: ModelServer, excused_s: float, code: str
) -> None:
    problem = load_suite(files / "suite.jsonl").problems[0]
    async with _world(files, _Talkative(excused_s), model.url) as world:
        record = await execute(world, _agent(files, "asker"), problem)
    assert record.failure is not None
    assert record.failure.code == code
    assert record.closed == (code == "agent.timeout")
