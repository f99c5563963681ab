"""`/v1/public/artifacts`: links to what is public of an agent: its code, a problem's logs.

To an agent's owner also its own logs, and what judges said of it (`miner_logs`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from arena.api.errors import Code, Refusal, responses
from arena.api.miner_logs import Bundle, bundle_link
from arena.api.objects import LocalStore
from arena.api.public_agent_models import ArtifactDownloadRequest, ArtifactDownloadResponse
from arena.api.public_views import Views, ViewsDep
from arena.api.services import Services, ServicesDep
from arena.api.validator import upload_key
from arena.api.version_status import known_version
from arena.submissions.store import AgentVersion
from arena.work.exceptions import RunNotFoundError

router = APIRouter(prefix="/v1/public", tags=["public"])

AGENT_CODE = "AGENT_CODE"
PROBLEM_LOGS = "EVAL_PROBLEM_LOGS"


@router.post("/artifacts/download-url", responses=responses(401, 403, 404))
async def get_artifact_download_url(
    services: ServicesDep, views: ViewsDep, request: Request, body: ArtifactDownloadRequest
) -> ArtifactDownloadResponse:
    """A link to an artifact, when it is public. EVAL_LOGS_BUNDLE and REASONING_DETAILS are
    the version's owner's alone, who signs the request or has a session."""
    if body.artifact_type not in (AGENT_CODE, PROBLEM_LOGS, *Bundle):
        raise Refusal(Code.INVALID_ARTIFACT_TYPE, "there is no such type of artifact")
    version = await known_version(views, body.agent_version_id)
    now, ttl = services.clock(), services.settings.link_ttl
    base = (services.settings.public_url or str(request.base_url)).rstrip("/")
    if body.artifact_type == AGENT_CODE:
        await _check_code(views, version)
        expires = int(now.timestamp() + ttl)
        signature = services.links.sign(_what(version.version_id), expires)
        query = urlencode({"expires": expires, "signature": signature})
        url = f"{base}/v1/public/agent-versions/{version.version_id}/code?{query}"
    elif body.artifact_type == PROBLEM_LOGS:
        key = await _logs(services, views, version, body.eval_run_id, body.problem_id)
        url = services.objects.download_url(key, base_url=base, now=now, ttl_s=ttl)
    else:
        kind, run, problem = Bundle(body.artifact_type), body.eval_run_id, body.problem_id
        until = now + timedelta(seconds=ttl)
        path = await bundle_link(request, services, views, version, kind, run, problem, until)
        url = f"{base}{path}"
    return ArtifactDownloadResponse(download_url=url, expires_at=now + timedelta(seconds=ttl))


@router.get(
    "/agent-versions/{agent_version_id}/code",
    responses=responses(403, 404),
    response_class=Response,
)
async def get_public_code(
    services: ServicesDep,
    views: ViewsDep,
    agent_version_id: UUID,
    expires: Annotated[int, Query(ge=0, le=2**40)],
    signature: Annotated[str, Query(max_length=100)],
) -> Response:
    """The file of a version whose code is public, as a file to keep."""
    what = _what(agent_version_id)
    services.links.check(what, expires, signature, services.clock().timestamp())
    version = await known_version(views, agent_version_id)
    await _check_code(views, version)
    source = await views.versions.source(agent_version_id)
    name = f'attachment; filename="{version.source_hash[:16]}.py"'
    headers = {
        "content-disposition": name,
        "x-source-sha256": version.source_hash,
        "x-content-type-options": "nosniff",
    }
    return Response(source, media_type="text/x-python; charset=utf-8", headers=headers)


def _what(version_id: UUID) -> str:
    return f"PUBLIC CODE {version_id}"


async def _check_code(views: Views, version: AgentVersion) -> None:
    """Raises Refusal: 403 while the version races, 404 when its code is not public."""
    released = version.source_hash in (await views.release()).code
    season, name = await views.season(), str(version.version_id)
    racing = {v for race in (season.running, season.open) if race for v in race.racers}
    if released:
        return
    if name in racing:
        raise Refusal(Code.RACE_IN_FLIGHT, "this version races now")
    raise Refusal(
        Code.ARTIFACT_NOT_RELEASED,
        "code is public when its agent has held the title and the embargo is over",
    )


async def _logs(
    services: Services, views: Views, version: AgentVersion, run: UUID | None, problem: UUID | None
) -> str:
    """The key of what a validator left with a problem of its run. Raises Refusal."""
    if run is None or problem is None:
        raise Refusal(Code.MISSING_PARAMETER, "a problem's logs want eval_run_id and problem_id")
    try:
        found = await services.queue.run(run)
    except RunNotFoundError:
        raise Refusal(Code.EVAL_RUN_NOT_FOUND, "there is no such run") from None
    view = await services.queue.evaluation(found.evaluation_id)
    mine = view.evaluation.version == version.version_id
    if not mine or str(problem) not in view.evaluation.problems:
        raise Refusal(Code.ARTIFACT_NOT_FOUND, "the run has no such problem, or is another's")
    if not (await views.release())(str(problem), version.source_hash):
        raise Refusal(
            Code.ARTIFACT_NOT_RELEASED,
            "public when the problem is retired and the agent's embargo is over",
        )
    key = upload_key(run, problem)
    if isinstance(services.objects, LocalStore) and services.objects.read(key) is None:
        raise Refusal(Code.ARTIFACT_NOT_FOUND, "nobody left anything with this problem")
    return key
