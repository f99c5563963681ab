"""Files of artefacts on this machine, by SHA-256: fetched once, verified, bounded, oldest out.

What comes over a network is written under a name of its own, hashed and looked into, and
only then takes its place. A file that is being served has a second name there, so its link
count says that it may not go.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import quote

import httpx
from pydantic import SecretStr

from arena.client.answers import read_bounded
from arena.client.exceptions import ArenaApiError, RefusedError
from arena.client.session import ArenaSession
from arena.exceptions import ArtefactError, Fault
from arena.submissions.artefact_files import check_file, check_together
from arena.submissions.artefacts import (
    ArtefactFile,
    ArtefactLimits,
    HubSource,
    Manifest,
    parse_source,
)

_TIMEOUT_S = 60.0
_MAX_TOLD = 2_000
FETCH_FAILED = "artefact.fetch_failed"
NOT_THERE = "artefact.not_there"
NO_ROOM = "artefact.no_room"


class Source(Protocol):
    """Where files come from."""

    async def fetch(self, file: ArtefactFile, into: BinaryIO) -> None:
        """Write a file's bytes, never more than it has. Raises ArtefactError."""
        ...


class ArenaFiles:
    """The arena's own store, by links to parts."""

    def __init__(self, session: ArenaSession) -> None:
        self._session = session

    async def fetch(self, file: ArtefactFile, into: BinaryIO) -> None:
        """As `Source.fetch`."""
        path = f"/v1/validator/artefacts/files/{file.sha256}"
        try:
            parts = (await self._session.json("GET", path)).get("parts")
            left = file.bytes
            for part in parts if isinstance(parts, list) else ():
                if not isinstance(part, dict) or left <= 0:
                    break
                body = await self._session.download(str(part.get("url")), max_bytes=left)
                left -= len(body)
                await asyncio.to_thread(into.write, body)
        except RefusedError as error:
            raise _failed(f"{file.path}: {error.message}", error.fault) from error
        except ArenaApiError as error:
            raise _failed(f"{file.path}: {error.message}", Fault.PLATFORM) from error


class HubFiles:
    """A repository of the hub at one commit."""

    def __init__(self, endpoint: str, source: HubSource, token: SecretStr | None = None) -> None:
        self._base = f"{endpoint.rstrip('/')}/{source.repo}/resolve/{source.revision}"
        self._headers = {"authorization": f"Bearer {token.get_secret_value()}"} if token else {}

    async def fetch(self, file: ArtefactFile, into: BinaryIO) -> None:
        """As `Source.fetch`. Redirects are followed: the hub keeps large files elsewhere."""
        url = f"{self._base}/{quote(file.path)}"
        try:
            async with (
                httpx.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=True) as client,
                client.stream("GET", url, headers=self._headers) as answer,
            ):
                if answer.status_code != 200:
                    await read_bounded(answer, 1 << 20)
                    raise _hub_refuses(file, answer.status_code)
                left = file.bytes
                async for chunk in answer.aiter_bytes(1 << 20):
                    left -= len(chunk)
                    if left < 0:
                        raise _other_bytes(file)
                    await asyncio.to_thread(into.write, chunk)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _failed(
                f"{file.path}: the hub does not answer ({type(error).__name__})", Fault.VALIDATOR
            ) from error


def _hub_refuses(file: ArtefactFile, status: int) -> ArtefactError:
    if status in (401, 403, 404, 410):  # gone, private or never there: the manifest's fault
        return ArtefactError(f"{file.path}: the hub answers {status}", code=NOT_THERE)
    return _failed(f"{file.path}: the hub answers {status}", Fault.VALIDATOR)


def _other_bytes(file: ArtefactFile) -> ArtefactError:
    return ArtefactError(f"{file.path} is not the file that the manifest names")


def _failed(message: str, fault: Fault) -> ArtefactError:
    whose = fault if fault is not Fault.CALLER else Fault.PLATFORM
    return ArtefactError(message[:_MAX_TOLD], code=FETCH_FAILED, fault=whose)


