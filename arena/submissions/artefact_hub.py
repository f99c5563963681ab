"""The manifest of a model on the hub: its files at one commit, by the hub's own word.

The hub tells length and SHA-256 of large files; small ones are fetched and hashed here. What
it tells is not trusted: every validator hashes what it fetches.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any
from urllib.parse import quote

import httpx

from arena.exceptions import ArtefactError
from arena.submissions.artefacts import (
    ADAPTER_CONFIG,
    CHAT_TEMPLATE,
    JSON_FILES,
    ArtefactFile,
    ArtefactLimits,
    BaseModelFiles,
    HubSource,
    Kind,
    Manifest,
    is_weights,
    parse_source,
)

ENDPOINT = "https://huggingface.co"
_TIMEOUT_S = 60.0
_MAX_LISTING = 16 << 20


async def manifest_of_hub(
    source: str,
    *,
    base: BaseModelFiles | None = None,
    context: int | None = None,
    endpoint: str = ENDPOINT,
    limits: ArtefactLimits | None = None,
) -> Manifest:
    """The manifest of `hub:owner/name@commit`. Raises ArtefactError."""
    limits = limits or ArtefactLimits()
    place = _place(source)
    async with _client(endpoint) as client:
        files = await _files(client, place, limits)
        kind = Kind.ADAPTER if any(f.path == ADAPTER_CONFIG for f in files) else Kind.MODEL
        config: dict[str, Any] = {}
        if kind is Kind.MODEL:
            config = json.loads(await _content(client, place, "config.json", limits.json_bytes))
    given = config.get("max_position_embeddings")
    found = given if isinstance(given, int) and given >= 256 else 32_768
    return Manifest.of(
        {
            "schema": 1,
            "kind": kind.value,
            "name": place.repo.partition("/")[2],
            "source": source,
            "files": [file.model_dump() for file in files],
            "base": None if base is None else base.model_dump(mode="json"),
            "context": context or min(found, limits.context),
            "dtype": config.get("dtype") or config.get("torch_dtype") or "bfloat16",
            "chat_format": "template",
        },
        limits,
    )


async def hub_files(
    source: str, *, endpoint: str = ENDPOINT, limits: ArtefactLimits | None = None
) -> tuple[ArtefactFile, ...]:
    """The files of `hub:owner/name@commit` that an artefact may have. Raises ArtefactError."""
    async with _client(endpoint) as client:
        return await _files(client, _place(source), limits or ArtefactLimits())


def _place(source: str) -> HubSource:
    place = parse_source(source)
    if place is None:
        raise ArtefactError("the hub is named as hub:owner/name@commit")
    return place


def _client(endpoint: str) -> httpx.AsyncClient:
    token = os.environ.get("HF_TOKEN")
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return httpx.AsyncClient(
        base_url=endpoint, timeout=_TIMEOUT_S, follow_redirects=True, headers=headers
    )


async def _files(
    client: httpx.AsyncClient, place: HubSource, limits: ArtefactLimits
) -> tuple[ArtefactFile, ...]:
    path = f"/api/models/{place.repo}/revision/{place.revision}?blobs=true"
    listing = json.loads(await _get(client, path, _MAX_LISTING))
    found = []
    for entry in listing.get("siblings", ()) if isinstance(listing, dict) else ():
        name = str(entry.get("rfilename", ""))
        if not (name in JSON_FILES or name == CHAT_TEMPLATE or _is_plain_weights(name)):
            continue
        lfs = entry.get("lfs")
        if isinstance(lfs, dict) and "sha256" in lfs:
            found.append(ArtefactFile(path=name, sha256=str(lfs["sha256"]), bytes=int(lfs["size"])))
        else:
            content = await _content(client, place, name, limits.json_bytes)
            digest = hashlib.sha256(content).hexdigest()
            found.append(ArtefactFile(path=name, sha256=digest, bytes=len(content)))
    if not found:
        raise ArtefactError(f"{place.repo} holds nothing that an artefact may hold")
    return tuple(found)


def _is_plain_weights(name: str) -> bool:
    return is_weights(name) and "/" not in name


async def _content(client: httpx.AsyncClient, place: HubSource, name: str, most: int) -> bytes:
    path = f"/{place.repo}/resolve/{place.revision}/{quote(name)}"
    return await _get(client, path, most)


async def _get(client: httpx.AsyncClient, path: str, most: int) -> bytes:
    body = bytearray()
    try:
        async with client.stream("GET", path) as answer:
            if answer.status_code != 200:
                raise ArtefactError(f"the hub answers {answer.status_code} for {path[:200]}")
            async for chunk in answer.aiter_bytes():
                body += chunk
                if len(body) > most:
                    raise ArtefactError(f"{path[:200]} has more than {most:,} bytes")
    except httpx.HTTPError as error:
        raise ArtefactError(f"the hub does not answer ({type(error).__name__})") from error
    return bytes(body)
