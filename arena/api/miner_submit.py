"""`POST /v1/miner/submit`: a file comes in, or a reason goes out."""

from __future__ import annotations

from datetime import datetime
from pathlib import PurePosixPath
from typing import cast

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from arena.api.auth import SIGNED_OR_SESSION, MinerDep
from arena.api.errors import RETRY_AFTER_S, Code, Refusal, note_refusal, responses
from arena.api.miner_models import GateRefusal, RefusedFile, SubmitAgentResponse, ToldViolation
from arena.api.public_views import ViewsDep
from arena.api.services import Services, ServicesDep
from arena.exceptions import AdmissionError, JournalAheadError, JournalConflictError
from arena.submissions.refusals import (
    BadNameError,
    BadSourceError,
    CooldownError,
    GateError,
    SubmissionsPausedError,
    TooManyRefusalsError,
    told,
)
from arena.submissions.rules import Violation
from arena.submissions.service import SubmissionService
from scoring.types import JsonObject

router = APIRouter(prefix="/v1/miner", tags=["miner"], dependencies=SIGNED_OR_SESSION)

_FIELDS = 16
_FIELD_BYTES = 512 << 10
"""The largest field that is no file: the manifest of an artefact."""
_FILE_NAME = 100
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["agent_name", "file"],
                    "properties": {
                        "agent_name": {"type": "string", "minLength": 1, "maxLength": 100},
                        "file": {"type": "string", "format": "binary"},
                        "artefact": {
                            "type": "string",
                            "description": "The manifest of a model artefact, as JSON",
                        },
                    },
                }
            }
        },
    }
}


@router.post(
    "/submit",
    response_model=SubmitAgentResponse,
    responses={
        **responses(401, 403, 409, 413, 429, 503),
        422: {"model": GateRefusal, "description": "The gate refused the file."},
    },
    openapi_extra=_BODY,
)
async def submit_agent(
    caller: MinerDep, services: ServicesDep, views: ViewsDep, request: Request
) -> SubmitAgentResponse | JSONResponse:
    """Submit an agent's file under a name. The same file again gives the same version."""
    async with _form(request) as form:
        name, file = form.get("agent_name"), form.get("file")
        if not isinstance(name, str):
            raise Refusal(Code.INVALID_AGENT_NAME, "the form has no agent_name")
        if not isinstance(file, UploadFile):
            raise Refusal(Code.INVALID_FILE, "the form has no file")
        artefact = await _artefact(services, form.get("artefact"))
        source, shown = await file.read(), _file_name(file.filename)
    now = services.clock()
    service = cast("SubmissionService", request.app.state.submissions)
    try:
        version = await service.submit(caller.hotkey, name, source, artefact, now)
    except GateError as error:
        note_refusal(request, Code.CODE_ANALYSIS_ERROR)
        return JSONResponse(_gate_refusal(error, shown, now).model_dump(mode="json"), 422)
    except _REFUSED as error:
        raise _refusal(error, now) from None
    gap = (await views.season()).rules.submission_gap
    return SubmitAgentResponse(
        hotkey=caller.hotkey,
        agent_id=version.agent_id,
        agent_version_id=version.version_id,
        next_allowed_at=version.submitted_at + gap,
        version_number=version.number,
        source_sha256=version.source_hash,
    )


@router.get("/refused-submissions", responses=responses(401, 403))
async def list_refused_submissions(caller: MinerDep, views: ViewsDep) -> list[RefusedFile]:
    """The caller's files that the gate refused, the newest first, with its reasons."""
    found = []
    for one in await views.versions.refusals(caller.hotkey):
        said = told(one.violations)
        found.append(
            RefusedFile(
                agent_name=one.name,
                source_sha256=one.source_hash,
                size=one.size,
                refused_at=one.refused_at,
                violations=[_violation(v, "agent.py") for v in said.violations],
                more=said.more,
            )
        )
    return found


