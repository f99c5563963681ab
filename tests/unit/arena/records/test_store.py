"""Records in Postgres: byte for byte, once, whatever is in them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import IntegrityError

from arena.db import schema
from arena.db.engine import Database
from arena.exceptions import DatabaseError
from arena.records.store import RecordStore
from judge.verdict import Gate
from scoring.types import JsonObject
from tests.unit.arena import builders
from tests.unit.arena.builders import AGENT_FAULT, HOST_FAULT, seal

pytestmark = pytest.mark.database


async def _count(database: Database, table: str) -> int:
    async with database.engine.connect() as connection:
        return (
            await connection.scalar(select(func.count()).select_from(schema.metadata.tables[table]))
            or 0
        )


async def test_a_record_comes_back_byte_for_byte(database: Database) -> None:
    store = RecordStore(database.engine)
    await store.register(builders.race_entry())
    hostile: tuple[JsonObject, ...] = ({"a\0b": "\0 \ud800 ' \" ; DROP TABLE runs", "n": 10**30},)
    encoded = builders.record(builders.problem(), dialogue=hostile).encode()
    await store.put(seal(encoded))
    found = await store.record("alpha-p1-1")
    assert found is not None
    assert found.content == encoded.content
    assert await store.record("unknown") is None


async def test_everything_written_twice_is_there_once(database: Database) -> None:
    store = RecordStore(database.engine)
    encoded = builders.record(builders.problem()).encode()
    for _ in range(2):
        await store.register(builders.race_entry())
        await store.put(seal(encoded))
        await store.put([])
    assert await store.stored_runs("race") == {"alpha-p1-1"}
    tables = ("races", "race_agents", "agent_sources", "race_problems", "runs", "records")
    assert [await _count(database, table) for table in tables] == [1] * 6


async def test_a_run_is_never_stored_with_another_record(database: Database) -> None:
    store = RecordStore(database.engine)
    await store.register(builders.race_entry())
    record = builders.record(builders.problem())
    await store.put(seal(record.encode()))
    with pytest.raises(DatabaseError, match="stored with another record"):
        await store.put(seal(replace(record, log_tail="changed").encode()))
    assert await _count(database, "records") == 1


async def test_a_race_id_is_never_taken_by_other_inputs(database: Database) -> None:
    store = RecordStore(database.engine)
    await store.register(builders.race_entry())
    with pytest.raises(DatabaseError, match="another race with the id race"):
        await store.register(replace(builders.race_entry(), fingerprint="00" * 32))


async def test_attempts_stand_beside_each_other_with_whose_fault_it_was(
    database: Database,
) -> None:
    store = RecordStore(database.engine)
    await store.register(builders.race_entry())
    problem = builders.problem()
    await store.put(
        seal(
            builders.record(problem, failure=HOST_FAULT).encode(),
            builders.record(problem, failure=AGENT_FAULT, attempt=2).encode(),
        )
    )
    columns = schema.runs.c
    query = select(columns.attempt, columns.closed, columns.success, columns.failure_fault)
    async with database.engine.connect() as connection:
        rows = (await connection.execute(query.order_by(columns.attempt))).all()
    assert [tuple(row) for row in rows] == [
        (1, False, None, "validator"),
        (2, True, False, "agent"),
    ]


async def test_a_record_of_a_problem_that_was_not_drawn_is_refused_whole(
    database: Database,
) -> None:
    store = RecordStore(database.engine)
    await store.register(builders.race_entry())
    with pytest.raises(IntegrityError):
        await store.put(seal(builders.record(builders.problem(7)).encode()))
    assert await _count(database, "records") == 0


async def test_names_with_nul_and_surrogates_do_not_break_the_race_table(
    database: Database,
) -> None:
    entry = replace(builders.race_entry(), inputs={"suites": ["a\0b\udcff"]})
    await RecordStore(database.engine).register(entry)
    async with database.engine.connect() as connection:
        stored = await connection.scalar(select(schema.races.c.inputs))
    assert stored == {"suites": ["a�b\\udcff"]}


async def test_verdicts_of_runs_and_later_ones_are_stored_once(database: Database) -> None:
    store = RecordStore(database.engine)
    problems = (builders.problem(1), builders.problem(2))
    await store.register(builders.race_entry(problems=problems))
    judged = builders.record(problems[0], gate=Gate.PASSED)
    waiting = builders.record(problems[1])
    later = builders.verdict_record(waiting, Gate.REFERENCE)
    chain = seal(judged.encode(), waiting.encode(), later.encode())
    await store.put(chain[:2])
    scores = text("SELECT unjudged, coefficient, score FROM race_scores WHERE bucket IS NULL")
    async with database.engine.connect() as connection:
        assert tuple((await connection.execute(scores)).one()) == (1, None, None)
    for _ in range(2):
        await store.put([chain[0], chain[2]])
    assert await store.stored_keys("race") == {"alpha-p1-1", "alpha-p2-1", "alpha-p2-1/verdict"}
    async with database.engine.connect() as connection:
        found = tuple((await connection.execute(scores)).one())
    assert found == (0, pytest.approx((1 + 0.5625) / 2), pytest.approx((1 + 0.5625) / 2))


async def test_a_run_never_gets_another_verdict(database: Database) -> None:
    store = RecordStore(database.engine)
    await store.register(builders.race_entry())
    run = builders.record(builders.problem())
    first, second = (
        builders.verdict_record(run, g).encode() for g in (Gate.REFERENCE, Gate.PASSED)
    )
    chain = seal(run.encode(), first, second)
    await store.put(chain[:2])
    with pytest.raises(DatabaseError, match="stored with another verdict"):
        await store.put(chain[2:])
    assert await _count(database, "verdicts") == 1
    assert await _count(database, "records") == 2
