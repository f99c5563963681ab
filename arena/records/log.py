"""The log of all seals in Postgres: one append-only Merkle tree, one signed head a day.

A day is closed once: the seals that are stored by then and not logged yet are entered, by
validator and number, in one transaction with the head. A seal that is stored later goes
into the next head; it is late, and not lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import Row, Select, exists, func, literal, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from arena.chain import Chain, Commitment
from arena.db.schema import head_commitments, log_entries, log_heads, runs, seals
from arena.exceptions import LogError, ProofError
from arena.records.heads import (
    Head,
    SignedHead,
    closing_time,
    commitment_of,
    end_of,
    signing_message,
)
from arena.records.merkle import (
    HASH_BYTES,
    CompactRange,
    GrownTree,
    consistency_proof,
    inclusion_proof,
)
from arena.records.proofs import InclusionProof
from arena.runs.seal import BlockRef, Sealed
from arena.runs.signing import Signer

_CLOSING = 0x41_52_45_4E_4C
"""Key of the advisory lock that lets one process close a day at a time."""
_BATCH = 5_000
_NUMBER = log_entries.c.index.label("number")
"""Rows are tuples, which have an `index` of their own."""


@dataclass(frozen=True, slots=True)
class Closed:
    """A closed day: its head, how many seals it added, and whether it was closed before."""

    head: SignedHead
    entered: int
    already: bool


@dataclass(frozen=True, slots=True)
class StoredHead:
    """A head with what lets the log grow from it and be proven."""

    signed: SignedHead
    subtrees: CompactRange

    @property
    def size(self) -> int:
        """How many seals it covers."""
        return self.subtrees.size


@dataclass(frozen=True, slots=True)
class StoredCommitment:
    """A head that was put on chain."""

    day: date
    commitment: Commitment


class TransparencyLog:
    """The log behind typed calls. Driver errors pass through."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def close(
        self, day: date, signer: Signer, *, now: datetime, block: BlockRef | None = None
    ) -> Closed:
        """Close a day: enter what is stored and sign the head. Again gives the same head.

        `now` in UTC. A day that is not over is closed as it is; what is sealed later goes
        into the next head. Raises LogError for a day that has not begun, for one before the
        last closed one, and for another operator than the log's.
        """
        if now < end_of(day) and now.date() < day:
            raise LogError(f"{day} has not begun", code="log.day_to_come")
        async with self._engine.begin() as connection:
            await connection.execute(select(func.pg_advisory_xact_lock(_CLOSING)))
            there = await _head_of(connection, day)
            if there is not None:
                entered = there.size - await _size_before(connection, there)
                return Closed(there.signed, entered, already=True)
            last = await _last_head(connection)
            _refuse(day, signer, last)
            cutoff = min(now, end_of(day))
            hashes, leaves = await _unlogged(connection, cutoff)
            grown = GrownTree(last.subtrees if last else CompactRange(), leaves)
            await _enter(connection, grown.size - len(leaves) // HASH_BYTES, hashes, leaves)
            signed = await asyncio.to_thread(_signed, day, signer, grown, last, now, block)
            await _insert_head(connection, signed, last, leaves)
        return Closed(signed, len(leaves) // HASH_BYTES, already=False)

    async def tree_head(self, day: date) -> SignedHead | None:
        """The head of a day; None while it is not closed."""
        async with self._engine.connect() as connection:
            found = await _head_of(connection, day)
        return found.signed if found else None

    async def heads(self, *, until: date | None = None) -> list[StoredHead]:
        """All heads, oldest first."""
        query = select(log_heads).order_by(log_heads.c.size, log_heads.c.day)
        if until is not None:
            query = query.where(log_heads.c.day <= until)
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query)).all()
        return [_stored_head(row) for row in rows]

    async def commit(self, chain: Chain) -> StoredCommitment | None:
        """Put the last head on chain, unless it is there; it vouches for all before it.

        None when there is nothing to commit. Raises what the chain raises.
        """
        async with self._engine.connect() as connection:
            last = await _last_head(connection)
            if last is None or await _is_committed(connection, last.signed):
                return None
        head = last.signed.head
        data = commitment_of(head)
        # It may stand there: a process can die between the chain's answer and the database.
        found = await chain.committed(head.log)
        commitment = found if found and found.data == data else await chain.commit(data)
        async with self._engine.begin() as connection:
            await connection.execute(
                insert(head_commitments).on_conflict_do_nothing(),
                {
                    "head_hash": bytes.fromhex(last.signed.hash),
                    "address": commitment.address,
                    "block": commitment.block,
                    "data": commitment.data,
                },
            )
        return StoredCommitment(head.day, commitment)

    async def commitments(self) -> list[StoredCommitment]:
        """All heads that were put on chain, oldest first."""
        query = (
            select(log_heads.c.day, head_commitments)
            .join(log_heads, log_heads.c.head_hash == head_commitments.c.head_hash)
            .order_by(log_heads.c.day, head_commitments.c.block)
        )
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query)).all()
        return [StoredCommitment(r.day, Commitment(r.address, r.data, r.block)) for r in rows]

    @asynccontextmanager
    async def seals(self, first: int, end: int) -> AsyncIterator[AsyncIterator[tuple[int, Sealed]]]:
        """The seals of the leaves [first, end), in order, as they are read."""
        query = (
            select(_NUMBER, seals.c.content, seals.c.signature)
            .join(seals, seals.c.seal_hash == log_entries.c.seal_hash)
            .where(log_entries.c.index >= first, log_entries.c.index < end)
            .order_by(log_entries.c.index)
        )
        async with self._engine.connect() as connection:
            rows = await connection.stream(query, execution_options={"yield_per": _BATCH})

            async def read() -> AsyncIterator[tuple[int, Sealed]]:
                async for row in rows:
                    yield row.number, Sealed(row.content, row.signature)

            yield read()

    async def prove(self, name: str) -> InclusionProof:
        """That a record is in the log: under the head of the day that it was entered by.

        `name` is a run's id, or the SHA-256 of a record or a seal in hex. Raises ProofError
        when there is no such record, and when it is not logged yet.
        """
        async with self._engine.connect() as connection:
            row = await _find_seal(connection, name)
            if row.number is None:
                raise ProofError(
                    f"{name} is not in the log yet",
                    code="proof.not_logged",
                    remedy="arena records close --day DAY enters what is stored",
                )
            return await _proof(connection, row.number, Sealed(row.content, row.signature))

    async def prove_seal(self, validator: str, sequence: int) -> InclusionProof | None:
        """The same for a seal by its number; None when it is not in the log."""
        query = _seal_query().where(seals.c.validator == validator, seals.c.sequence == sequence)
        async with self._engine.connect() as connection:
            row = (await connection.execute(query)).one_or_none()
            if row is None or row.number is None:
                return None
            return await _proof(connection, row.number, Sealed(row.content, row.signature))


