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
            config = await _config(client, place, limits)
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
    listing = await _get(client, path, _MAX_LISTING)
    try:
        siblings = [dict(entry) for entry in json.loads(listing)["siblings"]]
        found = [
            await _file(client, place, entry, limits)
            for entry in siblings
            if _may_hold(str(entry.get("rfilename", "")))
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise ArtefactError(f"the hub lists {place.repo} in a way nobody understands") from error
    if not found:
        raise ArtefactError(f"{place.repo} holds nothing that an artefact may hold")
    return tuple(found)


async def _file(
    client: httpx.AsyncClient, place: HubSource, entry: dict[str, Any], limits: ArtefactLimits
) -> ArtefactFile:
    name, lfs = str(entry["rfilename"]), entry.get("lfs")
    if isinstance(lfs, dict):
        return ArtefactFile(path=name, sha256=str(lfs["sha256"]), bytes=int(lfs["size"]))
    content = await _content(client, place, name, limits.json_bytes)
    return ArtefactFile(path=name, sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))


async def _config(
    client: httpx.AsyncClient, place: HubSource, limits: ArtefactLimits
) -> dict[str, Any]:
    try:
        return dict(json.loads(await _content(client, place, "config.json", limits.json_bytes)))
    except (TypeError, ValueError):
        raise ArtefactError("config.json is no JSON object") from None


def _may_hold(name: str) -> bool:
    return name in JSON_FILES or name == CHAT_TEMPLATE or _is_plain_weights(name)


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
