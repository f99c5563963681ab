"""What an agent under bubblewrap must not be able to do, tried for real."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import secrets
import socket
import textwrap
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sandbox.isolation.interface import Isolation
from tests.integration.sandbox_door import SandboxDoor, spec, told

pytestmark = pytest.mark.isolation

PRELUDE = """
import ctypes, errno, os, socket, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)

def call(function, *arguments):
    if function(*arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True

def reach(family, kind, address):
    s = socket.socket(family, kind)
    s.settimeout(2)
    s.connect(address)
    s.send(b"x")
    return s.recv(1)
"""

READS = {
    "the host's shadow file": "open('/etc/shadow').read()",
    "the host's machine id": "open('/etc/machine-id').read()",
    "root's home": "os.listdir('/root')",
    "users' homes": "os.listdir('/home')",
    "the validator's checkout": "open({checkout!r}).read()",
    "a root-only file": "open({secret!r}).read()",
    "the folder of agents' files": "os.listdir({folder!r})",
    "the validator's packages": "__import__('numpy')",
    "Debian's packages": "os.listdir('/usr/lib/python3/dist-packages')",
    "the folder of sockets": "os.listdir('/run')",
    "kernel settings": "open('/proc/sys/kernel/core_pattern').read()",
    "the host's memory": "open('/proc/meminfo').read()",
    "the kernel's memory": "open('/proc/kcore', 'rb').read(1)",
    "the host's processes": "open('/proc/1/cmdline').read()",
    "the environment of the first process": "open('/proc/1/environ').read()",
    "the root of the first process": "os.listdir('/proc/1/root')",
    "the host's devices": "os.listdir('/sys')",
    "a disk": "open('/dev/vda', 'rb').read(1)",
    "the control groups": "os.listdir('/sys/fs/cgroup')",
}

WRITES = {
    "the core pattern": "open('/proc/sys/kernel/core_pattern', 'w').write('|/tmp/x')",
    "a file in the root": "open('/x', 'w')",
    "the hosts file": "open('/etc/hosts', 'a')",
    "the runner": "open('/sandbox/kit/runner.py', 'a')",
    "its own source": "open('/sandbox/job/agent.py', 'a')",
    "the standard library": "open(os.__file__, 'a')",
    "a device node": "os.mknod('/tmp/disk', 0o60600, os.makedev(254, 0))",
    "the gateway's socket file": "os.unlink('/sandbox/gateway.sock')",
    "the place of another's socket": "os.rename('/sandbox/gateway.sock', '/sandbox/s')",
}

POWERS = {
    "becoming root": "os.setuid(0)",
    "another user": "os.setresuid({other_uid}, {other_uid}, {other_uid})",
    "another group": "os.setgroups([0])",
    "mounting": "call(libc.mount, b'tmpfs', b'/tmp', b'tmpfs', 0, None)",
    "mounting the host's processes": "call(libc.mount, b'proc', b'/proc', b'proc', 0, None)",
    "unmounting": "call(libc.umount2, b'/proc', 2)",
    "changing the root": "os.chroot('/tmp')",
    "a user namespace": "call(libc.unshare, 0x10000000)",
    "a network namespace": "call(libc.unshare, 0x40000000)",
    "a clone in a user namespace": "call(libc.syscall, 56, 0x10000011, 0, 0, 0, 0)",
    "a clone3 in a user namespace": "call(libc.syscall, 435, ctypes.create_string_buffer("
    "(0x10000000).to_bytes(8, 'little') + bytes(80)), 88)",
    "joining a namespace": "call(libc.setns, os.open('/proc/self/ns/net', 0), 0)",
    "tracing": "call(libc.ptrace, 0, 0, 0, 0)",
    "reading another process": "call(libc.process_vm_readv, os.getppid(), None, 0, None, 0, 0)",
    "the kernel's keys": "call(libc.syscall, 248, b'user', b'x', b'y', 1, -3)",
    "reading keys": "call(libc.syscall, 250, 0, -3, 0)",
    "programs in the kernel": "call(libc.syscall, 321, 0, 0, 0)",
    "performance counters": "call(libc.syscall, 298, 0, 0, 0, 0, 0)",
    "io_uring": "call(libc.syscall, 425, 1, ctypes.create_string_buffer(120))",
    "userfaultfd": "call(libc.syscall, 323, 1)",
    "loading a kernel": "call(libc.syscall, 246, 0, 0, 0, 0)",
    "loading a module": "call(libc.syscall, 175, 0, 0, b'')",
    "opening by handle": "call(libc.syscall, 304, 3, 0, 0)",
    "rebooting": "call(libc.reboot, 0x1234567)",
    "swapping": "call(libc.swapon, b'/tmp/x', 0)",
    "the clock": "call(libc.syscall, 227, 0, ctypes.create_string_buffer(16))",
    "the host's name": "socket.sethostname('x')",
    "typing on the terminal": "__import__('fcntl').ioctl(2, 0x5412, b'x')",
    "the first process": "os.kill(1, 9) or True",
    "the forwarder": "[os.kill(p, 9) for p in range(3, 8) if p != os.getpid()]",
    "raising a limit": "__import__('resource').setrlimit(7, (1 << 20, 1 << 20)) or True",
    "a higher priority": "os.nice(-5)",
    "a program in /tmp": "[open('/tmp/x', 'wb').write(open(sys.executable, 'rb').read()),"
    " os.chmod('/tmp/x', 0o755), subprocess.run(['/tmp/x', '-c', ''])]",
    "a program in shared memory": "[open('/dev/shm/x', 'wb').write(open(sys.executable, 'rb')"
    ".read()), os.chmod('/dev/shm/x', 0o755), subprocess.run(['/dev/shm/x', '-c', ''])]",
    "a shell": "subprocess.run(['/bin/sh', '-c', 'true'])",
}

CONNECTIONS = {
    "a server on the host's loopback": "reach(2, 1, ('127.0.0.1', {tcp}))",
    "a datagram on the host's loopback": "reach(2, 2, ('127.0.0.1', {udp}))",
    "the host by its address": "reach(2, 1, ({address!r}, {tcp}))",
    "the internet": "reach(2, 1, ('1.1.1.1', 53))",
    "a cloud's metadata": "reach(2, 1, ('169.254.169.254', 80))",
    "the internet, IPv6": "reach(10, 1, ('2606:4700:4700::1111', 53))",
    "a name server": "socket.gethostbyname('example.com')",
    "a raw socket": "socket.socket(2, socket.SOCK_RAW, 1)",
    "a packet socket": "socket.socket(17, socket.SOCK_RAW, 3)",
    "the hypervisor": "socket.socket(40, 1)",
    "the kernel's crypto": "socket.socket(38, 5)",
    "an abstract socket of the host": "reach(1, 1, {abstract!r})",
    "another sandbox's socket": "reach(1, 1, {neighbour!r})",
    "the Docker engine": "reach(1, 1, '/var/run/docker.sock')",
}


class Host:
    """Things on the host that an agent shall not get at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.secret = folder / "secret"
        self.secret.write_text("a validator's key")
        self.secret.chmod(0o600)
        self.abstract = "\0sn15-arena-test-" + secrets.token_hex(8)
        self._sockets = contextlib.ExitStack()
        self.tcp = self._listen(socket.SOCK_STREAM)
        self.udp = self._listen(socket.SOCK_DGRAM)
        listener = self._sockets.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(self.abstract)
        listener.listen()
        neighbour = self._sockets.enter_context(socket.socket(socket.AF_UNIX))
        neighbour.bind(str(folder / "n.sock"))
        neighbour.listen()

    def _listen(self, kind: socket.SocketKind) -> int:
        listener = self._sockets.enter_context(socket.socket(socket.AF_INET, kind))
        listener.bind(("0.0.0.0", 0))
        if kind is socket.SOCK_STREAM:
            listener.listen()
        return int(listener.getsockname()[1])

    def fill(self, attempt: str) -> str:
        """The attempt with this host's own names in it."""
        return attempt.format(
            secret=str(self.secret),
            folder=str(self.folder),
            checkout=__file__,
            other_uid=os.getuid() or 65534,
            tcp=self.tcp,
            udp=self.udp,
            abstract=self.abstract,
            neighbour=str(self.folder / "n.sock"),
            address=_address(),
        )

    def close(self) -> None:
        self._sockets.close()


def _address() -> str:
    """An address of this machine that is not loopback, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: it only chooses a route
        except OSError:
            return "127.0.0.2"
        return str(probe.getsockname()[0])


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    yield made
    made.close()


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[SandboxDoor]:
    async with SandboxDoor(tmp_path / "s.sock") as opened:
        yield opened


async def refused(isolation: Isolation, door: SandboxDoor, attempt: str) -> str:
    """Run an expression inside; it has to fail. Returns with what."""
    source = PRELUDE + textwrap.dedent(
        f"""
        def agent_main(problem):
            try:
                got = {attempt}
            except (OSError, ImportError, ValueError) as error:
                return [{{"refused": type(error).__name__ + ": " + str(error)}}]
            return [{{"got": repr(got)[:200]}}]
        """
    )
    result = await isolation.run(spec(door, source))
    assert result.error is None, (result.error, result.log)
    assert result.dialogue is not None
    (answer,) = result.dialogue
    assert "refused" in answer, f"the agent got through: {answer}"
    return str(answer["refused"])


@pytest.mark.parametrize("what", READS)
async def test_an_agent_cannot_read(
    bubblewrap: Isolation, door: SandboxDoor, host: Host, what: str
) -> None:
    said = await refused(bubblewrap, door, host.fill(READS[what]))
    assert said.startswith(("FileNotFoundError", "ModuleNotFoundError", "PermissionError")), said


@pytest.mark.parametrize("what", WRITES)
async def test_an_agent_cannot_write(
    bubblewrap: Isolation, door: SandboxDoor, host: Host, what: str
) -> None:
    said = await refused(bubblewrap, door, host.fill(WRITES[what]))
    allowed = ("FileNotFoundError", "PermissionError", "OSError: [Errno 30]")
    assert said.startswith(allowed), said


@pytest.mark.skipif(platform.machine() != "x86_64", reason="system call numbers of x86-64")
@pytest.mark.parametrize("what", POWERS)
async def test_an_agent_has_no_power_over(
    bubblewrap: Isolation, door: SandboxDoor, host: Host, what: str
) -> None:
    said = await refused(bubblewrap, door, host.fill(POWERS[what]))
    # ENOSYS for clone3, ENOTTY where there is no terminal to type on, no /bin/sh.
    allowed = ("PermissionError", "ProcessLookupError", "FileNotFoundError", "OSError: [Errno 38]")
    assert said.startswith((*allowed, "ValueError: not allowed", "OSError: [Errno 25]")), said


@pytest.mark.parametrize("what", CONNECTIONS)
async def test_an_agent_cannot_connect_to(
    bubblewrap: Isolation, door: SandboxDoor, host: Host, what: str
) -> None:
    said = await refused(bubblewrap, door, host.fill(CONNECTIONS[what]))
    assert "timed out" not in said, "refused at once, not lost on the way"


async def test_what_an_agent_is_on_the_host(bubblewrap: Isolation, door: SandboxDoor) -> None:
    said = await told(
        bubblewrap,
        door,
        """
        import os
        say["status"] = open("/proc/self/status").read()
        say["mounts"] = open("/proc/self/mounts").read()
        say["fds"] = [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")[:-1]]
        """,
    )
    status = dict(line.split(":\t", 1) for line in said["status"].splitlines() if ":\t" in line)
    for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[kind], 16) == 0, kind
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    assert status["Groups"].strip() == ""
    assert len(set(status["Uid"].split())) == 1
    assert int(status["Uid"].split()[0]) >= 1000
    writable = {
        line.split()[1]: line.split()[3].split(",")
        for line in said["mounts"].splitlines()
        if "rw" in line.split()[3].split(",") and not line.split()[1].startswith("/dev/")
    }
    assert set(writable) == {"/tmp", "/proc"}
    for options in writable.values():
        assert {"nosuid", "nodev", "noexec"} <= set(options)
    assert all(fd.startswith(("/dev/null", "pipe:", "/proc")) for fd in said["fds"]), said["fds"]


async def test_nothing_of_the_validators_environment_comes_in(
    bubblewrap: Isolation, door: SandboxDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARENA_WALLET_PASSWORD", "hunter2")
    said = await told(
        bubblewrap,
        door,
        """
        import os
        say["env"] = dict(os.environ)
        say["raw"] = open("/proc/self/environ").read()
        """,
    )
    assert "hunter2" not in str(said)
    assert set(said["env"]) == {
        "CHUTES_ACCESS_TOKEN",
        "HOME",
        "LANG",
        "PATH",
        "PROBLEM_DATA",
        "PYTHONDONTWRITEBYTECODE",
        "SANDBOX_PROXY_URL",
        "TMPDIR",
    }


async def test_two_sandboxes_see_nothing_of_each_other(
    bubblewrap: Isolation, tmp_path: Path
) -> None:
    source = """
        import os, socket, urllib.request

        def agent_main(problem):
            mark = f"/tmp/{os.getuid()}"
            open(mark, "w").close()
            abstract = socket.socket(socket.AF_UNIX)
            abstract.bind("\\0here")
            urllib.request.urlopen("http://proxy/hello").read()
            return [{
                "uid": os.getuid(),
                "others": [p for p in os.listdir("/proc") if p.isdecimal()],
                "files": os.listdir("/tmp"),
            }]
    """
    async with SandboxDoor(tmp_path / "a") as first, SandboxDoor(tmp_path / "b") as second:
        results = await asyncio.gather(
            bubblewrap.run(spec(first, source)), bubblewrap.run(spec(second, source))
        )
        assert first.paths == second.paths == ["/hello"]
    said = [result.dialogue[0] for result in results if result.dialogue]
    assert len(said) == 2, [result.error for result in results]
    if os.geteuid() == 0:
        assert said[0]["uid"] != said[1]["uid"]
    for one in said:
        assert one["files"] == [str(one["uid"])]
        assert isinstance(one["others"], list)
        assert len(one["others"]) == 1
