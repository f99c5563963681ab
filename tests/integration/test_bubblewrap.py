"""Agents under bubblewrap: what works, how runs end, and what is left of them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import textwrap
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sandbox.exceptions import Fault, IsolationError
from sandbox.isolation import cgroup
from sandbox.isolation import interface as codes
from sandbox.isolation.bubblewrap import Bubblewrap
from sandbox.isolation.interface import Isolation
from sandbox.isolation.settings import IsolationSettings
from tests.integration.sandbox_door import SandboxDoor, spec, told

pytestmark = pytest.mark.isolation

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="host users and delegated groups are given by root"
)

VISITS_AND_WAITS = """
    import time, urllib.request

    def agent_main(problem):
        urllib.request.urlopen("http://proxy/here").read()
        time.sleep(600)
"""


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[SandboxDoor]:
    async with SandboxDoor(tmp_path / "s.sock") as opened:
        yield opened


def sandboxes_of_this_test() -> set[str]:
    """Control groups of sandboxes below this process's own group."""
    found = cgroup.own_group("memory")
    assert found is not None
    folder = found[0].parent if found[0].name.startswith(cgroup.PREFIX) else found[0]
    return {path.name for path in folder.glob(f"{cgroup.PREFIX}[0-9]*")}


async def test_what_honest_agents_use_works(bubblewrap: Isolation, door: SandboxDoor) -> None:
    source = """
        import concurrent.futures, dataclasses, json, multiprocessing, os, sys, tempfile, threading
        import requests
        from src.agent.agent_interface import create_dialogue_step
        from src.agent.proxy_client import ProxyClient

        @dataclasses.dataclass
        class Pair:
            left: int
            right: "int" = 2

        def square(number):
            return number * number

        def agent_main(problem):
            told = []
            thread = threading.Thread(target=told.append, args=("thread",))
            thread.start()
            thread.join()
            with multiprocessing.Pool(2) as pool:
                forked = pool.map(square, [1, 2, 3])
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                spawned = pool.map(square, [4])
            with concurrent.futures.ProcessPoolExecutor(2) as executor:
                executed = list(executor.map(square, [5, 6]))
            with concurrent.futures.ThreadPoolExecutor(8) as executor:
                paths = sorted(executor.map(
                    lambda n: requests.get(f"http://proxy:80/{n}", timeout=10).json(), range(16)
                ))
            with tempfile.NamedTemporaryFile("w+") as file:
                file.write("kept")
                file.seek(0)
                kept = file.read()
            return [{
                "pair": dataclasses.asdict(Pair(1)),
                "module": sys.modules[__name__] is sys.modules[agent_main.__module__],
                "told": told, "forked": forked, "spawned": spawned, "executed": executed,
                "paths": len(set(paths)), "kept": kept,
                "problem": problem == json.loads(os.environ["PROBLEM_DATA"]),
                "path": ProxyClient().get("/search/find_product", {"q": "belt"}),
                "step": "completion" in create_dialogue_step("t", [], "r", "q", 1),
            }]
    """
    result = await bubblewrap.run(spec(door, source, wall_s=60))
    assert result.error is None, (result.error, result.log)
    assert result.dialogue == (
        {
            "pair": {"left": 1, "right": 2},
            "module": True,
            "told": ["thread"],
            "forked": [1, 4, 9],
            "spawned": [16],
            "executed": [25, 36],
            "paths": 16,
            "kept": "kept",
            "problem": True,
            "path": "/search/find_product?q=belt",
            "step": True,
        },
    )
    assert result.peak_memory_bytes is not None
    assert result.cpu_s is not None


async def test_an_agent_gets_its_problem_and_its_environment(
    bubblewrap: Isolation, door: SandboxDoor
) -> None:
    source = "import os\ndef agent_main(p): return [{**p, 'model': os.environ['SANDBOX_MODEL']}]"
    made = spec(door, source)
    made = type(made)(
        run_id=made.run_id,
        agent_source=made.agent_source,
        problem=made.problem,
        gateway_socket=made.gateway_socket,
        env={"SANDBOX_MODEL": "shopper"},
    )
    result = await bubblewrap.run(made)
    assert result.dialogue == (
        {
            "problem_id": "p-1",
            "query": "a leather belt",
            "category": "Product",
            "model": "shopper",
        },
    )


