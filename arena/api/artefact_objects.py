"""What becomes of a file's parts in the object store, local or S3-compatible alike.

A miner's links allow to write below `artefact-uploads/` alone. What is kept lies below
`artefacts/`, under an id that was made here: nothing that a link allows can change it once
it has been hashed. On an S3-compatible store give the prefix `artefact-uploads/` a lifecycle
rule that deletes after two days; the local store is swept here.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Protocol
from uuid import UUID

import httpx

from arena.api.objects import LocalStore, ObjectStore, S3Store, StoreError, Upload
from scoring.exceptions import ArenaError

CONTENT_TYPE = "application/octet-stream"
UPLOADS = "artefact-uploads"
_CHUNK = 1 << 20
_TTL_S = 900.0
_TIMEOUT_S = 60.0


def part_lengths(size: int, part_bytes: int) -> list[int]:
    """The length of every part of a file, in order."""
    whole, rest = divmod(size, part_bytes)
    return [part_bytes] * whole + ([rest] if rest else [])


def upload_part(upload_id: UUID, number: int) -> str:
    """The key of a part on its way."""
    return f"{UPLOADS}/{upload_id}/{number}"


def kept_part(object_id: UUID, number: int) -> str:
    """The key of a part that is kept."""
    return f"artefacts/{object_id}/{number}"


class Parts(Protocol):
    """Parts of files in a store. Raises StoreError or OSError when it does not answer."""

    async def size(self, key: str) -> int | None:
        """The length of an object; None when there is none."""
        ...

    def keep(self, key: str, target: str, length: int) -> AsyncIterator[bytes]:
        """Move or copy an object to where no link leads; its bytes, as they are from then on."""
        ...

    async def remove(self, key: str) -> None:
        """Forget an object, if it is there."""
        ...

    async def uploads(self) -> list[UUID]:
        """Uploads that have left anything here; none where the store forgets them by itself."""
        ...

    async def forget(self, upload_id: UUID) -> None:
        """Forget all parts of an upload."""
        ...


class LocalParts:
    """Parts in a directory of this machine."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store

    async def size(self, key: str) -> int | None:
        """As `Parts.size`."""
        path = await asyncio.to_thread(self._store.read, key)
        return None if path is None else (await asyncio.to_thread(path.stat)).st_size

    async def keep(self, key: str, target: str, length: int) -> AsyncIterator[bytes]:
        """As `Parts.keep`."""
        await asyncio.to_thread(self._store.move, key, target)
        path = self._store.read(target)
        if path is None:
            raise StoreError("an object has vanished")
        with path.open("rb") as file:
            while chunk := await asyncio.to_thread(file.read, _CHUNK):
                yield chunk

    async def remove(self, key: str) -> None:
        """As `Parts.remove`."""
        await asyncio.to_thread(self._store.remove, key)

    async def uploads(self) -> list[UUID]:
        """As `Parts.uploads`."""
        names = await asyncio.to_thread(self._store.folders, UPLOADS)
        return [UUID(name) for name in names]

    async def forget(self, upload_id: UUID) -> None:
        """As `Parts.forget`."""
        await asyncio.to_thread(self._store.remove_folder, f"{UPLOADS}/{upload_id}")


class S3Parts:
    """Parts in an S3-compatible store, by its own presigned links."""

    def __init__(self, store: S3Store, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(timeout=_TIMEOUT_S)

    def _url(self, key: str) -> str:
        return self._store.download_url(key, base_url="", now=self._clock(), ttl_s=_TTL_S)

    async def size(self, key: str) -> int | None:
        """As `Parts.size`. A GET that is not read on: the link signs its method."""
        async with self._client() as client, client.stream("GET", self._url(key)) as answer:
            if answer.status_code == 404:
                return None
            _check(answer)
            return int(answer.headers.get("content-length", "-1"))

    async def keep(self, key: str, target: str, length: int) -> AsyncIterator[bytes]:
        """As `Parts.keep`: the bytes that were written are the bytes that are hashed."""
        body = bytearray()
        async with self._client() as client:
            async with client.stream("GET", self._url(key)) as answer:
                _check(answer)
                async for chunk in answer.aiter_bytes():
                    body += chunk
                    if len(body) > length:
                        raise StoreError("an object is longer than it was")
            upload = Upload(target, len(body), CONTENT_TYPE)
            url = self._store.upload_url(upload, base_url="", now=self._clock(), ttl_s=_TTL_S)
            kept = bytes(body)
            _check(await client.put(url, content=kept, headers={"content-type": CONTENT_TYPE}))
        yield kept

    async def remove(self, key: str) -> None:
        """As `Parts.remove`."""
        url = self._store.delete_url(key, now=self._clock(), ttl_s=_TTL_S)
        async with self._client() as client:
            answer = await client.delete(url)
            if answer.status_code != 404:
                _check(answer)

    async def uploads(self) -> list[UUID]:
        """None: the bucket's own lifecycle rule deletes them."""
        return []

    async def forget(self, upload_id: UUID) -> None:
        """Nothing, for the same reason."""


def open_parts(store: ObjectStore, clock: Callable[[], datetime]) -> Parts:
    """The parts of whichever store the API has."""
    if isinstance(store, LocalStore):
        return LocalParts(store)
    if isinstance(store, S3Store):
        return S3Parts(store, clock)
    raise StoreError(f"{type(store).__name__} keeps no artefacts")


async def keep_all(
    parts: Parts, upload_id: UUID, object_id: UUID, lengths: list[int]
) -> tuple[str, int]:
    """Move all parts of an upload to where they are kept; SHA-256 and length of the whole.

    When it fails nothing is left at the target.
    """
    digest = hashlib.sha256()
    size = 0
    try:
        for number, length in enumerate(lengths):
            target = kept_part(object_id, number)
            async for chunk in parts.keep(upload_part(upload_id, number), target, length):
                size += len(chunk)
                await asyncio.to_thread(digest.update, chunk)
    except (ArenaError, OSError, httpx.HTTPError):
        await remove_kept(parts, object_id, len(lengths))
        raise
    return digest.hexdigest(), size


async def remove_kept(parts: Parts, object_id: UUID, count: int) -> None:
    """Forget the parts under an id."""
    for number in range(count):
        await parts.remove(kept_part(object_id, number))


async def remove_uploaded(parts: Parts, upload_id: UUID, count: int) -> None:
    """Forget the parts of an upload, so that they may be sent again."""
    for number in range(count):
        await parts.remove(upload_part(upload_id, number))


def _check(answer: httpx.Response) -> None:
    if not answer.is_success:
        raise StoreError(f"the object store answers {answer.status_code}")