def _refuse(day: date, signer: Signer, last: StoredHead | None) -> None:
    if last is None:
        return
    head = last.signed.head
    if head.day > day:
        raise LogError(
            f"{day} was not closed, and {head.day} is: its records went into later heads",
            code="log.day_over",
        )
    if head.log != signer.address:
        raise LogError(
            f"this log is of {head.log}; {signer.address} cannot sign its heads",
            code="log.other_operator",
            remedy="close it with the operator's key",
        )


def _signed(
    day: date,
    signer: Signer,
    grown: GrownTree,
    last: StoredHead | None,
    now: datetime,
    block: BlockRef | None,
) -> SignedHead:
    closed_at = closing_time(now)
    if last is not None:
        # Like a seal, a head never goes back in time, whatever the clock does.
        closed_at = max(closed_at, last.signed.head.closed_at, key=datetime.fromisoformat)
        before = last.signed.head.block
        if before is not None and (block is None or block.number < before.number):
            block = before
    content = Head(
        log=signer.address,
        day=day,
        size=grown.size,
        root=grown.root,
        previous=last.signed.hash if last else None,
        closed_at=closed_at,
        block=block,
    ).encode()
    proof = consistency_proof(grown, last.size if last else 0)
    return SignedHead(content, signer.sign(signing_message(content)), tuple(proof))


async def _unlogged(connection: AsyncConnection, cutoff: datetime) -> tuple[bytearray, bytearray]:
    """Hashes of the seals that are stored and not logged, and of their leaves, packed.

    In the log's order: by validator, byte by byte, and number.
    """
    leaf = func.sha256(literal(b"\x00").op("||")(seals.c.content).op("||")(seals.c.signature))
    query = (
        select(seals.c.seal_hash, leaf)
        .where(
            seals.c.sealed_at < cutoff,
            ~exists().where(log_entries.c.seal_hash == seals.c.seal_hash),
        )
        .order_by(seals.c.validator.collate("C"), seals.c.sequence)
    )
    hashes, leaves = bytearray(), bytearray()
    rows = await connection.stream(query, execution_options={"yield_per": _BATCH})
    async for seal_hash, leaf_hash in rows:
        hashes += seal_hash
        leaves += leaf_hash
    return hashes, leaves


