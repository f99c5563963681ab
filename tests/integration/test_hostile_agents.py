"""Agents that misbehave, on every isolation: whose fault it was, and that nothing got out.

The table names each agent with the outcome that it must have. Agents that try to
escape report what they reached in their dialogue; each of them also runs unconfined,
where it must reach its bait, so that a broken fixture cannot pass for a tight sandbox.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import socket
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sandbox.isolation import interface
from sandbox.isolation.interface import Isolation
from sandbox.trace import HttpEvent
from scoring.exceptions import Fault
from scoring.types import Product
from tests.integration.hostile import LIMITS, Confined, confined, found, unconfined
from tests.unit.sandbox.worlds import WordCatalog

pytestmark = pytest.mark.isolation

QUICK = replace(LIMITS, wall_s=1.5)
SMALL = replace(LIMITS, memory_bytes=128 << 20)

FAILURES = {
    "broken_syntax": interface.AGENT_SYNTAX,
    "broken_no_main": interface.AGENT_NO_MAIN,
    "broken_main_is_no_function": interface.AGENT_NO_MAIN,
    "broken_import": interface.AGENT_IMPORT,
    "broken_exits_on_import": interface.AGENT_EXITED,
    "broken_exception": interface.AGENT_EXCEPTION,
    "broken_hostile_exception": interface.AGENT_EXCEPTION,
    "broken_recursion": interface.AGENT_EXCEPTION,
    "broken_returns_none": interface.AGENT_BAD_RETURN,
    "broken_returns_object": interface.AGENT_BAD_RETURN,
    "broken_returns_texts": interface.AGENT_BAD_RETURN,
    "broken_returns_generator": interface.AGENT_BAD_RETURN,
    "broken_returns_set": interface.AGENT_BAD_RETURN,
    "broken_returns_nan": interface.AGENT_BAD_RETURN,
    "broken_returns_bytes": interface.AGENT_BAD_RETURN,
    "broken_returns_deep": interface.AGENT_BAD_RETURN,
    "broken_returns_cycle": interface.AGENT_BAD_RETURN,
    "broken_returns_too_much": interface.AGENT_ANSWER_TOO_LARGE,
    "broken_exits_zero": interface.AGENT_EXITED,
    "broken_exits_at_once": interface.AGENT_EXITED,
    "broken_kills_itself": interface.AGENT_EXITED,
    "broken_segfault": interface.AGENT_EXITED,
    "broken_fake_error_frame": interface.AGENT_BAD_RETURN,
    "broken_garbled_frames": interface.AGENT_BAD_RETURN,
    "hang_sleeping": interface.AGENT_TIMEOUT,
    "hang_busy": interface.AGENT_TIMEOUT,
    "hang_on_import": interface.AGENT_TIMEOUT,
    "hang_printing": interface.AGENT_TIMEOUT,
    "late_answer": interface.AGENT_TIMEOUT,
    "hog_forks": interface.AGENT_TIMEOUT,
    "hog_memory": interface.AGENT_OUT_OF_MEMORY,
    "hog_memory_in_children": interface.AGENT_OUT_OF_MEMORY,
}


@pytest.mark.parametrize("agent", FAILURES)
async def test_a_misbehaving_agent_fails_by_its_own_fault(
    each_isolation: Isolation, agent: str
) -> None:
    code = FAILURES[agent]
    limits = {interface.AGENT_TIMEOUT: QUICK, interface.AGENT_OUT_OF_MEMORY: SMALL}.get(
        code, LIMITS
    )
    result = (await confined(each_isolation, agent, limits=limits)).result
    assert result.error is not None
    assert (result.error.code, result.error.fault) == (code, Fault.AGENT), result.error
    assert result.dialogue is None
    assert len(result.log.encode()) <= limits.log_bytes * 3  # replacement characters are longer


@pytest.mark.parametrize(
    "source",
    [b"def agent_main(:", b"\x00", b"# coding: no-such\n", b"\xff\xfe", b"x=" + b"(" * 5000],
    ids=["broken", "nul", "unknown encoding", "not utf-8", "nested"],
)
async def test_a_source_that_does_not_compile(each_isolation: Isolation, source: bytes) -> None:
    error = (await confined(each_isolation, source)).result.error
    assert error is not None
    assert (error.code, error.fault) == (interface.AGENT_SYNTAX, Fault.AGENT)


async def test_the_miner_reads_what_went_wrong(each_isolation: Isolation) -> None:
    result = (await confined(each_isolation, "broken_exception")).result
    assert result.error is not None
    assert "RuntimeError: cannot solve p-1" in result.error.message
    assert "cannot solve p-1" in result.log


async def test_of_a_fork_bomb_nothing_is_left(each_isolation: Isolation) -> None:
    run = await confined(each_isolation, "hog_forks", limits=QUICK)
    (search,) = run.trace.tools()
    match = re.search(r"\d+", str(search.arguments["q"]))
    assert match is not None
    assert int(match[0]) not in (0, os.getuid())
    assert [pid for pid in _processes() if _owner(pid) == int(match[0])] == []


def _processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _owner(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


# Limits ------------------------------------------------------------------------------


async def test_threads_are_limited(each_isolation: Isolation) -> None:
    step = (await confined(each_isolation, "hog_threads")).step
    assert 8 < step["started"] <= LIMITS.pids


async def test_descriptors_are_limited(each_isolation: Isolation) -> None:
    step = (await confined(each_isolation, "hog_descriptors")).step
    assert 64 < step["opened"] <= LIMITS.open_files


async def test_disk_is_limited_and_only_scratch_space_can_be_written(
    each_isolation: Isolation,
) -> None:
    step = (
        await confined(each_isolation, "hog_disk", limits=replace(LIMITS, memory_bytes=1 << 30))
    ).step
    written = step["written"]
    assert 16 << 20 < written.pop("/tmp") <= LIMITS.tmp_bytes
    assert written.pop("/dev/shm") <= 64 << 20
    assert written.pop("/sandbox") <= 4 << 20
    assert set(written.values()) == {0}


async def test_a_file_is_limited(each_isolation: Isolation) -> None:
    assert (await confined(each_isolation, "hog_file")).step["size"] == LIMITS.file_bytes


async def test_endless_output_is_cut_and_counted(each_isolation: Isolation) -> None:
    result = (await confined(each_isolation, "hog_output")).result
    assert result.error is None
    assert len(result.log) <= LIMITS.log_bytes
    assert len(result.log) + result.log_dropped_bytes == 800 * 65536


# Unusual, and valid ------------------------------------------------------------------


async def test_dataclasses_work(each_isolation: Isolation) -> None:
    step = (await confined(each_isolation, "odd_dataclasses")).step
    assert step["completion"]["message"] == {"think": "typed", "tool_call": []}


async def test_an_agent_finds_itself_in_sys_modules(each_isolation: Isolation) -> None:
    step = (await confined(each_isolation, "odd_sys_modules")).step
    assert step["completion"]["message"]["think"] == "agent"


async def test_multiprocessing_works(each_isolation: Isolation) -> None:
    step = (await confined(each_isolation, "odd_multiprocessing")).step
    assert step["found"] == [[1, 4, 9], 16] * 2


async def test_threads_and_process_pools_work(each_isolation: Isolation) -> None:
    run = await confined(each_isolation, "odd_futures")
    assert run.step["statuses"] == [200] * 16
    assert run.step["lengths"] == [1, 2]
    assert len(list(run.trace.tools())) == 16


async def test_requests_reaches_the_gateway_by_both_names(each_isolation: Isolation) -> None:
    run = await confined(each_isolation, "odd_requests")
    assert run.step["found"] == [["101"], ["101"]]


async def test_printing_frames_answers_nothing(each_isolation: Isolation) -> None:
    run = await confined(each_isolation, "odd_prints_frames")
    assert run.step["completion"]["message"]["think"] == "the real answer"
    assert run.result.log.count("stolen") == 4


async def test_text_that_no_database_holds_is_made_harmless(each_isolation: Isolation) -> None:
    step = (await confined(each_isolation, "odd_text")).step
    assert step["think"] == "a\ufffdb\ufffdc\ufffd \U0001f525 \x1b[31m \u202e é"
    assert step["key\ufffd\ufffd"] == 1e30
    json.dumps(step, ensure_ascii=False).encode("utf-8")


async def test_the_first_of_several_recommendations_counts(each_isolation: Isolation) -> None:
    run = await confined(each_isolation, "odd_recommends_twice")
    assert run.step["statuses"] == [200, 409, 409]
    accepted = [e.arguments for e in run.trace.tools() if e.status == 200]
    assert accepted == [{"product_ids": "101"}]


async def test_huge_arguments_are_answered_and_recorded(each_isolation: Isolation) -> None:
    run = await confined(
        each_isolation, "odd_huge_arguments", limits=replace(LIMITS, memory_bytes=1 << 30)
    )
    assert run.step["fits"] == run.step["after"] == 200
    assert run.step["too_much"] in (413, 429, "BrokenPipeError", "ConnectionResetError")
    assert len(str(next(run.trace.tools()).arguments["q"])) == 10_000_000


async def test_strange_requests_are_answered_and_the_gateway_goes_on(
    each_isolation: Isolation,
) -> None:
    run = await confined(each_isolation, "odd_strange_requests")
    assert run.step["after"] == 200
    assert {status // 100 for status in run.step["statuses"].values()} <= {2, 4}
    json.dumps(run.trace.to_json(), allow_nan=False, ensure_ascii=False).encode("utf-8")


async def test_who_kills_his_road_out_has_himself_to_blame(each_isolation: Isolation) -> None:
    result = (await confined(each_isolation, "odd_kills_forwarder")).result
    assert result.error is None or result.error.fault is Fault.AGENT


async def test_the_record_is_what_the_gateway_saw(each_isolation: Isolation) -> None:
    run = await confined(each_isolation, "odd_forges_the_record")
    assert run.step["looked"] > 100
    assert run.step["replaced"] == []
    assert [p for p in run.step["writable"] if not p.startswith("/sandbox/")] == []
    assert [e.name for e in run.trace.tools()] == ["find_product"]
    assert [e for e in run.trace.events if isinstance(e, HttpEvent)] == []


# Escapes -----------------------------------------------------------------------------


@pytest.fixture
def secret() -> str:
    return f"CANARY-{secrets.token_hex(16)}"


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder that everybody may enter, with a path short enough for a socket in it."""
    with tempfile.TemporaryDirectory(prefix="bait-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


async def test_files_of_others_cannot_be_read(
    each_isolation: Isolation, secret: str, short_path: Path
) -> None:
    hidden, public = short_path / "hidden", short_path / "public"
    for path, mode in ((hidden, 0o600), (public, 0o644)):
        path.write_text(secret)
        path.chmod(mode)
    targets = {"files": [str(hidden), str(public)], "roots": [str(short_path)]}
    alone = await unconfined(
        "escape_files", {"TARGETS": json.dumps({**targets, "walk": [str(short_path)]})}
    )
    wanted = {f"read {hidden}", f"read {public}", f"secret in {public}", f"listed {short_path}"}
    assert wanted <= set(found(alone))
    step = (
        await confined(each_isolation, "escape_files", env={"TARGETS": json.dumps(targets)})
    ).step
    assert step["looked"] > 100
    assert found(step) == []


async def test_the_validators_environment_cannot_be_read(
    each_isolation: Isolation, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARENA_MODEL_API_KEY", secret)
    assert "own ARENA_MODEL_API_KEY" in found(await unconfined("escape_environment"))
    step = (await confined(each_isolation, "escape_environment")).step
    assert found(step) == []
    assert step["looked"] > 0
    assert [name for name in step["names"] if name.startswith("ARENA")] == []


async def test_the_kernel_is_out_of_reach(each_isolation: Isolation) -> None:
    if os.geteuid() == 0:
        alone = found(await unconfined("escape_kernel"))
        assert {"write /etc/passwd", "write /proc/sys/kernel/core_pattern"} <= set(alone)
        assert {"setuid 0", "chroot", "mount", "sethostname", "unshare mount"} <= set(alone)
    step = (await confined(each_isolation, "escape_kernel")).step
    assert found(step) == []
    capabilities = {value for name, value in step["status"].items() if name.startswith("Cap")}
    assert {int(value, 16) for value in capabilities} == {0}
    assert (step["status"]["NoNewPrivs"], step["status"]["Seccomp"]) == ("1", "2")


@dataclass(slots=True)
class Bait:
    """Servers on the host that nobody in a sandbox may reach."""

    targets: dict[str, object]
    visitors: list[str] = field(default_factory=list)


@asynccontextmanager
async def bait(folder: Path) -> AsyncIterator[Bait]:
    name = f"arena-bait-{secrets.token_hex(4)}"
    path = str(folder / "neighbour.sock")
    laid = Bait({"abstract": [name], "sockets": [path]})

    async def visited(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        laid.visitors.append(str(writer.get_extra_info("sockname")))
        writer.close()

    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0" + name)
    servers = [
        await asyncio.start_server(visited, "127.0.0.1", 0),
        await asyncio.start_unix_server(visited, path),
        await asyncio.start_unix_server(visited, sock=abstract),
    ]
    os.chmod(path, 0o777)
    laid.targets["port"] = servers[0].sockets[0].getsockname()[1]
    try:
        yield laid
    finally:
        for server in servers:
            server.close()
            await server.wait_closed()


async def test_nothing_but_the_gateway_takes_a_connection(
    each_isolation: Isolation, short_path: Path
) -> None:
    async with bait(short_path) as laid:
        env = {"TARGETS": json.dumps({**laid.targets, "bait_only": True})}
        reached = set(found(await unconfined("escape_network", env)))
        abstract, path = laid.targets["abstract"], laid.targets["sockets"]
        assert isinstance(abstract, list)
        assert isinstance(path, list)
        assert {"tcp 127.0.0.1", f"abstract {abstract[0]}", f"socket {path[0]}"} <= reached
        assert len(laid.visitors) >= 3
        laid.visitors.clear()
        run = await confined(
            each_isolation, "escape_network", env={"TARGETS": json.dumps(laid.targets)}
        )
        assert found(run.step) == []
        assert run.step["interfaces"] == ["lo"]
        assert laid.visitors == []


async def lively_process() -> asyncio.subprocess.Process:
    """A process that ends with code 0 when its input does, unless somebody kills it before."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", "import sys; sys.stdin.read()", stdin=asyncio.subprocess.PIPE
    )


async def ends_well(process: asyncio.subprocess.Process) -> bool:
    assert process.stdin is not None
    process.stdin.close()
    return await process.wait() == 0


async def test_signals_reach_nobody_else(each_isolation: Isolation) -> None:
    victim = await lively_process()
    alone = await unconfined("escape_signals", {"TARGETS": json.dumps({"pids": [victim.pid]})})
    assert f"killed {victim.pid}" in found(alone)
    assert not await ends_well(victim)

    bystander = await lively_process()
    targets = json.dumps({"pids": [bystander.pid]})
    step = (await confined(each_isolation, "escape_signals", env={"TARGETS": targets})).step
    assert await ends_well(bystander)
    assert found(step) == []
    assert step["seen"] < 10


class SignallingCatalog(WordCatalog):
    """Tells when the agent has searched for something."""

    def __init__(self) -> None:
        super().__init__()
        self.searched = threading.Event()

    def find(self, q: str, **options: object) -> list[Product]:
        self.searched.set()
        return []


async def test_neighbours_cannot_reach_each_other(each_isolation: Isolation, secret: str) -> None:
    name, port = f"arena-victim-{secrets.token_hex(4)}", 4000 + secrets.randbelow(1000)
    env = {"VICTIM_SECRET": secret, "VICTIM_NAME": name, "VICTIM_PORT": str(port)}
    catalog, sockets = SignallingCatalog(), list[str]()
    victim = asyncio.create_task(
        confined(each_isolation, "neighbour_victim", env=env, catalog=catalog, opened=sockets)
    )
    try:
        assert await asyncio.to_thread(catalog.searched.wait, 60), "the victim never started"
        (path,) = sockets
        assert await asyncio.to_thread(os.path.exists, path)
        beside = {"roots": [os.path.dirname(path)], "files": [path]}
        targets = json.dumps({"abstract": [name], "sockets": [path], "port": port, **beside})
        spies = [
            confined(each_isolation, spy, env={"TARGETS": targets})
            for spy in ("escape_network", "escape_files", "escape_environment")
        ]
        runs: list[Confined] = await asyncio.gather(*spies)
        assert [found(run.step) for run in runs] == [[], [], []]
        assert not victim.done()
    finally:
        victim.cancel()
        await asyncio.gather(victim, return_exceptions=True)