ENDINGS = {
    "a syntax error": ("def agent_main(:", codes.AGENT_SYNTAX, "line 1"),
    "a null byte": ("x = 1\0", codes.AGENT_SYNTAX, "null bytes"),
    "no agent_main": ("x = 1", codes.AGENT_NO_MAIN, "agent_main"),
    "an import that fails": ("import numpy", codes.AGENT_IMPORT, "numpy"),
    "an exception": ("def agent_main(p): 1/0", codes.AGENT_EXCEPTION, "ZeroDivisionError"),
    "text": ("def agent_main(p): return 'x'", codes.AGENT_BAD_RETURN, "str"),
    "NaN": ("def agent_main(p): return [{'x': float('nan')}]", codes.AGENT_BAD_RETURN, "JSON"),
    "exit": ("def agent_main(p): raise SystemExit(3)", codes.AGENT_EXITED, "3"),
    "a hard exit": ("import os\ndef agent_main(p): os._exit(3)", codes.AGENT_EXITED, "code 3"),
    "a signal": ("import os\ndef agent_main(p): os.kill(os.getpid(), 9)", codes.AGENT_EXITED, "9"),
    "too much": (
        "def agent_main(p): return [{'x': 'y' * (17 << 20)}]",
        codes.AGENT_ANSWER_TOO_LARGE,
        "bytes",
    ),
    "memory": (
        "def agent_main(p):\n  x = []\n  while True: x.append(bytearray(1 << 22))",
        codes.AGENT_OUT_OF_MEMORY,
        "256 MiB",
    ),
    "memory in /tmp and in a child": (
        "import os\ndef agent_main(p):\n  os.fork()\n  x = []\n"
        "  while True: x.append(bytearray(1 << 22))",
        codes.AGENT_OUT_OF_MEMORY,
        "256 MiB",
    ),
    "a full disk": (
        "def agent_main(p):\n  f = open('/tmp/x', 'wb')\n  while True: f.write(bytes(1 << 20))",
        codes.AGENT_EXCEPTION,
        "No space left",
    ),
    "an answer of its own making": (
        "import os\ndef agent_main(p):\n  for n in range(3, 9):\n    try: os.write(n, b'{}\\n')\n"
        "    except OSError: pass\n  return []",
        codes.AGENT_BAD_RETURN,
        "by itself",
    ),
}


@pytest.mark.parametrize("how", ENDINGS)
async def test_how_a_run_ends_is_told_and_is_the_agents_fault(
    bubblewrap: Isolation, door: SandboxDoor, how: str
) -> None:
    source, code, words = ENDINGS[how]
    result = await bubblewrap.run(spec(door, source))
    assert result.error is not None
    assert (result.error.code, result.error.fault) == (code, Fault.AGENT), result
    assert words in result.error.message
    assert result.dialogue is None


async def test_an_agent_is_stopped_when_its_time_is_over(
    bubblewrap: Isolation, door: SandboxDoor
) -> None:
    source = "def agent_main(p):\n  while True: pass"
    result = await bubblewrap.run(spec(door, source, wall_s=0.3))
    assert result.error is not None
    assert (result.error.code, result.error.fault) == (codes.AGENT_TIMEOUT, Fault.AGENT)
    assert result.wall_s >= 0.3


async def test_excused_time_is_not_the_agents_until_the_hard_stop(
    bubblewrap: Isolation, door: SandboxDoor
) -> None:
    base = spec(door, VISITS_AND_WAITS, wall_s=0.2, hard_wall_s=0.6)
    excused = type(base)(
        run_id=base.run_id,
        agent_source=base.agent_source,
        problem=base.problem,
        gateway_socket=base.gateway_socket,
        limits=base.limits,
        excused_s=lambda: 1000.0,
    )
    result = await bubblewrap.run(excused)
    assert result.error is not None
    assert (result.error.code, result.error.fault) == (codes.HOST_HARD_STOP, Fault.VALIDATOR)
    assert result.wall_s >= 0.6


async def test_a_fork_bomb_ends_with_its_time_and_leaves_nothing(
    bubblewrap: Isolation, door: SandboxDoor
) -> None:
    source = """
        import os

        def agent_main(problem):
            while True:
                try:
                    os.fork()
                except OSError:
                    pass
    """
    result = await bubblewrap.run(spec(door, source, wall_s=1))
    assert result.error is not None
    assert result.error.fault is Fault.AGENT
    assert not sandboxes_of_this_test()


