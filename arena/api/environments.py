"""Calls of the SDK that have no meaning here: environment packs and their episodes.

Problems come with `evaluation-runs/{id}/problems`, results with `validator/records`.
"""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict

from arena.api.auth import SIGNED, ValidatorDep
from arena.api.errors import responses

router = APIRouter(prefix="/v1/validator", tags=["validator"], dependencies=SIGNED)

_DETAIL = "this arena has no environment packs: problems come with the evaluation run"


class EnvPackError(BaseModel):
    """The SDK's EnvPackErrorResponse."""

    detail: str


class AnyObject(BaseModel):
    """Whatever the SDK sends: it is not read."""

    model_config = ConfigDict(extra="allow")


_NOT_OFFERED = {**responses(401, 403), 404: {"model": EnvPackError}}


def _not_offered() -> JSONResponse:
    return JSONResponse({"detail": _DETAIL}, 404)


@router.get("/pack/{pack_sha256}", responses=_NOT_OFFERED, status_code=404)
async def get_pack(
    caller: ValidatorDep,
    pack_sha256: Annotated[str, Path(max_length=200)],
    kind: Literal["qualifying", "race"] = "qualifying",
) -> JSONResponse:
    """There are no packs here."""
    return _not_offered()


@router.post("/race/{race_id}/pack", responses=_NOT_OFFERED, status_code=404)
async def get_race_pack(caller: ValidatorDep, race_id: UUID) -> JSONResponse:
    """There are no packs here."""
    return _not_offered()


@router.post("/episode-artifacts/presign", responses=_NOT_OFFERED, status_code=404)
async def presign_episode_artifact(caller: ValidatorDep, body: AnyObject) -> JSONResponse:
    """There are no episodes here."""
    return _not_offered()


@router.post("/episode-results", responses=_NOT_OFFERED, status_code=404)
async def submit_episode_results(caller: ValidatorDep, body: AnyObject) -> JSONResponse:
    """There are no episodes here: results are signed records."""
    return _not_offered()
