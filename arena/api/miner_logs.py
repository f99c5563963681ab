"""An agent's logs and reasons, for its owner and nobody else.

Two ways to the same: pages of `/v1/miner/agent-versions/{id}/logs`, and the files to which the
SDK's `artifacts/download-url` leads when the owner asks for it. A link names version, turn and
problem; what it shows of them is decided anew whenever it is used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from enum import StrEnum
from typing import Annotated
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from arena.api.auth import BOUND_HOTKEY, SIGNED_OR_SESSION, MinerDep, registered
from arena.api.errors import Code, Refusal, responses
from arena.api.miner_log_models import OwnLog, OwnLogs
from arena.api.own_logs import Wanted, count_logs, own_logs
from arena.api.public_views import MAX_OFFSET, Views, ViewsDep
from arena.api.services import Services, ServicesDep
from arena.api.version_status import known_version, owned_version
from arena.runs.record import LOG_TAIL_CHARS
from arena.submissions.store import AgentVersion
from arena.work.exceptions import RunNotFoundError

router = APIRouter(prefix="/v1", tags=["miner"])

MAX_PAGE = 50
MAX_BUNDLE = 5_000
"""The most problems of one file."""
MEDIA_TYPE = "application/x-ndjson"


class Bundle(StrEnum):
    """The SDK's types of artifacts that are an owner's own."""

    LOGS = "EVAL_LOGS_BUNDLE"
    REASONING = "REASONING_DETAILS"


_NAMES = ("authorization", "x-hotkey", BOUND_HOTKEY)
"""Headers of which a request that says who asks has one."""
_NOT_REASONING = {"notes", "log_tail", "failure"}


@router.get(
    "/miner/agent-versions/{agent_version_id}/logs",
    responses=responses(401, 403, 404),
    dependencies=SIGNED_OR_SESSION,
)
async def list_owned_logs(
    caller: MinerDep,
    services: ServicesDep,
    views: ViewsDep,
    agent_version_id: UUID,
    problem: UUID | None = None,
    evaluation: UUID | None = None,
    tail: Annotated[int, Query(ge=0, le=LOG_TAIL_CHARS)] = LOG_TAIL_CHARS,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 20,
    offset: Annotated[int, Query(ge=0, le=MAX_OFFSET)] = 0,
) -> OwnLogs:
    """How each problem of the caller's version went and why, in evaluations that are over.

    `tail` is how many characters of the end of each log are wanted. Text stands here once the
    problem is open, retired or of a public suite.
    """
    version = await owned_version(views, caller.hotkey, agent_version_id)
    over = await _over(services, version)
    wanted = Wanted([one for one in over if evaluation in (None, one)], problem)
    found = own_logs(services.engine, views, wanted, limit=limit, offset=offset, tail=tail)
    return OwnLogs(
        agent_version_id=version.version_id,
        total=await count_logs(services.engine, wanted),
        logs=[one async for one in found],
    )


@router.get(
    "/agent-logs/{agent_version_id}",
    responses=responses(403, 404),
    response_class=StreamingResponse,
)
async def get_bundle(
    services: ServicesDep,
    views: ViewsDep,
    agent_version_id: UUID,
    kind: Bundle,
    expires: Annotated[int, Query(ge=0, le=2**40)],
    signature: Annotated[str, Query(max_length=100)],
    run: UUID | None = None,
    problem: UUID | None = None,
) -> StreamingResponse:
    """A version's logs, or what judges said of it, as JSON Lines: one line a problem."""
    what = _what(kind, agent_version_id, run, problem)
    services.links.check(what, expires, signature, services.clock().timestamp())
    version = await known_version(views, agent_version_id)
    wanted = Wanted(await _over(services, version), problem, run)
    found = own_logs(services.engine, views, wanted, limit=MAX_BUNDLE)
    name = f'attachment; filename="{version.version_id}-{kind.value.lower()}.jsonl"'
    headers = {"content-disposition": name, "x-content-type-options": "nosniff"}
    return StreamingResponse(_lines(found, kind), media_type=MEDIA_TYPE, headers=headers)


async def bundle_link(
    request: Request,
    services: Services,
    views: Views,
    version: AgentVersion,
    kind: Bundle,
    run: UUID | None,
    problem: UUID | None,
    until: datetime,
) -> str:
    """The path of a link to a file of the caller's own. Raises Refusal: 404 for everybody but
    the version's owner, who signs the request or has a session."""
    named = any(name in request.headers for name in _NAMES)
    if not (named and (await registered(request)).hotkey == version.hotkey):
        raise Refusal(
            Code.ARTIFACT_NOT_FOUND, "for its owner alone: sign the request with the hotkey"
        )
    if run is not None:
        await _check_run(services, version, run)
    wanted = Wanted(await _over(services, version), problem, run)
    if not await count_logs(services.engine, wanted):
        raise Refusal(
            Code.ARTIFACT_NOT_RELEASED, "there is nothing until an evaluation with it is over"
        )
    expires = int(until.timestamp())
    named_by = {"run": run, "problem": problem}
    query = {
        "kind": kind.value,
        **{name: str(value) for name, value in named_by.items() if value is not None},
        "expires": expires,
        "signature": services.links.sign(_what(kind, version.version_id, run, problem), expires),
    }
    return f"/v1/agent-logs/{version.version_id}?{urlencode(query)}"


async def _check_run(services: Services, version: AgentVersion, run: UUID) -> None:
    try:
        found = await services.queue.run(run)
    except RunNotFoundError:
        raise Refusal(Code.EVAL_RUN_NOT_FOUND, "there is no such run") from None
    view = await services.queue.evaluation(found.evaluation_id)
    if view.evaluation.version != version.version_id:
        raise Refusal(Code.ARTIFACT_NOT_FOUND, "the run is another agent's")


async def _over(services: Services, version: AgentVersion) -> list[UUID]:
    """Its evaluations that are over: of the others nobody is told anything, or a validator
    could have another's results to copy."""
    found = await services.queue.evaluations_of(version.version_id)
    return [one.evaluation.evaluation_id for one in found if one.ended_at is not None]


async def _lines(found: AsyncIterator[OwnLog], kind: Bundle) -> AsyncIterator[bytes]:
    left_out = _NOT_REASONING if kind is Bundle.REASONING else set()
    async for one in found:
        yield one.model_dump_json(exclude=left_out).encode() + b"\n"


def _what(kind: Bundle, version: UUID, run: UUID | None, problem: UUID | None) -> str:
    return f"OWN {kind.value} {version} {run} {problem}"