async def test_the_log_is_bounded_counted_and_text(
    bubblewrap: Isolation, door: SandboxDoor
) -> None:
    source = """
        import os, sys

        def agent_main(problem):
            print("kept \\0 \\ud800".encode("utf-8", "surrogatepass"))
            os.write(1, b"raw \\0 \\xff")
            os.write(2, b"e" * 5000)
            return []
    """
    result = await bubblewrap.run(spec(door, source, log_bytes=1000))
    assert result.error is None
    assert len(result.log.encode()) <= 1000 + 10
    assert result.log_dropped_bytes > 3000
    assert "\0" not in result.log


@needs_root
async def test_killing_its_own_forwarder_does_an_agent_no_good(
    bubblewrap: Isolation, door: SandboxDoor
) -> None:
    said = await told(
        bubblewrap,
        door,
        """
        import os, signal, urllib.request
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            os.kill(-1, signal.SIGTERM)
        except OSError as error:
            say["refused"] = error.errno
        say["answer"] = urllib.request.urlopen("http://proxy/still").read().decode()
        """,
    )
    assert said["answer"] == '"/still"'


@needs_root
async def test_the_sockets_owner_is_the_only_one_to_connect(
    bubblewrap: Isolation, door: SandboxDoor
) -> None:
    source = "import os\ndef agent_main(p): return [{'uid': os.getuid()}]"
    result = await bubblewrap.run(spec(door, source))
    assert result.dialogue is not None
    uid = result.dialogue[0]["uid"]
    found = door.path.stat()
    assert found.st_mode & 0o777 == 0o600
    assert found.st_uid == uid + 1 if isinstance(uid, int) else False


async def test_a_missing_socket_is_the_validators_fault(
    bubblewrap: Isolation, tmp_path: Path
) -> None:
    nowhere = SandboxDoor(tmp_path / "nowhere.sock")
    with pytest.raises(IsolationError, match=r"nowhere\.sock"):
        await bubblewrap.run(spec(nowhere, "def agent_main(p): return []"))
    assert not sandboxes_of_this_test()


async def test_cancelling_a_run_kills_and_removes_its_sandbox(
    bubblewrap: Isolation, door: SandboxDoor
) -> None:
    run = asyncio.create_task(bubblewrap.run(spec(door, VISITS_AND_WAITS)))
    await door.visited.wait()
    assert len(sandboxes_of_this_test()) == 1
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert not sandboxes_of_this_test()


async def test_closing_ends_the_runs_and_leaves_nothing(
    bubblewrap: Isolation, door: SandboxDoor
) -> None:
    run = asyncio.create_task(bubblewrap.run(spec(door, VISITS_AND_WAITS)))
    await door.visited.wait()
    await bubblewrap.close()
    with pytest.raises(IsolationError, match="closed"):
        await run
    with pytest.raises(IsolationError, match="closed"):
        await bubblewrap.run(spec(door, VISITS_AND_WAITS))
    assert not sandboxes_of_this_test()


OWNER = """
import asyncio, sys
from pathlib import Path
from sandbox.isolation.bubblewrap import Bubblewrap
from sandbox.isolation.interface import SandboxSpec
from scoring.types import AgentProblem

async def main():
    isolation = await Bubblewrap.open()
    source = Path(sys.argv[2]).read_bytes()
    problem = AgentProblem("p", "q", "Product")
    await isolation.run(SandboxSpec("r", source, problem, Path(sys.argv[1])))

asyncio.run(main())
"""


async def test_kill_minus_9_of_the_owner_ends_its_sandbox_and_the_next_start_removes_the_rest(
    bubblewrap: Isolation, door: SandboxDoor, tmp_path: Path
) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text(textwrap.dedent(VISITS_AND_WAITS))
    owner = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", OWNER, str(door.path), str(agent))
    )
    await door.visited.wait()
    (left,) = sandboxes_of_this_test()
    assert not any(left in text for text in await bubblewrap.reclaim()), "its owner lives"
    assert sandboxes_of_this_test() == {left}
    owner.send_signal(signal.SIGKILL)
    await owner.wait()
    removed = await bubblewrap.reclaim()
    assert any("of a process that is gone" in text for text in removed)
    assert not sandboxes_of_this_test()
    assert await bubblewrap.reclaim() == []


