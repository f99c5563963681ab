"""Seals in Postgres: one validator, one chain.

Seals come in any order, from several spools. What the database refuses is a second seal
with the same number, a second one behind the same seal, and a second one of one record.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import and_, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from arena.db.schema import seals
from arena.exceptions import SealForkError
from arena.runs.seal import Sealed


async def check_seals(
    connection: AsyncConnection, found: Sequence[Sealed], added: Collection[bytes]
) -> None:
    """After storing seals of which `added` (their hashes) are new: are the others there?

    Raises SealForkError naming both seals when one was not stored because it forks its chain.
    """
    hashes = [bytes.fromhex(sealed.hash) for sealed in found]
    there = set(added)
    if not there.issuperset(hashes):
        stored = select(seals.c.seal_hash).where(seals.c.seal_hash.in_(hashes))
        there |= set(await connection.scalars(stored))
    for sealed, digest in zip(found, hashes, strict=True):
        if digest not in there:
            raise SealForkError(await _conflict(connection, sealed))


def seal_row(sealed: Sealed) -> dict[str, object]:
    """The row of a seal. Raises SealError for bytes that are none."""
    seal = sealed.seal
    return {
        "seal_hash": bytes.fromhex(sealed.hash),
        "validator": seal.validator,
        "sequence": seal.sequence,
        "previous": bytes.fromhex(seal.previous) if seal.previous else None,
        "kind": seal.kind.value,
        "record_hash": bytes.fromhex(seal.record),
        "sealed_at": seal.time,
        "block_number": seal.block.number if seal.block else None,
        "block_hash": seal.block.hash if seal.block else None,
        "content": sealed.content,
        "signature": sealed.signature,
    }


async def _conflict(connection: AsyncConnection, sealed: Sealed) -> str:
    """Why a seal was not stored, with the one that stands in its place."""
    seal, table = sealed.seal, seals.c
    previous = bytes.fromhex(seal.previous) if seal.previous else None
    same_place = or_(table.sequence == seal.sequence, table.previous.is_not_distinct_from(previous))
    in_its_place = or_(
        and_(table.validator == seal.validator, same_place),
        table.record_hash == bytes.fromhex(seal.record),
    )
    query = (
        select(table.content, table.signature)
        .where(in_its_place)
        .order_by(
            (table.record_hash == bytes.fromhex(seal.record)).desc(),
            (table.sequence == seal.sequence).desc(),
        )
        .limit(1)
    )
    row = (await connection.execute(query)).one()
    stored, new = Sealed(row.content, row.signature), f"seal {seal.sequence} ({sealed.hash})"
    there = f"seal {stored.seal.sequence} ({stored.hash}) is stored"
    if stored.seal.record == seal.record:
        return (
            f"record {seal.record} was sealed twice: {there}, and {new} of {seal.validator}"
            " is refused"
        )
    return f"the chain of {seal.validator} forks: {there}, and {new} stands in the same place"
