"""The database keeps one chain a validator: what forks it is refused, and both are named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import select

from arena.db import schema
from arena.db.engine import Database
from arena.exceptions import DatabaseError, SealError
from arena.records.store import RecordStore
from arena.runs.ledger import Head
from arena.runs.problems import problem_content, problem_ref
from arena.runs.record import EncodedRecord
from arena.runs.seal import BlockRef, Sealed, SealedRecord, signing_message
from arena.runs.signing import KeypairSigner
from tests.unit.arena import builders
from tests.unit.arena.builders import seal

pytestmark = pytest.mark.database

PROBLEMS = tuple(builders.problem(n) for n in range(1, 6))
RECORDS = tuple(builders.record(problem).encode() for problem in PROBLEMS)


@pytest.fixture
async def store(database: Database) -> RecordStore:
    store = RecordStore(database.engine)
    await store.register(builders.race_entry(problems=PROBLEMS))
    return store


async def _stored(database: Database) -> list[Sealed]:
    columns = schema.seals.c
    query = select(columns.content, columns.signature).order_by(columns.sequence)
    async with database.engine.connect() as connection:
        return [Sealed(row.content, row.signature) for row in await connection.execute(query)]


async def test_seals_come_back_byte_for_byte_and_are_there_once(
    store: RecordStore, database: Database
) -> None:
    chain = seal(*RECORDS)
    for _ in range(2):
        await store.put(chain)
    assert await _stored(database) == [one.sealed for one in chain]
    assert await store.head(chain[0].sealed.seal.validator) == chain[-1].sealed
    assert await store.head("nobody") is None


async def test_the_columns_say_what_the_seal_says(store: RecordStore, database: Database) -> None:
    first, second = seal(*RECORDS[:2])
    block = BlockRef(7, "0x" + "07" * 32)
    content = replace(second.sealed.seal, block=block).encode()
    signature = KeypairSigner("//Alice").sign(signing_message(content))
    second = SealedRecord(second.record, Sealed(content, signature))
    await store.put([first, second])
    async with database.engine.connect() as connection:
        rows = (await connection.execute(schema.seals.select().order_by("sequence"))).all()
    assert [row.previous for row in rows] == [None, bytes.fromhex(first.sealed.hash)]
    row, said = rows[1], second.sealed.seal
    assert row.seal_hash.hex() == second.sealed.hash
    assert (row.validator, row.sequence, row.kind) == (said.validator, 2, "run")
    assert (row.record_hash.hex(), row.sealed_at) == (second.record.hash, said.time)
    assert (row.block_number, row.block_hash) == (7, block.hash)


async def test_seals_may_come_in_any_order(store: RecordStore, database: Database) -> None:
    chain = seal(*RECORDS)
    for place in (3, 0, 4, 1, 2):
        await store.put([chain[place]])
    assert await _stored(database) == [one.sealed for one in chain]


def _same_number(chain: list[SealedRecord]) -> SealedRecord:
    head = Head.of(chain[0].sealed)
    return seal(RECORDS[3], head=replace(head, sequence=2))[0]


def _same_predecessor(chain: list[SealedRecord]) -> SealedRecord:
    return seal(RECORDS[3], head=replace(Head.of(chain[0].sealed), sequence=8))[0]


def _second_first(chain: list[SealedRecord]) -> SealedRecord:
    return seal(RECORDS[3])[0]


@pytest.mark.parametrize(
    ("fork", "stands"), [(_same_number, 3), (_same_predecessor, 2), (_second_first, 1)]
)
async def test_a_fork_is_refused_whole_and_both_seals_are_named(
    fork: Callable[[list[SealedRecord]], SealedRecord],
    stands: int,
    store: RecordStore,
    database: Database,
) -> None:
    chain = seal(*RECORDS[:3])
    await store.put(chain)
    other = fork(chain)
    with pytest.raises(DatabaseError, match="forks") as caught:
        await store.put([other])
    assert other.sealed.hash in caught.value.message
    assert chain[stands - 1].sealed.hash in caught.value.message
    assert await _stored(database) == [one.sealed for one in chain]
    assert "alpha-p4-1" not in await store.stored_runs("race")


async def test_a_record_is_never_sealed_twice(store: RecordStore, database: Database) -> None:
    await store.put(seal(RECORDS[0]))
    with pytest.raises(DatabaseError, match="sealed twice"):
        await store.put(seal(RECORDS[0], who="//Bob"))
    assert len(await _stored(database)) == 1


async def test_two_validators_have_a_chain_each(store: RecordStore, database: Database) -> None:
    await store.put(seal(*RECORDS[:2]))
    await store.put(seal(*RECORDS[2:4], who="//Bob"))
    assert len(await _stored(database)) == 4


async def test_a_seal_of_another_record_is_refused(store: RecordStore) -> None:
    first, second = seal(*RECORDS[:2])
    with pytest.raises(SealError, match="of another record"):
        await store.put([SealedRecord(second.record, first.sealed)])
    with pytest.raises(SealError, match="not a seal"):
        await store.put([SealedRecord(first.record, Sealed(b"{}", bytes(64)))])


async def test_a_record_leads_to_its_problem_without_a_suite(
    store: RecordStore, database: Database
) -> None:
    await store.put(seal(RECORDS[0]))
    found = await store.record("alpha-p1-1")
    assert found is not None
    named = found.value["problem"]
    assert isinstance(named, dict)
    assert named["content_hash"] == problem_ref(PROBLEMS[0]).content_hash
    content = await store.problem("p1", str(named["content_hash"]))
    assert content == problem_content(PROBLEMS[0])
    assert EncodedRecord(content).hash == named["content_hash"]
    assert await store.problem("p1", "00" * 32) is None