class _form:  # noqa: N801 - reads as what it is
    """The form of a request; what is no form is refused as the SDK expects."""

    def __init__(self, request: Request) -> None:
        self._reading = request.form(max_files=2, max_fields=_FIELDS, max_part_size=_FIELD_BYTES)

    async def __aenter__(self) -> FormData:
        try:
            self._form = await self._reading
        except HTTPException as error:
            if error.status_code != 400:
                raise
            raise Refusal(Code.INVALID_FILE, "the body is no form that can be read") from None
        return self._form

    async def __aexit__(self, *_: object) -> None:
        await self._form.close()


async def _artefact(services: Services, field: object) -> JsonObject | None:
    """The manifest that came with a file. Raises Refusal (400, 409)."""
    if field is None or field == "":
        return None
    # Only here: most processes never see one.
    from arena.api.artefact_store import ArtefactStore
    from arena.exceptions import ArtefactError
    from arena.submissions.artefacts import parse_manifest

    if not isinstance(field, str):
        raise Refusal(Code.ARTEFACT_REFUSED, "the manifest is a text field of the form")
    store = ArtefactStore(services)
    try:
        manifest = parse_manifest(field, store.limits())
    except ArtefactError as error:
        raise Refusal(Code.ARTEFACT_REFUSED, error.message) from None
    if lacking := await store.missing(manifest):
        raise Refusal(
            Code.ARTEFACT_INCOMPLETE,
            f"the arena lacks {len(lacking)} files of the artefact: send them first",
        )
    return manifest.to_json()


_REFUSED = (
    BadNameError,
    BadSourceError,
    CooldownError,
    TooManyRefusalsError,
    SubmissionsPausedError,
    AdmissionError,
    JournalAheadError,
    JournalConflictError,
)


def _refusal(error: Exception, now: datetime) -> Refusal:
    """What the service refuses, by the SDK's codes."""
    match error:
        case BadNameError():
            return Refusal(Code.INVALID_AGENT_NAME, error.message)
        case BadSourceError(too_large=True):
            return Refusal(Code.FILE_TOO_LARGE, error.message, status=413)
        case BadSourceError():
            return Refusal(Code.INVALID_FILE, error.message)
        case CooldownError():
            return _wait(Code.COOLDOWN_ACTIVE, error.message, error.ends_at, now)
        case TooManyRefusalsError():
            return _wait(Code.RATE_LIMIT_EXCEEDED, error.message, error.ends_at, now)
        case SubmissionsPausedError():
            return Refusal(Code.SUBMISSIONS_PAUSED, error.message, retry_after=300)
    return Refusal(
        Code.SIMILARITY_CHECK_UNAVAILABLE,
        "the gate cannot read files now; try again",
        retry_after=RETRY_AFTER_S,
    )


def _wait(code: Code, detail: str, ends_at: datetime, now: datetime) -> Refusal:
    left = seconds_until(ends_at, now)
    extra = {"remaining_seconds": left, "next_allowed_at": ends_at.isoformat()}
    return Refusal(code, detail, retry_after=left, extra=extra)


def seconds_until(moment: datetime, now: datetime) -> int:
    """Whole seconds until then, at least one."""
    return max(1, -int(-(moment - now).total_seconds() // 1))


def _gate_refusal(error: GateError, file: str, now: datetime) -> GateRefusal:
    until = error.cooldown_until
    return GateRefusal(
        detail=error.message,
        violations=[_violation(one, file) for one in error.told.violations],
        more=error.told.more,
        remaining_seconds=None if until is None else seconds_until(until, now),
        next_allowed_at=until,
    )


def _violation(one: Violation, file: str) -> ToldViolation:
    return ToldViolation(
        file=file,
        line=one.line,
        column=one.column,
        rule=one.rule.value,
        code=one.rule.value,
        message=one.why,
        found=one.found,
        fix=one.fix,
    )


def _file_name(given: str | None) -> str:
    """The file's own name as it is shown again: no path, no odd characters."""
    name = PurePosixPath((given or "").replace("\\", "/")).name
    return name if name.isprintable() and 0 < len(name) <= _FILE_NAME else "agent.py"
