"""`/v1/validator/records`, the one way in for results that count, and where a chain stands."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from arena.api.auth import SIGNED, ValidatorDep
from arena.api.errors import responses
from arena.api.intake import RecordIntake
from arena.api.services import ServicesDep

router = APIRouter(prefix="/v1/validator", tags=["validator"], dependencies=SIGNED)

MEDIA_TYPE = "application/zstd"
_MAX_SEQUENCE = 2**53 - 1
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


class ChainHead(BaseModel):
    """The end of the caller's chain of seals, as far as the arena has it.

    Numbers come in any order, so some before it may be missing here.
    """

    sequence: int = Field(description="Number of the last seal; 0 without one")
    hash: str | None = Field(description="SHA-256 of the last seal, which the next one names")
    sealed: str | None = Field(
        description="The seal with its signature, as one line of canonical JSON: who asks checks"
        " that it is its own"
    )
    asked: str | None = Field(description="SHA-256 of the seal that was asked for, if it is here")


@router.get("/chain-head", responses=responses(401, 403))
async def get_chain_head(
    caller: ValidatorDep,
    services: ServicesDep,
    sequence: Annotated[int | None, Query(ge=1, le=_MAX_SEQUENCE)] = None,
) -> ChainHead:
    """The caller's last stored seal, and the hash of the one with the number `sequence`."""
    asked = await services.records.seal_hash(caller.hotkey, sequence) if sequence else None
    head = await services.records.head(caller.hotkey)
    if head is None:
        return ChainHead(sequence=0, hash=None, sealed=None, asked=None)
    return ChainHead(
        sequence=head.seal.sequence, hash=head.hash, sealed=head.to_line().decode(), asked=asked
    )
