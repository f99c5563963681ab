"""The Docker Engine's HTTP API over its Unix socket: the dozen calls a sandbox needs.

It speaks the API itself, through httpx, because a run must be cancellable at every
await and a container's stdin and stdout travel over an upgraded connection; the
blocking SDK would need a thread for each of both. Reference: Docker Engine API
v1.41, https://docs.docker.com/reference/api/engine/version/v1.41/.

May touch the engine's socket, and nothing else.
"""

from __future__ import annotations

import json
import os
import socket as socketlib
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import httpcore
import httpx

from sandbox.exceptions import IsolationError

DEFAULT_SOCKET = Path("/var/run/docker.sock")
START_ENGINE = "start it: systemctl start docker (or: dockerd &), as root"

_OLDEST_API = (1, 41)
_NEWEST_API = (1, 48)
"""The newest version this client was written against. An engine speaks older ones too."""

_FRAME_HEADER = 8
_READ_BYTES = 1 << 16


class EngineError(IsolationError):
    """The engine refused a request, or does not answer."""

    code = "isolation.engine"

    def __init__(self, message: str, *, status: int = 0, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.status = status


class EngineGoneError(EngineError):
    """Nothing answers at the engine's socket, or it went away in the middle of a request."""

    code = "isolation.engine_gone"


class Stdio:
    """A container's standard streams, attached before it starts.

    The engine multiplexes output in frames: one byte for the stream, three of zero,
    four of length (big endian), then that many bytes.
    """

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream

    async def send(self, data: bytes) -> None:
        """Write to standard input. Raises EngineGoneError when nobody takes it any more."""
        try:
            await self._stream.write(data)
        except httpcore.NetworkError as error:
            raise EngineGoneError(f"the container's input is closed: {error}") from error

    def end_input(self) -> None:
        """Close standard input, keeping the output open."""
        self._stream.get_extra_info("socket").shutdown(1)  # SHUT_WR

    async def chunks(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yield (1 or 2, bytes) as they come, until the container has ended.

        A frame is passed on piece by piece: its length never decides how much is held.
        """
        header = b""
        channel, left = 0, 0
        try:
            while data := await self._stream.read(_READ_BYTES):
                view = data
                while view:
                    if left == 0:
                        header, view = _fill(header, view)
                        if len(header) == _FRAME_HEADER:
                            channel, left = header[0], int.from_bytes(header[4:], "big")
                            header = b""
                        continue
                    piece, view = view[:left], view[left:]
                    left -= len(piece)
                    yield channel, piece
        except httpcore.NetworkError as error:
            # The upgraded connection is httpcore's: httpx does not map its errors.
            raise EngineGoneError(
                f"the Docker engine cut the container's output: {error}"
            ) from error


def _fill(header: bytes, data: bytes) -> tuple[bytes, bytes]:
    missing = _FRAME_HEADER - len(header)
    return header + data[:missing], data[missing:]


def socket_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the engine listens: DOCKER_HOST, or the standard socket.

    Raises EngineError for an engine on another machine: the gateway's socket cannot
    be mounted there.
    """
    host = environ.get("DOCKER_HOST", "")
    if not host:
        return DEFAULT_SOCKET
    scheme, _, path = host.partition("://")
    if scheme != "unix" or not path.startswith("/"):
        raise EngineError(
            "DOCKER_HOST names an engine that is not on this machine; sandboxes need a local one",
            remedy="unset DOCKER_HOST, or set it to unix:///var/run/docker.sock",
        )
    return Path(path)


@dataclass(frozen=True, slots=True)
class Survey:
    """What an engine says of itself. `image` is None when it has none of that name."""

    socket: Path
    api: str
    info: dict[str, Any]
    image: dict[str, Any] | None


def survey(reference: str, socket: Path | None = None) -> Survey:
    """Ask the engine about itself and the image `reference`. Blocks, for milliseconds.

    Raises EngineError when none answers, or one that is too old.
    """
    path = socket or socket_path()
    _knock(path)
    transport = httpx.HTTPTransport(uds=str(path))
    with httpx.Client(transport=transport, base_url="http://engine", timeout=10.0) as http:

        def ask(question: str, *ok: int) -> httpx.Response:
            try:
                response = http.get(question)
            except httpx.HTTPError as error:
                raise _gone(path, error) from error
            if response.status_code not in (HTTPStatus.OK, *ok):
                raise _refusal("GET", question, response)
            return response

        api = _api_version(str(ask("/_ping").headers.get("Api-Version", "")))
        info = ask(f"/v{api}/info").json()
        found = ask(f"/v{api}/images/{quote(reference, safe='')}/json", HTTPStatus.NOT_FOUND)
        image = found.json() if found.status_code == HTTPStatus.OK else None
    return Survey(path, api, info, image)


def _api_version(offered: str) -> str:
    """The version to speak: the engine's newest, or the newest this client knows."""
    major, _, minor = offered.partition(".")
    version = (int(major), int(minor)) if (major + minor).isdecimal() else (0, 0)
    if version < _OLDEST_API:
        raise EngineError(
            f"the Docker engine speaks API {offered or 'of no version'}; "
            "sandboxes need 1.41 (Engine 20.10) or newer",
            remedy="upgrade Docker Engine",
        )
    chosen = min(version, _NEWEST_API)
    return f"{chosen[0]}.{chosen[1]}"


class Engine:
    """A client of the engine at `socket`. Bound to the event loop of its first request."""

    def __init__(self, socket: Path, api: str) -> None:
        self.socket = socket
        self._version = f"/v{api}"
        self._http = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(
                uds=str(self.socket), limits=httpx.Limits(max_keepalive_connections=16)
            ),
            base_url="http://engine",
            # A request of the engine waits behind the others when many sandboxes start.
            timeout=httpx.Timeout(120.0, connect=10.0),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _request(
        self, method: str, path: str, *, ok: tuple[int, ...] = (200, 201, 204), **options: Any
    ) -> httpx.Response:
        try:
            response = await self._http.request(method, self._version + path, **options)
        except httpx.HTTPError as error:
            raise _gone(self.socket, error) from error
        if response.status_code not in ok:
            raise _refusal(method, path, response)
        return response

    async def image(self, reference: str) -> dict[str, Any] | None:
        """Inspect an image; None when the engine has none of that name."""
        path = f"/images/{quote(reference, safe='')}/json"
        response = await self._request("GET", path, ok=(200, 404))
        found = response.status_code == HTTPStatus.OK
        return cast("dict[str, Any]", response.json()) if found else None

    async def build(
        self,
        context: bytes,
        reference: str,
        arguments: Mapping[str, str],
        labels: Mapping[str, str],
    ) -> AsyncIterator[str]:
        """Build an image from a tar archive; yield the build's output line by line."""
        query = {
            "t": reference,
            "buildargs": json.dumps(dict(arguments)),
            "labels": json.dumps(dict(labels)),
            "networkmode": "none",
            "rm": "1",
            "forcerm": "1",
        }
        try:
            async with self._http.stream(
                "POST",
                self._version + "/build",
                params=query,
                content=context,
                headers={"Content-Type": "application/x-tar"},
                timeout=httpx.Timeout(None, connect=10.0),
            ) as response:
                if response.status_code != HTTPStatus.OK:
                    await response.aread()
                    raise _refusal("POST", "/build", response)
                async for line in response.aiter_lines():
                    message = json.loads(line) if line.strip() else {}
                    if "error" in message:
                        raise EngineError(
                            f"the image cannot be built: {str(message['error'])[:1000]}",
                            remedy="name a base that this engine has or can pull: "
                            "make base, then make image BASE=sn15-arena/base:local",
                        )
                    yield str(message.get("stream") or message.get("status") or "").rstrip("\n")
        except httpx.HTTPError as error:
            raise _gone(self.socket, error) from error

    async def remove_image(self, image: str) -> None:
        """Remove an image by id; one that is gone or in use is no error."""
        await self._request("DELETE", f"/images/{image}", ok=(200, 404, 409))

    async def prune_images(self, label: str) -> None:
        """Remove the images that carry `label` and that no name refers to any more."""
        filters = json.dumps({"dangling": ["true"], "label": [label]})
        await self._request("POST", "/images/prune", params={"filters": filters})

    async def create(self, name: str | None, config: Mapping[str, Any]) -> str:
        """Create a container; return its id."""
        query = {"name": name} if name else {}
        response = await self._request(
            "POST", "/containers/create", params=query, json=dict(config)
        )
        return cast("str", response.json()["Id"])

    @asynccontextmanager
    async def attach(self, container: str) -> AsyncIterator[Stdio]:
        """Attach to the standard streams of a container that has not started yet."""
        path = f"{self._version}/containers/{container}/attach"
        query = {"stream": "1", "stdin": "1", "stdout": "1", "stderr": "1"}
        upgrade = {"Connection": "Upgrade", "Upgrade": "tcp"}
        try:
            async with self._http.stream(
                "POST", path, params=query, headers=upgrade, timeout=httpx.Timeout(None, connect=10)
            ) as response:
                if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
                    await response.aread()
                    raise _refusal("POST", path, response)
                yield Stdio(response.extensions["network_stream"])
        except httpx.HTTPError as error:
            raise _gone(self.socket, error) from error

    async def start(self, container: str) -> None:
        """Start a created container."""
        await self._request("POST", f"/containers/{container}/start")

    async def wait(self, container: str) -> int:
        """Wait until a container does not run any more; return its exit status."""
        response = await self._request("POST", f"/containers/{container}/wait")
        return int(response.json()["StatusCode"])

    async def inspect(self, container: str) -> dict[str, Any] | None:
        """A container's configuration and state; None when there is none."""
        response = await self._request("GET", f"/containers/{container}/json", ok=(200, 404))
        found = response.status_code == HTTPStatus.OK
        return cast("dict[str, Any]", response.json()) if found else None

    async def was_killed(self, container: str, since: float) -> bool:
        """Whether anybody asked the engine to kill a container after `since` (Unix time).

        So says an operator's `docker rm -f`, and an engine that shuts down; a process
        that kills itself does not show.
        """
        filters = json.dumps({"container": [container], "event": ["kill"]})
        query = {"since": f"{since:.3f}", "until": f"{time.time():.3f}", "filters": filters}
        return bool((await self._request("GET", "/events", params=query)).text.strip())

    async def kill(self, container: str) -> None:
        """Kill a container's processes. One that has already ended is no error."""
        await self._request("POST", f"/containers/{container}/kill", ok=(204, 404, 409))

    async def remove(self, container: str) -> None:
        """Kill and remove a container. One that is already gone is no error.

        409 says that the engine is removing it already.
        """
        query = {"force": "1", "v": "1"}
        await self._request("DELETE", f"/containers/{container}", params=query, ok=(204, 404, 409))

    async def containers(self, label: str) -> list[dict[str, Any]]:
        """All containers, running or not, that carry `label`."""
        query = {"all": "1", "filters": json.dumps({"label": [label]})}
        response = await self._request("GET", "/containers/json", params=query)
        return cast("list[dict[str, Any]]", response.json())


def _refusal(method: str, path: str, response: httpx.Response) -> EngineError:
    try:
        message = str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        message = response.text
    return EngineError(
        f"the Docker engine refused {method} {path}: {message[:1000]}",
        status=response.status_code,
    )


def _knock(path: Path) -> None:
    """Connect and hang up: the clearest error there is for an engine that is not there."""
    with socketlib.socket(socketlib.AF_UNIX) as door:
        door.settimeout(10.0)
        try:
            door.connect(str(path))
        except PermissionError:
            raise EngineGoneError(
                f"this user may not use the Docker engine at {path}",
                remedy="sudo usermod -aG docker $USER, then log in again",
            ) from None
        except OSError as error:
            raise _gone(path, error) from None


def _gone(path: Path, error: Exception) -> EngineGoneError:
    why = str(error) or type(error).__name__
    return EngineGoneError(f"no Docker engine answers at {path}: {why}", remedy=START_ENGINE)
