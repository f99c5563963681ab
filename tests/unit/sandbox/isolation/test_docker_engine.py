"""The client of the engine's API, against a server that speaks the same wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpcore
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.exceptions import Fault
from sandbox.isolation import docker_image
from sandbox.isolation.docker_checks import examine
from sandbox.isolation.docker_engine import (
    Engine,
    EngineError,
    EngineGoneError,
    Stdio,
    socket_path,
    survey,
)

GOOD_INFO: dict[str, Any] = {
    "ServerVersion": "20.10.24",
    "OSType": "linux",
    "SecurityOptions": ["name=seccomp,profile=default"],
    "MemoryLimit": True,
    "SwapLimit": True,
    "PidsLimit": True,
    "CpuCfsQuota": True,
    "CgroupVersion": "2",
    "MemTotal": 16 << 30,
}
GOOD_IMAGE: dict[str, Any] = {
    "Id": "sha256:1234",
    "Config": {
        "Labels": {
            docker_image.LABEL_PYTHON: "3.11.2",
            docker_image.LABEL_REQUESTS: "2.34.2",
        }
    },
}

Answer = tuple[int, Any]


@asynccontextmanager
async def engine_that(
    answers: Callable[[str, str], Answer | None], path: Path
) -> AsyncIterator[Path]:
    """Serve the engine's wire at `path`; an answer of None cuts the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
                answer = answers(method, target)
                if answer is None:
                    break
                status, body = answer
                data = json.dumps(body).encode()
                lines = [
                    f"HTTP/1.1 {status} X",
                    f"Content-Length: {len(data)}",
                    "Api-Version: 1.41",
                ]
                writer.write("\r\n".join([*lines, "", ""]).encode() + data)
                await writer.drain()
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_unix_server(serve, path)
    try:
        yield path
    finally:
        server.close()


def healthy(
    info: dict[str, Any] | None = None, image: dict[str, Any] | None = GOOD_IMAGE
) -> Callable[[str, str], Answer | None]:
    def answers(_: str, target: str) -> Answer:
        if target.endswith("/_ping"):
            return 200, "OK"
        if target.endswith("/info"):
            return 200, GOOD_INFO | (info or {})
        return (404, {"message": "No such image"}) if image is None else (200, image)

    return answers


async def lacks(path: Path, answers: Callable[[str, str], Answer | None]) -> list[tuple[str, str]]:
    """What `arena doctor` would say is missing: name and remedy."""
    async with engine_that(answers, path):
        found = await asyncio.to_thread(examine, path)
    assert all(check.remedy for check in found.checks if not check.ok)
    return [(check.name, check.remedy or "") for check in found.checks if not check.ok]


async def test_an_engine_with_everything_lacks_nothing(tmp_path: Path) -> None:
    assert await lacks(tmp_path / "s", healthy()) == []


@pytest.mark.parametrize(
    ("info", "name"),
    [
        ({"SecurityOptions": []}, "docker: confinement"),
        ({"SecurityOptions": None}, "docker: confinement"),
        ({"MemoryLimit": False}, "docker: confinement"),
        ({"PidsLimit": False}, "docker: confinement"),
        ({"CpuCfsQuota": False}, "docker: confinement"),
        ({"OSType": "windows"}, "docker: confinement"),
        ({"MemTotal": 1 << 30}, "docker: memory"),
    ],
)
async def test_an_engine_that_cannot_confine_is_found_out(
    tmp_path: Path, info: dict[str, Any], name: str
) -> None:
    assert [lack for lack, _ in await lacks(tmp_path / "s", healthy(info))] == [name]


@pytest.mark.parametrize("image", [None, {"Id": "sha256:1", "Config": {"Labels": None}}])
async def test_a_missing_or_unfinished_image_names_the_command_that_builds_it(
    tmp_path: Path, image: dict[str, Any] | None
) -> None:
    ((name, remedy),) = await lacks(tmp_path / "s", healthy(image=image))
    assert name == "docker: image"
    assert "make image" in remedy


async def test_no_engine_is_told_with_the_command_that_starts_it(tmp_path: Path) -> None:
    (check,) = examine(tmp_path / "nobody.sock").checks
    assert not check.ok
    assert check.remedy is not None
    assert "systemctl start docker" in check.remedy


async def test_an_engine_that_is_too_old_is_refused(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nApi-Version: 1.24\r\nContent-Length: 2\r\n\r\nOK")
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(serve, tmp_path / "s")
    try:
        with pytest.raises(EngineError, match=r"1\.24"):
            await asyncio.to_thread(survey, "image", tmp_path / "s")
    finally:
        server.close()


async def test_a_refusal_carries_the_engines_words_and_is_not_the_agents_fault(
    tmp_path: Path,
) -> None:
    async with engine_that(
        lambda *_: (500, {"message": "no space left on device"}), tmp_path / "s"
    ):
        engine = Engine(tmp_path / "s", "1.41")
        with pytest.raises(EngineError, match="no space left on device") as caught:
            await engine.create("name", {})
        await engine.close()
    assert caught.value.fault is Fault.VALIDATOR
    assert caught.value.status == 500


async def test_an_engine_that_hangs_up_is_gone(tmp_path: Path) -> None:
    async with engine_that(lambda *_: None, tmp_path / "s"):
        engine = Engine(tmp_path / "s", "1.41")
        with pytest.raises(EngineGoneError):
            await engine.inspect("some")
        await engine.close()


@pytest.mark.parametrize("status", [204, 404, 409])
async def test_removing_what_is_gone_already_is_no_error(tmp_path: Path, status: int) -> None:
    async with engine_that(lambda *_: (status, {"message": ""}), tmp_path / "s"):
        engine = Engine(tmp_path / "s", "1.41")
        if status != 204:
            await engine.remove("some")
        await engine.close()


@pytest.mark.parametrize("host", ["tcp://10.0.0.1:2375", "ssh://somewhere", "npipe:////./pipe"])
def test_an_engine_on_another_machine_is_refused(host: str) -> None:
    with pytest.raises(EngineError, match="not on this machine"):
        socket_path({"DOCKER_HOST": host})


def test_the_engines_socket_is_docker_host_or_the_standard_one() -> None:
    assert socket_path({}) == Path("/var/run/docker.sock")
    assert socket_path({"DOCKER_HOST": "unix:///run/user/1/d.sock"}) == Path("/run/user/1/d.sock")


class Wire(httpcore.AsyncNetworkStream):
    """An upgraded connection that delivers given pieces."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = [piece for piece in pieces if piece]

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        return self._pieces.pop(0) if self._pieces else b""


frames = st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=50)), max_size=10)


@settings(deadline=None)
@given(frames, st.data())
def test_output_is_the_same_however_the_connection_cuts_it(
    sent: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    raw = b"".join(bytes([n, 0, 0, 0]) + len(body).to_bytes(4, "big") + body for n, body in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]

    async def received() -> dict[int, bytes]:
        got = {1: b"", 2: b""}
        async for channel, piece in Stdio(Wire(pieces)).chunks():
            got[channel] += piece
        return got

    expected = {n: b"".join(body for channel, body in sent if channel == n) for n in (1, 2)}
    assert asyncio.run(received()) == expected