ORDINARY_USER = """
import asyncio, json, os, sys
from pathlib import Path
from sandbox.exceptions import IsolationError
from sandbox.isolation import cgroup
from sandbox.isolation.bubblewrap import Bubblewrap
from sandbox.isolation.interface import SandboxSpec
from sandbox.isolation.settings import IsolationSettings
from scoring.types import AgentProblem

socket, folder, delegated = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "delegated"
SOURCE = b'''
import os, urllib.request
def agent_main(problem):
    said = urllib.request.urlopen(os.environ["SANDBOX_PROXY_URL"] + "/hello").read().decode()
    status = open("/proc/self/status").read()
    capabilities = [line.split()[1] for line in status.splitlines() if line.startswith("Cap")]
    return [{"said": said, "uid": os.getuid(), "caps": sorted(set(capabilities))}]
'''

async def run():
    folders = {"run_dir": folder / f"run-{os.getuid()}", "cache_dir": folder / f"c-{os.getuid()}"}
    isolation = await Bubblewrap.open(IsolationSettings(**folders))
    problem = AgentProblem("p", "q", "Product")
    result = await isolation.run(SandboxSpec("r", SOURCE, problem, socket))
    await isolation.close()
    return [str(result.error), result.dialogue]

asyncio.run(run())  # as root, so that every module is read before root's files are out of reach
if delegated:
    limits = SandboxSpec("", b"", None, socket).limits
    for file in cgroup.find().create("sn15-test-delegated", limits).join_files():
        for path in (file, file.parent):
            os.chown(path, 65534, 65534)
        file.write_text(str(os.getpid()))
os.chown(socket, 65534, 65534)
os.chown(folder, 65534, 65534)
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
try:
    print(json.dumps(asyncio.run(run())))
except IsolationError as error:
    print(json.dumps([error.message, error.remedy]))
"""


async def as_an_ordinary_user(door: SandboxDoor, folder: Path, how: str) -> list[object]:
    """Open and run as user 65534, with or without groups delegated to it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", ORDINARY_USER, str(door.path), str(folder), how),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    for found in await asyncio.to_thread(lambda: list(_delegated_groups())):
        found.rmdir()
    said: list[object] = json.loads(out)
    return said


def _delegated_groups() -> Iterator[Path]:
    for controller in (*cgroup.CONTROLLERS, "cpuacct"):
        found = cgroup.own_group(controller)
        if found is not None and (folder := found[0] / "sn15-test-delegated").is_dir():
            yield folder


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that every user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="sn15-test-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@needs_root
async def test_an_ordinary_user_without_delegated_groups_is_refused_and_told_what_helps(
    bubblewrap: Isolation, public_folder: Path
) -> None:
    async with SandboxDoor(public_folder / "s") as door:
        message, remedy = await as_an_ordinary_user(door, public_folder, "alone")
    assert "limits on memory" in str(message)
    assert "sudo" in str(remedy)
    assert "Docker" in str(remedy)


@needs_root
async def test_an_ordinary_user_with_delegated_groups_confines_in_a_user_namespace(
    bubblewrap: Isolation, public_folder: Path
) -> None:
    async with SandboxDoor(public_folder / "s") as door:
        error, dialogue = await as_an_ordinary_user(door, public_folder, "delegated")
    assert error == "None"
    assert dialogue == [{"said": '"/hello"', "uid": 1000, "caps": ["0000000000000000"]}]


@needs_root
async def test_two_processes_never_share_a_user(bubblewrap: Isolation, tmp_path: Path) -> None:
    source = """
        import os, urllib.request

        def agent_main(problem):
            urllib.request.urlopen(f"http://proxy/{os.getuid()}").read()
            import time
            time.sleep(600)
    """
    agent = tmp_path / "agent.py"
    agent.write_text(textwrap.dedent(source))
    async with SandboxDoor(tmp_path / "a") as first, SandboxDoor(tmp_path / "b") as second:
        other = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", OWNER, str(first.path), str(agent))
        )
        run = asyncio.create_task(bubblewrap.run(spec(second, source)))
        await asyncio.gather(first.visited.wait(), second.visited.wait())
        other.kill()
        run.cancel()
        await asyncio.wait({run})
        await other.wait()
        assert first.paths[0] != second.paths[0]
    await bubblewrap.reclaim()


@needs_root
async def test_user_ids_that_belong_to_someone_are_refused(tmp_path: Path) -> None:
    settings = IsolationSettings(uid_base=65534, uid_slots=1, run_dir=tmp_path, cache_dir=tmp_path)
    with pytest.raises(IsolationError, match="nobody") as caught:
        await Bubblewrap.open(settings)
    assert "ARENA_SANDBOX_UID_BASE" in str(caught.value.remedy)


async def test_the_environment_names_what_decides_how_agents_run(bubblewrap: Isolation) -> None:
    said = bubblewrap.environment()
    assert said["isolation"] == "bubblewrap"
    assert {"bubblewrap", "python", "requests", "digest"} <= set(said)
