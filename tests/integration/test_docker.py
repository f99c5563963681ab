"""Agents in real containers: what they can do, what they cannot, and what is left of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import textwrap
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from sandbox.exceptions import Fault, IsolationError
from sandbox.isolation import docker_image
from sandbox.isolation import interface as codes
from sandbox.isolation.docker import Docker
from sandbox.isolation.docker_container import LABEL_OWNER, LABEL_RUN
from sandbox.isolation.docker_engine import Engine, survey
from sandbox.isolation.interface import Isolation, SandboxSpec
from tests.integration.sandbox_door import SandboxDoor as Door
from tests.integration.sandbox_door import spec as common_spec
from tests.integration.sandbox_door import told

pytestmark = pytest.mark.isolation


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Door]:
    async with Door(tmp_path / "session.sock") as opened:
        yield opened


async def containers() -> list[dict[str, Any]]:
    """All sandboxes of this machine, whoever owns them."""
    found = survey(docker_image.reference())
    engine = Engine(found.socket, found.api)
    try:
        return await engine.containers(LABEL_OWNER)
    finally:
        await engine.close()


def spec(door: Door, source: str, **limits: Any) -> SandboxSpec:
    """A run that is told from those of other tests on the same engine by its door."""
    return replace(common_spec(door, source, **limits), run_id=str(door.path))


async def runs_of(door: Door) -> list[dict[str, Any]]:
    """The containers that were given this door."""
    return [c for c in await containers() if c["Labels"][LABEL_RUN] == str(door.path)]


async def count(door: Door) -> int:
    """How many containers were given this door."""
    return len(await runs_of(door))


HANGS = """
    import time, urllib.request

    def agent_main(problem):
        urllib.request.urlopen("http://proxy/health").read()
        while True:
            time.sleep(60)
