"""The log in Postgres: what is entered, in which order, under which head."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from sqlalchemy.exc import DBAPIError

from arena.chain import Block, Commitment
from arena.db.engine import Database
from arena.db.schema import APPEND_ONLY
from arena.exceptions import ChainUnavailableError, LogError, ProofError
from arena.records.heads import commitment_of, read_commitment, signing_message
from arena.records.log import TransparencyLog, _insert_head
from arena.records.merkle import PackedTree, leaf_hash, verify_consistency
from arena.records.store import RecordStore
from arena.runs.ledger import Head, seal_after
from arena.runs.seal import BlockRef, SealedRecord
from arena.runs.signing import KeypairSigner, verify_signature
from tests.unit.arena.builders import problem, race_entry, record

OPERATOR = KeypairSigner("//Operator")
DAY = date(2026, 1, 1)
MORNING = datetime(2026, 1, 1, 8, tzinfo=UTC)
NEXT = datetime(2026, 1, 2, 0, 5, tzinfo=UTC)


def chain_of(
    name: str, count: int, *, at: datetime = MORNING, after: Head | None = None
) -> list[SealedRecord]:
    """Seals of one validator, a minute apart, each over a record of its own."""
    signer, head = KeypairSigner(f"//{name}"), after or Head()
    found = []
    for number in range(count):
        run_id = f"{name}-{head.sequence + 1}"
        content = record(problem(), run_id=run_id, attempt=head.sequence + 1).encode()
        now = at + timedelta(minutes=number)
        found.append(seal_after(head, content, signer, now=now, block=None))
        head = Head.of(found[-1].sealed)
    return found


async def store(database: Database, records: Sequence[SealedRecord]) -> None:
    store = RecordStore(database.engine)
    await store.register(race_entry())
    await store.put(records)


class StoodInChain:
    """A chain that remembers one commitment; away while `away`."""

    def __init__(self) -> None:
        self.stands: Commitment | None = None
        self.made = 0
        self.away = False

    async def block(self) -> Block:
        return Block(BlockRef(7, "0x" + "0" * 64), NEXT)

    async def block_hash(self, number: int) -> str | None:
        return "0x" + "0" * 64

    async def commit(self, data: bytes) -> Commitment:
        if self.away:
            raise ChainUnavailableError("the chain does not answer")
        self.made += 1
        self.stands = Commitment(OPERATOR.address, data, 7)
        return self.stands

    async def committed(self, address: str) -> Commitment | None:
        if self.away:
            raise ChainUnavailableError("the chain does not answer")
        return self.stands


async def test_a_day_is_closed_once_and_its_head_is_signed(database: Database) -> None:
    alice, bob = chain_of("Alice", 3), chain_of("Bob", 2)
    await store(database, [*bob, *alice])
    log = TransparencyLog(database.engine)
    assert await log.tree_head(DAY) is None
    closed = await log.close(DAY, OPERATOR, now=NEXT)
    assert (closed.entered, closed.already) == (5, False)
    signed = closed.head
    assert verify_signature(OPERATOR.address, signing_message(signed.content), signed.signature)
    in_order = sorted(
        [one.sealed for one in (*alice, *bob)], key=lambda s: (s.seal.validator, s.seal.sequence)
    )
    assert signed.head.root == PackedTree(b"".join(leaf_hash(s.leaf) for s in in_order)).root
    async with log.seals(0, 5) as found:
        assert [sealed async for _, sealed in found] == in_order
    again = await log.close(DAY, OPERATOR, now=NEXT + timedelta(hours=3))
    assert again.already
    assert (again.entered, again.head) == (5, signed)
    assert await log.tree_head(DAY) == signed


async def test_what_is_stored_later_goes_into_the_next_head_which_is_consistent(
    database: Database,
) -> None:
    alice = chain_of("Alice", 5)
    log = TransparencyLog(database.engine)
    await store(database, alice[:3])
    first = (await log.close(DAY, OPERATOR, now=NEXT)).head
    await store(database, [*alice[3:], *chain_of("Bob", 4, at=NEXT)])
    second = (await log.close(date(2026, 1, 2), OPERATOR, now=NEXT + timedelta(days=1))).head
    third = (await log.close(date(2026, 1, 3), OPERATOR, now=NEXT + timedelta(days=2))).head
    assert [h.head.size for h in (first, second, third)] == [3, 9, 9]
    assert [second.head.previous, third.head.previous] == [first.hash, second.hash]
    for old, new in ((first.head, second.head), (second.head, third.head)):
        proof = second.consistency if new is second.head else third.consistency
        assert verify_consistency(old.size, new.size, old.root, new.root, proof)
    assert [stored.signed for stored in await log.heads()] == [first, second, third]
    assert [stored.signed for stored in await log.heads(until=DAY)] == [first]


async def test_a_seal_of_the_next_day_waits_for_its_own_head(database: Database) -> None:
    await store(database, chain_of("Alice", 4, at=datetime(2026, 1, 1, 23, 58, tzinfo=UTC)))
    log = TransparencyLog(database.engine)
    assert (await log.close(DAY, OPERATOR, now=NEXT)).entered == 2
    closed = await log.close(date(2026, 1, 2), OPERATOR, now=NEXT + timedelta(hours=1))
    assert closed.entered == 2


async def test_days_are_closed_in_order_by_one_operator(database: Database) -> None:
    log = TransparencyLog(database.engine)
    with pytest.raises(LogError, match="has not begun"):
        await log.close(date(2026, 1, 3), OPERATOR, now=NEXT)
    await log.close(date(2026, 1, 2), OPERATOR, now=NEXT)
    with pytest.raises(LogError, match="went into later heads"):
        await log.close(DAY, OPERATOR, now=NEXT)
    with pytest.raises(LogError, match="cannot sign its heads"):
        await log.close(date(2026, 1, 3), KeypairSigner("//Eve"), now=NEXT + timedelta(days=1))


async def test_every_record_can_be_proven_by_run_record_and_seal(database: Database) -> None:
    log = TransparencyLog(database.engine)
    alice = chain_of("Alice", 7)
    await store(database, alice[:4])
    await log.close(DAY, OPERATOR, now=NEXT)
    await store(database, alice[4:6])
    second = (await log.close(date(2026, 1, 2), OPERATOR, now=NEXT + timedelta(days=1))).head
    await store(database, alice[6:])
    for one in alice[:6]:
        proof = await log.prove(one.record.hash)
        assert proof.holds
        assert proof.sealed == one.sealed
        assert await log.prove(one.sealed.hash) == proof
        assert await log.prove(str(one.record.value["run_id"])) == proof
    assert proof.head.hash == second.hash
    with pytest.raises(ProofError, match="not in the log yet"):
        await log.prove("Alice-7")
    with pytest.raises(ProofError, match="no record"):
        await log.prove("nobody")
    assert await log.prove_seal(alice[0].sealed.seal.validator, 8) is None


async def test_the_last_head_is_committed_once_and_made_up_for_later(database: Database) -> None:
    log, chain = TransparencyLog(database.engine), StoodInChain()
    assert await log.commit(chain) is None
    await store(database, chain_of("Alice", 2))
    head = (await log.close(DAY, OPERATOR, now=NEXT)).head.head
    chain.away = True
    with pytest.raises(ChainUnavailableError):
        await log.commit(chain)
    assert await log.commitments() == []
    chain.away = False
    made = await log.commit(chain)
    assert made is not None
    assert read_commitment(made.commitment.data) == (DAY, head.size, head.root)
    assert await log.commit(chain) is None
    assert chain.made == 1
    assert await log.commitments() == [made]


async def test_what_stands_on_chain_already_is_not_committed_again(database: Database) -> None:
    log, chain = TransparencyLog(database.engine), StoodInChain()
    head = (await log.close(DAY, OPERATOR, now=NEXT)).head.head
    chain.stands = Commitment(OPERATOR.address, commitment_of(head), 5)
    made = await log.commit(chain)
    assert made is not None
    assert (made.commitment.block, chain.made) == (5, 0)


async def test_two_processes_close_a_day_to_one_head(database: Database) -> None:
    await store(database, chain_of("Alice", 6))
    logs = [TransparencyLog(database.engine) for _ in range(4)]
    closed = await asyncio.gather(*(log.close(DAY, OPERATOR, now=NEXT) for log in logs))
    assert len({one.head.hash for one in closed}) == 1
    assert sorted(one.already for one in closed) == [False, True, True, True]


async def test_the_log_takes_no_second_head_behind_one(database: Database) -> None:
    assert {"log_heads", "log_entries", "head_commitments"} <= {t.name for t in APPEND_ONLY}
    log = TransparencyLog(database.engine)
    first = await log.close(DAY, OPERATOR, now=NEXT)
    stored = (await log.heads())[0]
    other = replace(first.head.head, day=date(2026, 1, 5)).encode()
    twin = replace(first.head, content=other)
    with pytest.raises(DBAPIError, match="uq_log_heads_previous"):
        async with database.engine.begin() as connection:
            await _insert_head(connection, twin, None, bytearray())
    assert stored.size == 0