async def _enter(
    connection: AsyncConnection, first: int, hashes: bytearray, leaves: bytearray
) -> None:
    for at in range(0, len(hashes), _BATCH * HASH_BYTES):
        rows = [
            {
                "index": first + i // HASH_BYTES,
                "seal_hash": bytes(hashes[i : i + HASH_BYTES]),
                "leaf_hash": bytes(leaves[i : i + HASH_BYTES]),
            }
            for i in range(at, min(at + _BATCH * HASH_BYTES, len(hashes)), HASH_BYTES)
        ]
        await connection.execute(insert(log_entries), rows)


async def _insert_head(
    connection: AsyncConnection, signed: SignedHead, last: StoredHead | None, leaves: bytearray
) -> None:
    subtrees = last.subtrees.copy() if last else CompactRange()
    subtrees.extend(_unpacked(bytes(leaves)))
    head = signed.head
    await connection.execute(
        insert(log_heads),
        {
            "day": head.day,
            "head_hash": bytes.fromhex(signed.hash),
            "previous": bytes.fromhex(head.previous) if head.previous else None,
            "size": head.size,
            "root": head.root,
            "content": signed.content,
            "signature": signed.signature,
            "consistency": b"".join(signed.consistency),
            "subtrees": b"".join(subtrees.hashes),
        },
    )


async def _head_of(connection: AsyncConnection, day: date) -> StoredHead | None:
    row = (await connection.execute(select(log_heads).where(log_heads.c.day == day))).one_or_none()
    return _stored_head(row) if row else None


async def _last_head(connection: AsyncConnection) -> StoredHead | None:
    query = select(log_heads).order_by(log_heads.c.day.desc()).limit(1)
    row = (await connection.execute(query)).one_or_none()
    return _stored_head(row) if row else None


async def _size_before(connection: AsyncConnection, head: StoredHead) -> int:
    previous = head.signed.head.previous
    if previous is None:
        return 0
    query = select(log_heads.c.size).where(log_heads.c.head_hash == bytes.fromhex(previous))
    return int(await connection.scalar(query) or 0)


def _stored_head(row: Row[tuple[object, ...]]) -> StoredHead:
    signed = SignedHead(row.content, row.signature, tuple(_unpacked(row.consistency)))
    return StoredHead(signed, CompactRange(row.size, _unpacked(row.subtrees)))


def _unpacked(packed: bytes) -> Sequence[bytes]:
    return [packed[i : i + HASH_BYTES] for i in range(0, len(packed), HASH_BYTES)]


async def _is_committed(connection: AsyncConnection, signed: SignedHead) -> bool:
    query = exists().where(head_commitments.c.head_hash == bytes.fromhex(signed.hash)).select()
    return bool(await connection.scalar(query))


def _seal_query() -> Select[tuple[bytes, bytes, int]]:
    return select(seals.c.content, seals.c.signature, _NUMBER).outerjoin(
        log_entries, log_entries.c.seal_hash == seals.c.seal_hash
    )


async def _find_seal(connection: AsyncConnection, name: str) -> Row[tuple[bytes, bytes, int]]:
    query = _seal_query()
    try:
        digest = bytes.fromhex(name) if len(name) == 2 * HASH_BYTES else None
    except ValueError:
        digest = None
    if digest is not None:
        found = await connection.execute(
            query.where((seals.c.record_hash == digest) | (seals.c.seal_hash == digest))
        )
    else:
        run = select(runs.c.record_hash).where(runs.c.run_id == name)
        found = await connection.execute(query.where(seals.c.record_hash.in_(run)))
    row = found.first()
    if row is None:
        raise ProofError(f"no record is stored under {name[:100]}", code="proof.no_such_record")
    return row


async def _proof(connection: AsyncConnection, index: int, sealed: Sealed) -> InclusionProof:
    """Under the first head that covers the leaf: its day's leaves are all that is read."""
    table = log_heads.c
    above = select(log_heads).where(table.size > index).order_by(table.size, table.day).limit(1)
    below = (
        select(log_heads)
        .where(table.size <= index)
        .order_by(table.size.desc(), table.day.desc())
        .limit(1)
    )
    head = _stored_head((await connection.execute(above)).one())
    before = (await connection.execute(below)).one_or_none()
    older = _stored_head(before).subtrees if before else CompactRange()
    leaves = await connection.stream_scalars(
        select(log_entries.c.leaf_hash)
        .where(log_entries.c.index >= older.size, log_entries.c.index < head.size)
        .order_by(log_entries.c.index),
        execution_options={"yield_per": _BATCH},
    )
    newer = bytearray()
    async for leaf in leaves:
        newer += leaf
    path = await asyncio.to_thread(inclusion_proof, GrownTree(older, newer), index)
    signed = SignedHead(head.signed.content, head.signed.signature)
    return InclusionProof(sealed, index, tuple(path), signed)