"""


async def test_an_agent_gets_the_kit_requests_and_the_gateway_and_nothing_of_it_stays(
    docker: Isolation, door: Door
) -> None:
    said = await told(
        docker,
        door,
        """
        import os, requests
        from src.agent.proxy_client import ProxyClient
        import arena_client
        print("to the log")
        say["proxy"] = requests.get("http://proxy:80/health").json()
        say["found"] = ProxyClient().get("/search/find_product", {"q": "belt"})
        say["requests"] = requests.__version__
        say["problem"] = problem
        say["env"] = dict(os.environ)
        """,
    )
    assert said["proxy"] == "/health"
    assert said["found"] == "/search/find_product?q=belt"
    assert said["requests"] == docker.environment()["requests"]
    assert said["problem"] == {
        "problem_id": "p-1",
        "query": "a leather belt",
        "category": "Product",
    }
    assert json.loads(said["env"].pop("PROBLEM_DATA")) == said["problem"]
    assert said["env"]["SANDBOX_PROXY_URL"] == "http://proxy:80"


async def test_nothing_can_be_imported_but_the_standard_library_requests_and_the_kit(
    docker: Isolation, door: Door
) -> None:
    said = await told(
        docker,
        door,
        """
        import pkgutil, sys
        say["others"] = sorted(
            m.name for m in pkgutil.iter_modules() if m.name not in sys.stdlib_module_names
        )
        """,
    )
    kit = {"agent", "arena_client", "forwarder", "runner", "src"}
    libraries = {name.replace("-", "_") for name in docker_image.LIBRARIES}
    examples = {"xxlimited", "xxlimited_35"}  # the standard library's, for authors of extensions
    others = {name for name in said["others"] if not name.startswith("_")}
    assert libraries <= others
    assert others <= kit | libraries | examples


async def test_multiprocessing_and_threads_and_dataclasses_work(
    docker: Isolation, door: Door
) -> None:
    source = """
        import dataclasses, multiprocessing, threading, concurrent.futures

        @dataclasses.dataclass
        class Step:
            think: str

        def square(n):
            return n * n

        def agent_main(problem):
            with multiprocessing.Pool(2) as pool:
                squares = pool.map(square, [1, 2, 3])
            context = multiprocessing.get_context("spawn")
            with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
                squares += list(pool.map(square, [4]))
            lines = []
            thread = threading.Thread(target=lines.append, args=("threaded",))
            thread.start()
            thread.join()
            return [dataclasses.asdict(Step(f"{squares} {lines}"))]
    """
    result = await docker.run(spec(door, source))
    assert result.error is None, result.log
    assert result.dialogue == ({"think": "[1, 4, 9, 16] ['threaded']"},)


async def test_an_agent_is_an_unprivileged_host_user_of_its_own(
    docker: Isolation, door: Door
) -> None:
    body = """
        import os
        say["ids"] = [*os.getresuid(), *os.getresgid(), *os.getgroups()]
        status = open("/proc/self/status").read().splitlines()
        say["status"] = dict(line.split(":\\t", 1) for line in status if ":\\t" in line)
    """
    first, second = await asyncio.gather(told(docker, door, body), told(docker, door, body))
    assert len(set(first["ids"])) == 1
    assert first["ids"][0] > 60_000
    assert set(first["ids"]).isdisjoint(second["ids"])
    none = "0" * 16
    for capabilities in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert first["status"][capabilities] == none
    assert first["status"]["NoNewPrivs"] == "1"
    assert first["status"]["Seccomp"] == "2"


async def test_the_mounts_show_nothing_of_the_host_but_one_socket(
    docker: Isolation, door: Door
) -> None:
    said = await told(
        docker,
        door,
        """
        import os
        say["mounts"] = [line.split() for line in open("/proc/self/mountinfo")]
        say["run"] = sorted(os.listdir("/run"))
        say["sys"] = os.listdir("/sys")
        say["names"] = open("/etc/resolv.conf").read().split()
        say["host"] = os.uname().nodename
        """,
    )
    own = {"/", "/null"}  # roots of file systems made for this container
    points = {
        fields[4]
        for fields in said["mounts"]
        if fields[3] not in own and fields[fields.index("-") + 1] not in {"proc", "cgroup2"}
    }
    assert points <= {
        "/run/gateway.sock",
        "/etc/hosts",
        "/etc/hostname",
        "/etc/resolv.conf",
        "/usr/sbin/docker-init",
    }
    (root,) = [fields for fields in said["mounts"] if fields[4] == "/"]
    assert "ro" in root[5].split(",")
    assert said["run"] == ["gateway.sock"]
    assert said["sys"] == []
    assert said["names"] == ["nameserver", "127.0.0.1"]
    assert said["host"] == "sandbox"


async def test_no_place_can_be_written_but_the_limited_ones_in_memory(
    docker: Isolation, door: Door
) -> None:
    said = await told(
        docker,
        door,
        """
        import os
        say["written"], say["full"], say["run"] = [], {}, []
        seen = set()
        for folder, names, files in os.walk("/"):
            names[:] = [n for n in names if os.path.join(folder, n) not in {"/proc", "/sys"}]
            try:
                with open(os.path.join(folder, "probe"), "w") as file:
                    file.write("x")
                os.unlink(os.path.join(folder, "probe"))
                say["written"].append(folder)
            except OSError:
                pass
        for folder in ("/tmp", "/sandbox"):
            try:
                for n in range(1000):
                    with open(f"{folder}/{n}", "wb") as file:
                        file.write(bytes(1 << 20))
            except OSError as error:
                say["full"][folder] = [n, error.errno]
            for name in range(n + 1):
                os.unlink(f"{folder}/{name}")
        with open("/tmp/program", "w") as file:
            file.write("#!/usr/bin/python3\\n")
        os.chmod("/tmp/program", 0o755)
        try:
            os.execv("/tmp/program", ["program"])
        except OSError as error:
            say["exec"] = error.errno
        """,
    )
    beyond = [
        place
        for place in said["written"]
        if not place.startswith(("/tmp", "/sandbox", "/dev/shm", "/dev/mqueue"))
    ]
    assert beyond == []
    import errno

    assert said["full"]["/tmp"][1] == said["full"]["/sandbox"][1] == errno.ENOSPC
    assert said["full"]["/tmp"][0] <= 8
    assert said["exec"] == errno.EACCES


@pytest.mark.parametrize(
    "path",
    [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/sysrq-trigger",
        "/proc/self/oom_score_adj=-1000",
        "/etc/hosts",
        "/dev/mem",
        "/dev/kmsg",
    ],
)
async def test_the_hosts_switches_cannot_be_turned(
    docker: Isolation, door: Door, path: str
) -> None:
    name, _, value = path.partition("=")
    said = await told(
        docker,
        door,
        f"""
        try:
            with open({name!r}, "w") as file:
                file.write({value or "1"!r})
            say["done"] = True
        except OSError as error:
            say["done"] = False
        """,
    )
    assert said["done"] is False


async def test_no_network_but_the_loopback_and_no_family_that_ignores_namespaces(
    docker: Isolation, door: Door
) -> None:
    said = await told(
        docker,
        door,
        """
        import socket
        say["interfaces"] = []
        for number in range(1, 1000):
            try:
                say["interfaces"].append(socket.if_indextoname(number))
            except OSError:
                pass
        say["opened"], say["connected"] = [], []
        for family in range(1, 46):
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
                try:
                    socket.socket(family, kind).close()
                    say["opened"].append(family)
                except OSError:
                    pass
        for address in ("1.1.1.1", "10.0.0.1", "172.17.0.1", "169.254.169.254"):
            try:
                socket.create_connection((address, 80), timeout=5)
                say["connected"].append(address)
            except OSError:
                pass
        """,
    )
    assert said["interfaces"] == ["lo"]
    assert said["connected"] == []
    assert set(said["opened"]) <= {1, 2, 10}


async def test_another_sessions_socket_and_the_engines_are_out_of_reach(
    docker: Isolation, door: Door, tmp_path: Path
) -> None:
    async with Door(tmp_path / "other.sock") as other:
        other.path.chmod(0o777)
        said = await told(
            docker,
            door,
            f"""
            import os, socket
            say["connected"], say["sockets"] = [], []
            for path in ({str(other.path)!r}, {str(door.path)!r}, "/run/docker.sock",
                         "/var/run/docker.sock", "/run/containerd/containerd.sock"):
                try:
                    socket.socket(socket.AF_UNIX).connect(path)
                    say["connected"].append(path)
                except OSError:
                    pass
            say["abstract"] = open("/proc/net/unix").read().count("@")
            """,
        )
        assert said["connected"] == []
        assert said["abstract"] == 0
        assert not other.visited.is_set()


async def test_only_its_own_processes_are_there_to_signal(docker: Isolation, door: Door) -> None:
    said = await told(
        docker,
        door,
        """
        import os
        say["processes"] = {}
        for name in os.listdir("/proc"):
            if name.isdigit():
                with open(f"/proc/{name}/cmdline") as file:
                    say["processes"][name] = file.read().split("\\0")[0]
        try:
            os.kill(1, 9)
            say["init"] = "signalled"
        except PermissionError:
            say["init"] = "refused"
        """,
    )
    programs = {os.path.basename(program) for program in said["processes"].values()}
    assert programs <= {"docker-init", "python3"}
    assert len(said["processes"]) <= 3


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("import os; os._exit(3)", codes.AGENT_EXITED),
        ("import os; os.kill(os.getpid(), 9)", codes.AGENT_EXITED),
        ("import os; os.kill(-1, 9)", None),
        (
            "hog = []\n    while True: hog.append(bytes(range(256)) * 4096)",
            codes.AGENT_OUT_OF_MEMORY,
        ),
        ("return [{'x': 'y' * 200_000}]", codes.AGENT_ANSWER_TOO_LARGE),
        ("import os; os.write(3, b'noise'); [os.write(n, b'noise\\n') for n in range(4, 9)]", None),
        ("return 'text'", codes.AGENT_BAD_RETURN),
        ("raise RuntimeError('no')", codes.AGENT_EXCEPTION),
    ],
    ids=["exit", "kills itself", "kills all", "memory", "answer", "frames", "return", "raise"],
)
async def test_an_agent_that_spoils_its_own_run_is_to_blame(
    docker: Isolation, door: Door, body: str, code: str | None
) -> None:
    source = f"def agent_main(problem):\n    {body}\n"
    result = await docker.run(spec(door, source, answer_bytes=100_000, memory_bytes=96 << 20))
    assert result.error is not None
    assert result.error.fault is Fault.AGENT
    assert code in (None, result.error.code), result.error
    assert await count(door) == 0


async def test_a_fork_bomb_stops_at_the_limit_of_processes(docker: Isolation, door: Door) -> None:
    said = await told(
        docker,
        door,
        """
        import os, signal
        children = []
        try:
            while True:
                child = os.fork()
                if child == 0:
                    signal.pause()
                children.append(child)
        except BlockingIOError:
            say["forked"] = len(children)
        for child in children:
            os.kill(child, signal.SIGKILL)
        """,
        pids=32,
    )
    assert 0 < said["forked"] < 32


async def test_endless_output_is_cut_and_counted(docker: Isolation, door: Door) -> None:
    source = "def agent_main(problem):\n    print('x' * 3_000_000)\n    return []\n"
    result = await docker.run(spec(door, source, log_bytes=1000))
    assert result.error is None
    assert result.log == "x" * 1000
    assert result.log_dropped_bytes == 3_000_001 - 1000


async def test_a_hanging_agent_is_killed_when_its_own_time_is_over(
    docker: Isolation, door: Door
) -> None:
    result = await docker.run(spec(door, HANGS, wall_s=0.3))
    assert result.error is not None
    assert result.error.code == codes.AGENT_TIMEOUT
    assert result.error.fault is Fault.AGENT
    assert await count(door) == 0


async def test_time_that_the_validator_took_is_not_the_agents(
    docker: Isolation, door: Door
) -> None:
    given = replace(spec(door, HANGS, wall_s=0.2, hard_wall_s=0.5), excused_s=lambda: 3600.0)
    result = await docker.run(given)
    assert result.error is not None
    assert result.error.code == codes.HOST_HARD_STOP
    assert result.error.fault is Fault.VALIDATOR


async def test_an_agent_that_kills_its_forwarder_loses_its_gateway_alone(
    docker: Isolation, door: Door
) -> None:
    said = await told(
        docker,
        door,
        """
        import os, signal, requests
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) not in (1, os.getpid()):
                os.kill(int(name), signal.SIGKILL)
        try:
            requests.get("http://proxy/health", timeout=5)
            say["answered"] = True
        except requests.ConnectionError:
            say["answered"] = False
        """,
    )
    assert said["answered"] is False


async def test_a_cancelled_run_leaves_no_container(docker: Isolation, door: Door) -> None:
    run = asyncio.create_task(docker.run(spec(door, HANGS)))
    await door.visited.wait()
    assert await count(door) == 1
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert await count(door) == 0


@pytest.mark.parametrize("steps", [0, 1, 6, 12, 20])
async def test_a_run_cancelled_while_it_starts_leaves_no_container(
    docker: Isolation, door: Door, steps: int
) -> None:
    run = asyncio.create_task(docker.run(spec(door, HANGS)))
    for _ in range(steps):
        await asyncio.sleep(0)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert await count(door) == 0


async def test_closing_removes_what_runs(docker: Isolation, door: Door) -> None:
    run = asyncio.create_task(docker.run(spec(door, HANGS)))
    await door.visited.wait()
    await docker.close()
    assert await count(door) == 0
    with pytest.raises(asyncio.CancelledError):
        await run
    with pytest.raises(IsolationError, match="closed"):
        await docker.run(spec(door, HANGS))


async def test_a_container_removed_by_somebody_else_is_not_the_agents_fault(
    docker: Isolation, door: Door
) -> None:
    run = asyncio.create_task(docker.run(spec(door, HANGS)))
    await door.visited.wait()
    found = survey(docker_image.reference())
    engine = Engine(found.socket, found.api)
    (mine,) = await runs_of(door)
    await engine.remove(mine["Id"])
    await engine.close()
    result = await run
    assert result.error is not None
    assert result.error.fault is Fault.VALIDATOR


class Line:
    """A line to the real engine that can be cut: then nothing answers, as when it died."""

    def __init__(self, path: Path, engine: Path) -> None:
        self.path = path
        self._engine = engine
        self._ends: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Line:
        self._server = await asyncio.start_unix_server(self._serve, self.path)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cut()

    async def cut(self) -> None:
        assert self._server is not None
        self._server.close()
        self.path.unlink(missing_ok=True)
        for end in self._ends:
            end.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_engine, to_engine = await asyncio.open_unix_connection(self._engine)
        self._ends += [writer, to_engine]
        await asyncio.gather(_pump(reader, to_engine), _pump(from_engine, writer))


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(1 << 16):
            target.write(data)
            await target.drain()
    except OSError:
        pass
    finally:
        target.close()


async def test_an_engine_that_vanishes_during_a_run_is_not_the_agents_fault(
    docker: Isolation, door: Door, tmp_path: Path
) -> None:
    real = survey(docker_image.reference()).socket
    async with Line(tmp_path / "engine.sock", real) as line:
        cut_off = await Docker.open(line.path)
        run = asyncio.create_task(cut_off.run(spec(door, HANGS)))
        await door.visited.wait()
        await line.cut()
        result = await run
        assert result.error is not None
        assert result.error.code == codes.HOST_FAILED
        assert result.error.fault is Fault.VALIDATOR
        with pytest.raises(IsolationError, match="no Docker engine answers"):
            await cut_off.run(spec(door, HANGS))
    assert await count(door) == 1
    async with Line(line.path, real):
        again = await cut_off.run(spec(door, "def agent_main(problem): return []"))
        assert again.error is None
        assert await count(door) == 0
        await cut_off.close()


OWNER = """
import asyncio, sys
from pathlib import Path
from sandbox.isolation.docker import Docker
from sandbox.isolation.interface import SandboxSpec
from scoring.types import AgentProblem

