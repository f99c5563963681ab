"""What links lead to: uploads of validators, and the code of the agent that one runs.

The link is the permission, as with S3. Code may be fetched only while the run is held.
"""

from __future__ import annotations

import hashlib
import re
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import FileResponse

from arena.api.errors import Code, Refusal, responses
from arena.api.inputs import InputStore
from arena.api.objects import LocalStore, Upload
from arena.api.services import Services, ServicesDep
from arena.work.exceptions import RunNotFoundError

router = APIRouter(prefix="/v1", tags=["objects"])

_Signature = Annotated[str, Query(max_length=100)]
_Expires = Annotated[int, Query(ge=0, le=2**40)]
_TYPE = re.compile(r"[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,60}")


def check_content_type(content_type: str) -> str:
    """A plain MIME type. Raises Refusal (400) for anything else."""
    if not _TYPE.fullmatch(content_type):
        raise Refusal(Code.VALIDATION_ERROR, "the content type is none")
    return content_type


@router.put("/objects/{key:path}", responses=responses(403, 404), status_code=204)
async def put_object(
    services: ServicesDep,
    request: Request,
    key: Annotated[str, Path(max_length=300)],
    length: Annotated[int, Query(ge=0, le=2**40)],
    type: Annotated[str, Query(max_length=130)],
    expires: _Expires,
    signature: _Signature,
) -> Response:
    """Store what the link allows: these bytes, so many of them, under this key."""
    store = _local(services)
    upload = Upload(key, length, type)
    services.links.check(upload.what, expires, signature, services.clock().timestamp())
    await store.write(upload, request.stream())
    return Response(status_code=204)


@router.get("/objects/{key:path}", responses=responses(403, 404), response_class=FileResponse)
async def get_object(
    services: ServicesDep,
    key: Annotated[str, Path(max_length=300)],
    expires: _Expires,
    signature: _Signature,
) -> FileResponse:
    """An object, as a file to keep: never a page."""
    store = _local(services)
    services.links.check(f"GET {key}", expires, signature, services.clock().timestamp())
    path = store.read(key)
    if path is None:
        raise Refusal(Code.ARTIFACT_NOT_FOUND, "there is no such object")
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)


@router.get("/code/{eval_run_id}", responses=responses(403, 404, 409), response_class=Response)
async def get_code(
    services: ServicesDep, eval_run_id: UUID, expires: _Expires, signature: _Signature
) -> Response:
    """The file of the agent that this run is of, while the run is held."""
    what = code_link(eval_run_id)
    services.links.check(what, expires, signature, services.clock().timestamp())
    try:
        run = await services.queue.run(eval_run_id)
    except RunNotFoundError:
        raise Refusal(Code.EVAL_RUN_NOT_FOUND, "there is no such run") from None
    if not run.state.held or services.clock() > run.expires_at:
        raise Refusal(Code.LEASE_EXPIRED, "the run is not held any more")
    store = InputStore(services.engine)
    inputs = await store.inputs(run.evaluation_id)
    source = await store.source(inputs.source_hash)
    if source is None or hashlib.sha256(source).hexdigest() != inputs.source_hash:
        raise Refusal(Code.ARTIFACT_NOT_FOUND, "the agent's file is not there")
    name = f'attachment; filename="{inputs.source_hash[:16]}.py"'
    headers = {"content-disposition": name, "x-source-sha256": inputs.source_hash}
    return Response(source, media_type="text/x-python; charset=utf-8", headers=headers)


def code_link(eval_run_id: UUID) -> str:
    """What a link to a run's code allows."""
    return f"CODE {eval_run_id}"


def _local(services: Services) -> LocalStore:
    if not isinstance(services.objects, LocalStore):
        raise Refusal(Code.NOT_FOUND, "objects lie elsewhere")
    return services.objects