class ArtefactCache:
    """Verified files below one directory."""

    def __init__(self, directory: Path, *, max_bytes: int, limits: ArtefactLimits) -> None:
        self._files = directory / "files"
        self._served = directory / "served"
        self._max_bytes = max_bytes
        self._limits = limits

    @asynccontextmanager
    async def laid_out(
        self, manifest: Manifest, source_of: Callable[[str], Source]
    ) -> AsyncIterator[tuple[Path, Path | None]]:
        """The artefact's directory and its base's, while the context lasts.

        Every hash is verified before anything is parsed. Raises ArtefactError: the agent's
        fault for files that may not be served, else the validator's or the arena's.
        """
        place = self._served / f"{manifest.hash}-{secrets.token_hex(4)}"
        try:
            model = await self._lay(
                place / "model", manifest.files, source_of(manifest.source), manifest
            )
            base = None
            if manifest.base is not None:
                source = source_of(manifest.base.source)
                base = await self._lay(place / "base", manifest.base.files, source, manifest)
            await asyncio.to_thread(check_together, model, manifest, self._limits)
            yield model, base
        finally:
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)

    async def _lay(
        self, directory: Path, files: tuple[ArtefactFile, ...], source: Source, manifest: Manifest
    ) -> Path:
        await asyncio.to_thread(directory.mkdir, parents=True)
        for file in files:
            await self._have(file, source, manifest)
            kept = self._files / file.sha256
            os.utime(kept)
            os.link(kept, directory / file.path)
        return directory

    async def _have(self, file: ArtefactFile, source: Source, manifest: Manifest) -> None:
        kept = self._files / file.sha256
        if kept.is_file():
            try:
                # Again and every time: what lies on a disk for weeks is not what it was.
                await asyncio.to_thread(check_file, kept, file, self._limits)
            except ArtefactError:
                kept.unlink(missing_ok=True)
            else:
                return
        self._files.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(self._make_room, file.bytes)
        part = self._files / f"{file.sha256}.{secrets.token_hex(4)}.part"
        try:
            with part.open("xb") as into:
                await source.fetch(file, into)
            await asyncio.to_thread(self._check, part, file, manifest)
            part.replace(kept)
        except OSError as error:
            raise ArtefactError(
                f"{file.path} cannot be kept: {error.strerror}", code=NO_ROOM, fault=Fault.VALIDATOR
            ) from error
        finally:
            part.unlink(missing_ok=True)

    def _check(self, part: Path, file: ArtefactFile, manifest: Manifest) -> None:
        if part.stat().st_size != file.bytes and parse_source(manifest.source) is None:
            # The arena hashed it when it came: what is short was cut on the way.
            raise _failed(f"{file.path} came cut off", Fault.PLATFORM)
        check_file(part, file, self._limits)

    def _make_room(self, wanted: int) -> None:
        """Forget files, the ones not used for longest first, until the new one fits."""
        found = [(p.stat(), p) for p in self._files.iterdir() if p.is_file()]
        total = sum(state.st_size for state, _ in found)
        for state, path in sorted(found, key=lambda one: one[0].st_mtime):
            if total + wanted <= self._max_bytes:
                return
            if state.st_nlink == 1 and path.suffix != ".part":  # nobody serves it now
                path.unlink(missing_ok=True)
                total -= state.st_size
        if total + wanted > self._max_bytes:
            raise ArtefactError(
                f"the cache of artefacts has no room for {wanted:,} bytes more",
                code=NO_ROOM,
                fault=Fault.VALIDATOR,
                remedy="raise ARENA_ARTEFACT_CACHE_GIB",
            )


def sources(
    endpoint: str, token: SecretStr | None, session: ArenaSession | None
) -> Callable[[str], Source]:
    """Where files of a manifest's source come from."""

    def source_of(source: str) -> Source:
        hub = parse_source(source)
        if hub is not None:
            return HubFiles(endpoint, hub, token)
        if session is None:
            raise ArtefactError(
                "this validator has no arena to fetch from",
                code=FETCH_FAILED,
                fault=Fault.VALIDATOR,
            )
        return ArenaFiles(session)

    return source_of