async def main():
    docker = await Docker.open()
    problem = AgentProblem("p", "q", "Product")
    source = Path(sys.argv[2]).read_bytes()
    await docker.run(SandboxSpec(sys.argv[1], source, problem, Path(sys.argv[1])))

asyncio.run(main())
"""


async def test_a_killed_owners_container_is_reclaimed_and_a_living_owners_is_not(
    docker: Isolation, door: Door, tmp_path: Path
) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text(textwrap.dedent(HANGS))
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OWNER, str(door.path), str(agent)
    )
    visited = asyncio.create_task(door.visited.wait())
    ended = asyncio.create_task(owner.wait())
    await asyncio.wait({visited, ended}, return_when=asyncio.FIRST_COMPLETED)
    assert owner.returncode is None, "the owner could not run its agent"
    assert not [line for line in await docker.reclaim() if str(owner.pid) in line]
    assert await count(door) == 1
    owner.send_signal(signal.SIGKILL)
    await ended
    (said,) = [line for line in await docker.reclaim() if str(owner.pid) in line]
    assert said.startswith("container sn15-arena-")
    assert await count(door) == 0


async def test_two_instances_run_beside_each_other_and_closing_one_leaves_the_others(
    docker: Isolation, door: Door, tmp_path: Path
) -> None:
    second = await Docker.open()
    async with Door(tmp_path / "second.sock") as other:
        run = asyncio.create_task(docker.run(spec(door, HANGS)))
        doomed = asyncio.create_task(second.run(spec(other, HANGS)))
        await asyncio.gather(door.visited.wait(), other.visited.wait())
        await second.close()
        await asyncio.gather(doomed, return_exceptions=True)
        assert await count(other) == 0
        assert await count(door) == 1
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)


async def test_many_at_once_are_kept_apart(docker: Isolation, tmp_path: Path) -> None:
    async def one(number: int) -> int:
        async with Door(tmp_path / f"{number}.sock") as door:
            said = await told(docker, door, f"say['number'] = {number}")
        return cast("int", said["number"])

    assert await asyncio.gather(*map(one, range(6))) == list(range(6))


async def test_what_was_used_is_told(docker: Isolation, door: Door) -> None:
    source = """
        def agent_main(problem):
            block = bytes(range(256)) * (64 << 12)
            return []
    """
    result = await docker.run(spec(door, source))
    assert result.peak_memory_bytes is not None
    assert 64 << 20 <= result.peak_memory_bytes <= 256 << 20
    assert result.cpu_s is not None
    assert result.cpu_s > 0


async def test_a_gateway_socket_that_is_not_there_is_the_validators_fault(
    docker: Isolation, tmp_path: Path
) -> None:
    with pytest.raises(IsolationError, match="socket"):
        await docker.run(spec(Door(tmp_path / "nowhere.sock"), "def agent_main(p): return []"))
