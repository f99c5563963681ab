"""`/v1/…/artefacts`: miners send the files of a model, validators fetch them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from arena.api.artefact_objects import CONTENT_TYPE, upload_part
from arena.api.artefact_store import ArtefactStore, FileUpload
from arena.api.auth import SIGNED, SIGNED_OR_SESSION, MinerDep, ValidatorDep
from arena.api.errors import Code, Refusal, responses
from arena.api.objects import Upload
from arena.api.services import Services, ServicesDep
from arena.submissions.artefacts import parse_manifest

router = APIRouter(prefix="/v1", tags=["artefacts"])

_Sha256 = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$")]
_BODY = {
    "requestBody": {
        "required": True,
        "description": "The manifest of a model artefact.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}


class PartLink(BaseModel):
    """A part of a file. `url` allows one PUT (a miner's) or a GET (a validator's)."""

    number: int
    offset: int
    bytes: int
    url: str


class FileLinks(BaseModel):
    """A file that the arena lacks, and its parts that have not come."""

    path: str
    sha256: str
    bytes: int
    parts: list[PartLink]


class ArtefactState(BaseModel):
    """What the arena has of an artefact, and links for what it lacks."""

    artefact: str = Field(description="SHA-256 of the manifest's canonical JSON")
    complete: bool
    content_type: str = Field(description="The content type that the links are for")
    missing: list[FileLinks]
    expires_at: datetime


class StoredFile(BaseModel):
    """A file that the arena has hashed and keeps."""

    sha256: str
    bytes: int


class FileParts(BaseModel):
    """A stored file as links to its parts, in order."""

    sha256: str
    bytes: int
    parts: list[PartLink]


@router.post(
    "/miner/artefacts",
    responses=responses(401, 403, 409),
    openapi_extra=_BODY,
    dependencies=SIGNED_OR_SESSION,
)
async def send_artefact(caller: MinerDep, services: ServicesDep, request: Request) -> ArtefactState:
    """What is lacking of an artefact, with a link for each part of it. Again gives new links."""
    store = ArtefactStore(services)
    manifest = parse_manifest(await request.body(), store.limits())
    now = services.clock()
    lacking = await store.missing(manifest)
    uploads = await store.begin(caller.hotkey, lacking, now) if lacking else []
    return ArtefactState(
        artefact=manifest.hash,
        complete=not lacking,
        content_type=CONTENT_TYPE,
        missing=[_upload_links(services, request, upload, now) for upload in uploads],
        expires_at=now + timedelta(seconds=services.settings.link_ttl),
    )


@router.post(
    "/miner/artefacts/files/{sha256}/finalise",
    responses=responses(401, 403, 404, 409),
    dependencies=SIGNED_OR_SESSION,
)
async def finalise_file(
    caller: MinerDep, services: ServicesDep, request: Request, sha256: _Sha256
) -> StoredFile:
    """Have the arena hash a file whose parts have all come. Again is fine."""
    store = _store(request, services)
    kept = await store.finish(caller.hotkey, sha256, services.clock())
    return StoredFile(sha256=kept.sha256, bytes=kept.bytes)


@router.get(
    "/validator/artefacts/files/{sha256}", responses=responses(401, 403, 404), dependencies=SIGNED
)
async def fetch_file(
    caller: ValidatorDep, services: ServicesDep, request: Request, sha256: _Sha256
) -> FileParts:
    """Links to the parts of a stored file. Whoever fetches them hashes them itself."""
    kept = await ArtefactStore(services).kept(sha256)
    if kept is None:
        raise Refusal(Code.ARTIFACT_NOT_FOUND, "there is no such file")
    now, base = services.clock(), _base_url(services, request)
    ttl = services.settings.link_ttl
    parts, offset = [], 0
    for number, (key, length) in enumerate(kept.parts):
        url = services.objects.download_url(key, base_url=base, now=now, ttl_s=ttl)
        parts.append(PartLink(number=number, offset=offset, bytes=length, url=url))
        offset += length
    return FileParts(sha256=sha256, bytes=kept.bytes, parts=parts)


def _upload_links(
    services: Services, request: Request, upload: FileUpload, now: datetime
) -> FileLinks:
    base, ttl = _base_url(services, request), services.settings.link_ttl
    parts, offset = [], 0
    for number, length in enumerate(upload.lengths):
        if number not in upload.there:
            wanted = Upload(upload_part(upload.upload_id, number), length, CONTENT_TYPE)
            url = services.objects.upload_url(wanted, base_url=base, now=now, ttl_s=ttl)
            parts.append(PartLink(number=number, offset=offset, bytes=length, url=url))
        offset += length
    file = upload.file
    return FileLinks(path=file.path, sha256=file.sha256, bytes=file.bytes, parts=parts)


def _store(request: Request, services: Services) -> ArtefactStore:
    """One an app: it lets one request at a time hash a file."""
    state = request.app.state
    if not hasattr(state, "artefacts"):
        state.artefacts = ArtefactStore(services)
    store = state.artefacts
    assert isinstance(store, ArtefactStore)
    return store


def _base_url(services: Services, request: Request) -> str:
    url = services.settings.public_url or str(request.base_url)
    return url.rstrip("/")
