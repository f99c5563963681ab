"""`/v1/public/records`: what stays public of every record, whoever wants to check.

Heads of the log, its commitments on chain, and the proof that a record is in it. A proof
holds the seal and no content, so it is served of withheld records, too.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from arena.api.errors import Code, Refusal, responses
from arena.api.services import ServicesDep
from arena.exceptions import ProofError
from arena.records.log import TransparencyLog

router = APIRouter(prefix="/v1/public/records", tags=["public"])

_MAX_HEADS = 366


class LogHead(BaseModel):
    """A signed head, as files hold it: `head` is made canonical (RFC 8785) to be checked."""

    day: date
    hash: str
    head: dict[str, Any]
    signature: str
    consistency: list[str]


class ChainCommitment(BaseModel):
    """A head that was put on chain. `data` is hex."""

    day: date
    address: str
    block: int
    data: str


class LogHeads(BaseModel):
    """The heads, oldest first, and which were put on chain."""

    heads: list[LogHead]
    commitments: list[ChainCommitment]


@router.get("/heads", responses=responses())
async def get_record_heads(
    services: ServicesDep,
    until: date | None = None,
    last: Annotated[int, Query(ge=1, le=_MAX_HEADS)] = _MAX_HEADS,
) -> LogHeads:
    """The log's signed heads: the last ones, up to a day."""
    log = TransparencyLog(services.engine)
    heads = (await log.heads(until=until))[-last:]
    days = {stored.signed.head.day for stored in heads}
    return LogHeads(
        heads=[
            LogHead.model_validate(
                {"day": one.signed.head.day, "hash": one.signed.hash, **one.signed.to_json()}
            )
            for one in heads
        ],
        commitments=[
            ChainCommitment(
                day=one.day,
                address=one.commitment.address,
                block=one.commitment.block,
                data=one.commitment.data.hex(),
            )
            for one in await log.commitments()
            if one.day in days
        ],
    )


@router.get("/{name}/proof", responses=responses(404))
async def get_record_proof(
    services: ServicesDep,
    name: Annotated[str, Path(pattern=r"^[0-9A-Za-z._-]{1,100}$")],
) -> dict[str, Any]:
    """That a record is in the log: by the SHA-256 of its seal or of itself, or by its run."""
    try:
        proof = await TransparencyLog(services.engine).prove(name)
    except ProofError as error:
        raise Refusal(Code.RECORD_NOT_FOUND, error.message) from None
    return dict(proof.to_json())
