"""The sandbox image: its name, its build context, and building it.

The image holds an interpreter, the standard library and one pinned `requests`. Its
tag names that content, so that an image of another version is never taken for this
one. May read this package's files and the installed libraries, and ask the engine.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path, PurePosixPath

from sandbox.exceptions import IsolationError
from sandbox.isolation.docker_engine import Engine

REPOSITORY = "sn15-arena/sandbox"
DEFAULT_BASE = "python:3.11-slim"
LABEL_PYTHON = "io.sn15-arena.python"
LABEL_STAGE = "io.sn15-arena.stage"
LABEL_BASE = "io.sn15-arena.base"
LABEL_REQUESTS = "io.sn15-arena.requests"
BUILD = "make image; without a registry: make base, then make image BASE=sn15-arena/base:local"
LIBRARIES_FOLDER = "/opt/arena/libraries"
UNPACK = "/opt/arena/unpack.py"
"""Paths inside the image; `image/` holds the other side of them."""

LIBRARIES = ("requests", "urllib3", "idna", "certifi", "charset-normalizer")
"""`requests` and what it needs: all that an agent can import besides the standard
library and the agent kit."""

_SOURCE = Path(__file__).parent / "image"
_RECIPE = ("Dockerfile", "prepare.py", "unpack.py")


def library_files() -> Iterator[tuple[PurePosixPath, Path]]:
    """The files of `LIBRARIES` as installed here: path below site-packages, and source.

    Compiled extensions are left out: each has a pure twin, and the image's interpreter
    may be another than this one.
    """
    for name in LIBRARIES:
        for file in sorted(_installed(name).files or (), key=str):
            path = PurePosixPath(file)
            if ".." in path.parts or "__pycache__" in path.parts or path.suffix == ".so":
                continue
            if path.name in {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}:
                continue
            yield path, Path(str(file.locate()))


def library_versions() -> dict[str, str]:
    """Which version of each library agents get."""
    return {name: _installed(name).version for name in LIBRARIES}


def _installed(name: str) -> Distribution:
    return distribution(name)


def content_version() -> str:
    """Twelve hexadecimal digits that change when the image's content has to."""
    digest = hashlib.sha256()
    for name in _RECIPE:
        digest.update((_SOURCE / name).read_bytes())
    digest.update(repr(sorted(library_versions().items())).encode())
    return digest.hexdigest()[:12]


def reference() -> str:
    """The image that this version of the project needs."""
    return f"{REPOSITORY}:{content_version()}"


def context() -> bytes:
    """The build context, a tar archive; the same bytes for the same content."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in _RECIPE:
            _add(archive, name, (_SOURCE / name).read_bytes())
        for path, source in library_files():
            _add(archive, f"libraries/{path}", source.read_bytes())
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    entry.mode = 0o644
    archive.addfile(entry, io.BytesIO(data))


async def build(engine: Engine, base: str, tell: Callable[[str], None]) -> str:
    """Build the sandbox image from `base` and return its id.

    Twice: the version of the interpreter is known only once the first image runs, and
    becomes a label of the second, which takes every step from the first one's cache.
    Raises EngineError when the engine refuses, IsolationError when the image does not run.
    """
    name = reference()
    tell(f"building {name} from {base}")
    labels = {LABEL_BASE: base, LABEL_REQUESTS: library_versions()["requests"]}
    archive = context()
    async for line in engine.build(archive, name, {"BASE": base}, labels):
        if line:
            tell(line)
    draft = await _id(engine, name)
    version = await _interpreter(engine, draft)
    async for _ in engine.build(archive, name, {"BASE": base}, labels | {LABEL_PYTHON: version}):
        pass
    image = await _id(engine, name)
    if draft != image:
        await engine.remove_image(draft)
    await engine.prune_images(LABEL_STAGE)
    tell(f"{name}: Python {version}, {image}")
    return image


async def _id(engine: Engine, name: str) -> str:
    image = await engine.image(name)
    if image is None:
        raise IsolationError(f"the engine built {name} and does not know it")
    return str(image["Id"])


async def _interpreter(engine: Engine, name: str) -> str:
    """The version of the image's interpreter, as it says itself."""
    command = ["python3", "-I", "-c", "import platform; print(platform.python_version())"]
    container = await engine.create(
        None, {"Image": name, "Cmd": command, "HostConfig": {"NetworkMode": "none"}}
    )
    output = b""
    try:
        async with engine.attach(container) as stdio:
            await engine.start(container)
            async for _, data in stdio.chunks():
                output += data[:100]
        status = await engine.wait(container)
    finally:
        await engine.remove(container)
    if status != 0:
        raise IsolationError(f"the image's python3 does not run: {output[:500]!r}")
    return output.decode("ascii", "replace").strip()
