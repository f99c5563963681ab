"""`POST /v1/validator/records`: the one way in for results that count."""

from __future__ import annotations

from typing import cast

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from arena.api.auth import SIGNED, ValidatorDep
from arena.api.errors import responses
from arena.api.intake import RecordIntake

router = APIRouter(prefix="/v1/validator", tags=["validator"], dependencies=SIGNED)

MEDIA_TYPE = "application/zstd"
_BODY = {
    "requestBody": {
        "required": True,
        "description": "Frames of zstandard over JSON Lines, as in a spool: for each record a"
        " line with its canonical JSON and a line with its seal.",
        "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    }
}


class TakenRecord(BaseModel):
    """What became of a record. `reason` says why it is stored and does not count."""

    seal: str = Field(description="SHA-256 of the seal")
    record: str = Field(description="SHA-256 of the record")
    kind: str
    counted: bool
    reason: str | None


class TakenRecords(BaseModel):
    """All records of the batch, in its order. All of them are stored."""

    counted: int
    records: list[TakenRecord]


@router.post("/records", responses=responses(401, 403, 404, 409), openapi_extra=_BODY)
async def submit_records(caller: ValidatorDep, request: Request) -> TakenRecords:
    """Store sealed records of the caller's runs. Sending them again changes nothing."""
    intake = cast("RecordIntake", request.app.state.intake)
    taken = await intake.take(caller.hotkey, await request.body())
    records = [
        TakenRecord(
            seal=one.seal,
            record=one.record,
            kind=one.kind.value,
            counted=one.counted,
            reason=one.reason,
        )
        for one in taken
    ]
    return TakenRecords(counted=sum(one.counted for one in taken), records=records)
