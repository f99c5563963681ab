"""`/v1/validator`: work is claimed, held, told of and ended.

A validator's word decides nothing but whether it goes on: what counts are its stored records.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Annotated, cast
from uuid import UUID

import structlog
from fastapi import APIRouter, Body, Request, Response

from arena.api.auth import SIGNED, ValidatorDep
from arena.api.errors import Code, Refusal, responses
from arena.api.inputs import InputStore
from arena.api.object_routes import check_content_type, code_link
from arena.api.objects import Upload
from arena.api.presence import Presence
from arena.api.scores import check_score
from arena.api.services import Services, ServicesDep
from arena.api.validator_models import (
    ClaimWorkRequest,
    ClaimWorkResponse,
    CompleteRunRequest,
    CompleteRunResponse,
    HeartbeatResponse,
    HostState,
    InferenceTokenGrant,
    PresignUploadRequest,
    PresignUploadResponse,
    ProblemPublic,
    ProgressUpdateRequest,
    ProgressUpdateResponse,
    RunProblemsResponse,
    WorkItemStatus,
)
from arena.exceptions import SecretError
from arena.submissions.credentials import CredentialStore
from arena.submissions.store import AgentVersion, SubmissionStore
from arena.work.exceptions import (
    AtCapacityError,
    IncompleteRunError,
    InvalidProblemError,
    LeaseExpiredError,
    NotRunOwnerError,
    RunAlreadyCompleteError,
    RunNotFoundError,
    WorkError,
)
from arena.work.types import Ended, RunState
from scoring.exceptions import ErrorInfo, Fault

_log = structlog.get_logger(__name__)

router = APIRouter(prefix="/v1/validator", tags=["validator"], dependencies=SIGNED)

_CODES: dict[type[WorkError], Code] = {
    RunNotFoundError: Code.EVAL_RUN_NOT_FOUND,
    NotRunOwnerError: Code.NOT_RUN_OWNER,
    LeaseExpiredError: Code.LEASE_EXPIRED,
    RunAlreadyCompleteError: Code.RUN_ALREADY_COMPLETE,
    InvalidProblemError: Code.INVALID_PROBLEM_ID,
    AtCapacityError: Code.AT_CAPACITY,
    IncompleteRunError: Code.MISSING_SCORE,
}
ENDED_BADLY = {"FAILED": "validator.run_failed", "TIMED_OUT": "validator.run_timed_out"}
"""Codes of runs that a validator gave up. An agent's failures are records, each with its
problem: a run that ends so is the validator's fault, and somebody else's next."""


@contextmanager
def _told(**otherwise: Code) -> Iterator[None]:
    """What the queue refuses, by the SDK's codes.

    `otherwise` names another code where the SDK knows no such one for a route: its parser
    fails on a code that it does not expect.
    """
    try:
        yield
    except WorkError as error:
        code = _CODES.get(type(error), Code.VALIDATION_ERROR)
        raise Refusal(otherwise.get(code.value, code), str(error)) from None


@router.post(
    "/work/claim",
    responses={**responses(401, 403, 409), 204: {"description": "There is no work."}},
    response_model=ClaimWorkResponse,
)
async def claim_work(
    caller: ValidatorDep,
    services: ServicesDep,
    request: Request,
    body: Annotated[ClaimWorkRequest | None, Body()] = None,
) -> ClaimWorkResponse | Response:
    """A run for this validator: one that it lost first, else the oldest that it may have."""
    settings = services.settings
    with _told():
        lease = await services.queue.claim(
            caller.hotkey,
            capacity=settings.runs_per_validator,
            now=services.clock(),
            lease=timedelta(seconds=settings.lease),
            working=body.working if body is not None else None,
        )
    if lease is None:
        await cast("Presence", request.app.state.presence).asked(caller.hotkey, services.clock())
        return Response(status_code=204)
    evaluation = lease.evaluation
    inputs = await InputStore(services.engine).inputs(evaluation.evaluation_id)
    version = await SubmissionStore(services.engine).version(evaluation.version)
    return ClaimWorkResponse(
        eval_run_id=lease.run_id,
        agent_version_id=evaluation.version,
        suite_id=inputs.suite,
        lease_expires_at=lease.expires_at,
        code_download_url=_code_url(services, request, lease.run_id),
        inference_token=await _grant(services, version),
        artefact=version.artefact if version else None,
        evaluation_id=evaluation.evaluation_id,
        phase=evaluation.kind.value,
        agent_name=inputs.name,
        source_sha256=inputs.source_hash,
        resumed=lease.resumed,
    )


@router.get("/evaluation-runs/{eval_run_id}/problems", responses=responses(401, 403, 404, 409))
async def get_run_problems(
    caller: ValidatorDep, services: ServicesDep, eval_run_id: UUID
) -> RunProblemsResponse:
    """The problems with their rewards, for the validator that holds the run."""
    with _told():
        lease = await services.queue.held(eval_run_id, caller.hotkey, services.clock())
    store = InputStore(services.engine)
    inputs = await store.inputs(lease.evaluation.evaluation_id)
    found = await store.problems(inputs)
    return RunProblemsResponse(
        problems=[
            ProblemPublic(problem_id=UUID(problem), suite_id=inputs.suite, metadata=value)
            for problem, value in found
        ]
    )


@router.post("/evaluation-runs/{eval_run_id}/heartbeat", responses=responses(401, 403, 404, 409))
async def heartbeat(
    caller: ValidatorDep,
    services: ServicesDep,
    eval_run_id: UUID,
    body: Annotated[HostState | None, Body()] = None,
) -> HeartbeatResponse:
    """The run is held for one lease from now."""
    with _told():
        expires_at = await services.queue.heartbeat(eval_run_id, caller.hotkey, services.clock())
    return HeartbeatResponse(lease_expires_at=expires_at)


@router.post("/evaluation-runs/{eval_run_id}/progress", responses=responses(401, 403, 404, 409))
async def update_progress(
    caller: ValidatorDep, services: ServicesDep, eval_run_id: UUID, body: ProgressUpdateRequest
) -> ProgressUpdateResponse:
    """How far the run is, for pages. Nothing is decided by it."""
    problems = {str(update.problem_id): update.status for update in body.problems}
    with _told(LEASE_EXPIRED=Code.NOT_RUN_OWNER):
        await services.queue.progress(eval_run_id, caller.hotkey, problems, services.clock())
    return ProgressUpdateResponse()


@router.post("/evaluation-runs/{eval_run_id}/complete", responses=responses(401, 403, 404, 409))
async def complete_run(
    caller: ValidatorDep, services: ServicesDep, eval_run_id: UUID, body: CompleteRunRequest
) -> CompleteRunResponse:
    """End a run. The same again gives the same answer.

    SUCCESS needs a record for every problem, and its verdict.
    """
    state = RunState(body.terminal_status)
    failure = None
    if state is RunState.SUCCESS:
        await check_score(services, eval_run_id, caller.hotkey, body.validator_score)
    else:
        reason = body.failure_reason or "no reason was given"
        failure = ErrorInfo(ENDED_BADLY[state.value], Fault.VALIDATOR, reason)
    with _told(LEASE_EXPIRED=Code.NOT_RUN_OWNER):
        done = await services.queue.complete(
            eval_run_id, caller.hotkey, Ended(state, failure), services.clock()
        )
    evaluation = done.evaluation
    return CompleteRunResponse(
        eval_run_id=eval_run_id,
        status=done.run.state.value,
        work_item=WorkItemStatus(
            included_success_count=evaluation.finished,
            required_successes=evaluation.evaluation.needed,
            is_closed=evaluation.ended_at is not None,
        ),
    )


@router.post("/uploads/presign", responses=responses(401, 403, 404, 409))
async def presign_upload(
    caller: ValidatorDep, services: ServicesDep, request: Request, body: PresignUploadRequest
) -> PresignUploadResponse:
    """A link to leave one file with a problem of a run: logs and the like, for people."""
    settings = services.settings
    content_type = check_content_type(body.content_type)
    if body.content_length > settings.upload_bytes:
        raise Refusal(Code.FILE_TOO_LARGE, f"a file has at most {settings.upload_bytes} bytes")
    now = services.clock()
    with _told(LEASE_EXPIRED=Code.NOT_RUN_OWNER, RUN_ALREADY_COMPLETE=Code.NOT_RUN_OWNER):
        lease = await services.queue.held(body.eval_run_id, caller.hotkey, now)
    if str(body.problem_id) not in lease.evaluation.problems:
        raise Refusal(Code.PROBLEM_NOT_FOUND, "the evaluation has no such problem")
    key = upload_key(body.eval_run_id, body.problem_id)
    url = services.objects.upload_url(
        Upload(key, body.content_length, content_type),
        base_url=_base_url(services, request),
        now=now,
        ttl_s=settings.link_ttl,
    )
    expires_at = now + timedelta(seconds=settings.link_ttl)
    return PresignUploadResponse(upload_url=url, results_s3_key=key, expires_at=expires_at)


async def _grant(services: Services, version: AgentVersion | None) -> InferenceTokenGrant | None:
    """The credential of the agent's owner, for the run that is claimed; None without one.

    One that does not open holds no run up: the operator is told, the agent runs without.
    """
    if services.secrets is None or version is None:
        return None
    try:
        found = await CredentialStore(services.engine, services.secrets).grant(version.hotkey)
    except SecretError as error:
        _log.error("a credential does not open", hotkey=version.hotkey, code=error.code)
        return None
    if found is None:
        return None
    return InferenceTokenGrant(
        provider=found.provider,
        access_token=found.credential,
        base_url=found.base_url,
        expires_at=services.clock() + timedelta(seconds=services.settings.grant_ttl),
    )


def upload_key(run: UUID, problem: UUID) -> str:
    """The key of what a validator leaves with a problem of its run."""
    return f"evaluation-runs/{run}/{problem}.json"


def _code_url(services: Services, request: Request, run: UUID) -> str:
    """Good for a whole run: it is answered only while the run is held."""
    expires = int(services.clock().timestamp() + services.settings.link_ttl)
    signature = services.links.sign(code_link(run), expires)
    query = f"expires={expires}&signature={signature}"
    return f"{_base_url(services, request)}/v1/code/{run}?{query}"


def _base_url(services: Services, request: Request) -> str:
    url = services.settings.public_url or str(request.base_url)
    return url.rstrip("/")
