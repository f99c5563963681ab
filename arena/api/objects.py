"""Where uploads lie: a local directory that this API writes, or an S3-compatible store.

Either hands out a link that allows one PUT of one object with one length until it expires.
Keys are made here, from UUIDs alone: no name of a client's ever becomes a path.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol
from urllib.parse import urlencode

import httpx

from arena.api.errors import Code, Refusal
from arena.api.links import Links
from arena.api.settings import ApiSettings
from arena.api.sigv4 import Credentials, presign
from arena.exceptions import ArenaError, Fault, SettingsError

_KEY = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z._-]*(/[0-9A-Za-z_-][0-9A-Za-z._-]*){0,7}")
_MAX_KEY = 300


class StoreError(ArenaError):
    """An object store that does not take or give an object."""

    code = "store.failed"
    fault = Fault.PLATFORM


@dataclass(frozen=True, slots=True)
class Upload:
    """One PUT that is allowed: `length` bytes of `content_type` under `key`."""

    key: str
    length: int
    content_type: str

    @property
    def what(self) -> str:
        """What a link for it allows."""
        return f"PUT {self.key} {self.length} {self.content_type}"


class ObjectStore(Protocol):
    """Objects by key."""

    def upload_url(self, upload: Upload, *, base_url: str, now: datetime, ttl_s: float) -> str:
        """A link that allows this one PUT until `now + ttl_s`."""
        ...

    def download_url(self, key: str, *, base_url: str, now: datetime, ttl_s: float) -> str:
        """A link that allows to GET this object until then."""
        ...

    async def check(self) -> None:
        """Raises StoreError or OSError when it does not answer."""
        ...


class LocalStore:
    """Objects as files below one directory; the API itself answers its links."""

    def __init__(self, directory: Path, links: Links) -> None:
        self._directory = directory
        self._links = links

    def upload_url(self, upload: Upload, *, base_url: str, now: datetime, ttl_s: float) -> str:
        """As `ObjectStore.upload_url`."""
        check_key(upload.key)
        expires = int((now + timedelta(seconds=ttl_s)).timestamp())
        query = {
            "length": upload.length,
            "type": upload.content_type,
            "expires": expires,
            "signature": self._links.sign(upload.what, expires),
        }
        return f"{base_url}/v1/objects/{upload.key}?{urlencode(query)}"

    def download_url(self, key: str, *, base_url: str, now: datetime, ttl_s: float) -> str:
        """As `ObjectStore.download_url`."""
        check_key(key)
        expires = int((now + timedelta(seconds=ttl_s)).timestamp())
        query = {"expires": expires, "signature": self._links.sign(f"GET {key}", expires)}
        return f"{base_url}/v1/objects/{key}?{urlencode(query)}"

    async def check(self) -> None:
        """As `ObjectStore.check`."""
        await asyncio.to_thread(self._directory.mkdir, parents=True, exist_ok=True)
        if not os.access(self._directory, os.W_OK):
            raise StoreError("the upload directory cannot be written")

    async def write(self, upload: Upload, body: AsyncIterator[bytes]) -> None:
        """Store a body under its key: whole, with the length that was asked for, or not at all.

        Raises Refusal for another length.
        """
        path = self._path(upload.key)
        part = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
        written = 0
        file = await asyncio.to_thread(part.open, "xb")
        try:
            with file:
                async for chunk in body:
                    written += len(chunk)
                    if written > upload.length:
                        break
                    await asyncio.to_thread(file.write, chunk)
                if written != upload.length:
                    raise Refusal(
                        Code.FILE_TOO_LARGE if written > upload.length else Code.BAD_REQUEST,
                        f"the link is for {upload.length} bytes",
                        status=413 if written > upload.length else 400,
                    )
                await asyncio.to_thread(_sync, file.fileno(), file)
            await asyncio.to_thread(part.replace, path)
        finally:
            with suppress(OSError):
                await asyncio.to_thread(part.unlink, missing_ok=True)

    def read(self, key: str) -> Path | None:
        """The file of an object; None when there is none."""
        path = self._path(key)
        return path if path.is_file() else None

    def move(self, key: str, target: str) -> None:
        """Give an object another key, in one step. Raises OSError when it is not there."""
        path = self._path(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path(key).replace(path)

    def remove(self, key: str) -> None:
        """Forget an object, if it is there."""
        self._path(key).unlink(missing_ok=True)

    def folders(self, key: str) -> list[str]:
        """The names of the folders right below a key."""
        path = self._path(key)
        return [entry.name for entry in path.iterdir() if entry.is_dir()] if path.is_dir() else []

    def remove_folder(self, key: str) -> None:
        """Forget everything below a key."""
        shutil.rmtree(self._path(key), ignore_errors=True)

    def _path(self, key: str) -> Path:
        check_key(key)
        return self._directory / key


class S3Store:
    """Objects in a bucket of an S3-compatible store, which answers its links itself."""

    def __init__(self, endpoint: str, bucket: str, credentials: Credentials) -> None:
        self._endpoint = httpx.URL(endpoint)
        self._bucket = bucket
        self._credentials = credentials

    def upload_url(self, upload: Upload, *, base_url: str, now: datetime, ttl_s: float) -> str:
        """As `ObjectStore.upload_url`. Length and type are signed: the store refuses others."""
        headers = {"content-length": str(upload.length), "content-type": upload.content_type}
        return self._presign("PUT", upload.key, now, ttl_s, headers)

    def download_url(self, key: str, *, base_url: str, now: datetime, ttl_s: float) -> str:
        """As `ObjectStore.download_url`."""
        return self._presign("GET", key, now, ttl_s, {})

    def delete_url(self, key: str, *, now: datetime, ttl_s: float) -> str:
        """A link that allows to delete this object: for the API itself, never handed out."""
        return self._presign("DELETE", key, now, ttl_s, {})

    async def check(self) -> None:
        """As `ObjectStore.check`: any answer but a failure of the store's own will do."""
        async with httpx.AsyncClient(timeout=5) as client:
            try:
                answer = await client.head(self._endpoint.join(f"/{self._bucket}"))
            except httpx.HTTPError as error:
                raise StoreError("the object store does not answer") from error
        if answer.status_code >= 500:
            raise StoreError(f"the object store answers {answer.status_code}")

    def _presign(
        self, method: str, key: str, now: datetime, ttl_s: float, headers: dict[str, str]
    ) -> str:
        check_key(key)
        url = str(self._endpoint.join(f"/{self._bucket}/{key}"))
        return presign(method, url, self._credentials, now=now, ttl_s=int(ttl_s), headers=headers)


def open_store(settings: ApiSettings, links: Links) -> LocalStore | S3Store:
    """The store that the settings name. Raises SettingsError when its keys are missing."""
    if settings.s3_endpoint is None:
        return LocalStore(settings.data_dir / "objects", links)
    if settings.s3_access_key is None or settings.s3_secret_key is None:
        raise SettingsError("ARENA_API_S3_ENDPOINT needs ARENA_API_S3_ACCESS_KEY and _SECRET_KEY")
    secret = settings.s3_secret_key.get_secret_value()
    credentials = Credentials(settings.s3_access_key, secret, settings.s3_region)
    return S3Store(settings.s3_endpoint, settings.s3_bucket, credentials)


def check_key(key: str) -> None:
    """Raises Refusal (404) for what is no key of ours: traversal, dots first, odd characters."""
    if len(key) > _MAX_KEY or not _KEY.fullmatch(key):
        raise Refusal(Code.ARTIFACT_NOT_FOUND, "there is no such object")


def _sync(fd: int, file: object) -> None:
    file.flush()  # type: ignore[attr-defined]
    os.fsync(fd)
