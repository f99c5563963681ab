"""Public calls of the SDK that have no meaning here, answered in its own shape."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict

from arena.api.errors import Code, Refusal, responses

router = APIRouter(prefix="/v1/public", tags=["public"])


class AnyObject(BaseModel):
    """Whatever the SDK sends: it is not read."""

    model_config = ConfigDict(extra="allow")


@router.post("/waitlist", responses=responses(404), status_code=404)
async def join_waitlist(body: AnyObject) -> None:
    """There is no list to wait on: whoever is registered on the subnet may submit."""
    raise Refusal(Code.NOT_OFFERED, "there is no waiting list: register on the subnet, and submit")


@router.get(
    "/episode-results/{episode_result_id}/feedback", responses=responses(404), status_code=404
)
async def get_episode_feedback(episode_result_id: UUID) -> None:
    """There are no episodes here."""
    raise Refusal(Code.ARTIFACT_NOT_FOUND, "this arena has no episodes")
