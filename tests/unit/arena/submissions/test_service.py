"""A submission is taken in whole, or refused with a reason and nothing stored but findings."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from sqlalchemy import text

from arena.db.engine import Database
from arena.db.journal import PostgresJournal
from arena.journal import Event
from arena.problems.bank import IMPORTED
from arena.problems.bank import STREAM as BANK
from arena.problems.holdings import content_hash, content_of
from arena.season.commands import Deregister
from arena.season.store import command, load_season
from arena.submissions.refusals import (
    BadNameError,
    BadSourceError,
    CooldownError,
    GateError,
    SubmissionsPausedError,
    TooManyRefusalsError,
)
from arena.submissions.rules import Rule
from arena.submissions.service import Pace, SubmissionService
from arena.submissions.store import SubmissionStore
from scoring.types import JsonObject
from tests.unit.arena import builders

pytestmark = pytest.mark.database

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
GAP = timedelta(hours=12)
STORED = ("agents", "agent_versions", "agent_sources", "journal", "refused_submissions")


def source(text: str) -> bytes:
    """An agent that is nobody's copy: its code is all its own."""
    return f"def agent_main(problem):\n    answer = {text!r}\n    return [answer]\n".encode()


BAD = b"import socket\n\ndef agent_main(problem):\n    return socket.socket()\n"


@asynccontextmanager
async def serving(database: Database, pace: Pace | None = None) -> AsyncIterator[SubmissionService]:
    service = SubmissionService(database.engine, PostgresJournal(database.engine), pace=pace)
    try:
        yield service
    finally:
        service.close()


@pytest.fixture
async def service(database: Database) -> AsyncIterator[SubmissionService]:
    async with serving(database) as service:
        yield service


async def rows(database: Database) -> dict[str, int]:
    async with database.engine.connect() as connection:
        return {
            table: int(await connection.scalar(text(f"SELECT count(*) FROM {table}")) or 0)
            for table in STORED
        }


async def imported(database: Database, number: int, query: str, pool: str) -> str:
    """A problem of the bank; the id of the product that answers it."""
    made = builders.problem(number, query)
    reward = replace(made.rewards[0], product_id=str(number))
    problem = replace(made, problem_id=f"problem-{number}", rewards=(reward,))
    content = content_of(problem)
    data: JsonObject = {
        "problem": content,
        "content_hash": content_hash(content),
        "pool": pool,
        "cluster": f"c{number}",
        "version": 1,
        "provenance": {"origin": "file"},
        "reason": "import",
    }
    journal = PostgresJournal(database.engine)
    after = len(await journal.read(BANK))
    await journal.append(BANK, [Event(IMPORTED, NOW - timedelta(days=1), data)], after=after)
    return problem.rewards[0].product_id


async def test_an_admitted_file_is_stored_with_its_entry_in_the_season(
    database: Database, service: SubmissionService
) -> None:
    manifest: JsonObject = {"schema": 1, "name": "m"}
    made = await service.submit("hk", " My agent ", source("one"), manifest, NOW)
    store = SubmissionStore(database.engine)
    assert await store.version(made.version_id) == made
    assert (made.name, made.number, made.artefact) == ("My agent", 1, manifest)
    assert await store.source(made.version_id) == source("one")
    assert made.source_hash == hashlib.sha256(source("one")).hexdigest()
    season = (await load_season(PostgresJournal(database.engine))).season
    entrant = season.entrants[str(made.version_id)]
    assert (entrant.hotkey, entrant.source, entrant.submitted_at) == ("hk", made.source_hash, NOW)


async def test_versions_of_a_name_are_counted_and_names_are_agents(
    service: SubmissionService, database: Database
) -> None:
    first = await service.submit("hk", "a", source("one"), None, NOW)
    second = await service.submit("hk", "a", source("two"), None, NOW + GAP)
    other = await service.submit("hk", "b", source("three"), None, NOW + 2 * GAP)
    assert [v.number for v in (first, second, other)] == [1, 2, 1]
    assert first.agent_id == second.agent_id != other.agent_id
    store = SubmissionStore(database.engine)
    assert [v.version_id for v in await store.versions("hk")] == [
        other.version_id,
        second.version_id,
        first.version_id,
    ]
    assert await store.versions(agent_id=first.agent_id, limit=1) == [second]
    assert [agent.name for agent in await store.agents("hk")] == ["a", "b"]
    assert await store.search("HK") == {v.version_id for v in (first, second, other)}
    assert await store.search("%") == await store.search("x\0") == set()


async def test_the_same_file_again_is_the_same_version(
    service: SubmissionService, database: Database
) -> None:
    first = await service.submit("hk", "a", source("one"), None, NOW)
    before = await rows(database)
    assert await service.submit("hk", "a", source("one"), None, NOW) == first
    assert await rows(database) == before


async def test_a_file_of_a_hotkey_that_left_and_came_back_is_a_new_version(
    service: SubmissionService, database: Database
) -> None:
    first = await service.submit("hk", "a", source("one"), None, NOW)
    journal = PostgresJournal(database.engine)
    await command(journal, await load_season(journal), Deregister("hk"), NOW)
    again = await service.submit("hk", "a", source("one"), None, NOW + GAP)
    assert (again.number, again.version_id != first.version_id) == (2, True)


async def test_the_cooldown_says_when_it_ends_and_the_file_is_not_even_read(
    service: SubmissionService, database: Database
) -> None:
    await service.submit("hk", "a", source("one"), None, NOW)
    before = await rows(database)
    with pytest.raises(CooldownError) as refused:
        await service.submit("hk", "a", BAD, None, NOW + GAP - timedelta(seconds=1))
    assert refused.value.ends_at == NOW + GAP
    assert await rows(database) == before
    await service.submit("hk", "a", source("two"), None, NOW + GAP)


async def test_a_refusal_tells_rule_line_and_remedy_and_is_kept(
    service: SubmissionService, database: Database
) -> None:
    with pytest.raises(GateError) as refused:
        await service.submit("hk", "a", BAD, None, NOW)
    told = refused.value.told.violations
    assert (told[0].rule, told[0].line) == (Rule.MODULE, 1)
    assert refused.value.cooldown_until is None
    assert await rows(database) == dict.fromkeys(STORED, 0) | {"refused_submissions": 1}
    (kept,) = await SubmissionStore(database.engine).refusals("hk")
    assert kept.violations == told
    assert (kept.name, kept.size, kept.refused_at) == ("a", len(BAD), NOW)
    await service.submit("hk", "a", source("one"), None, NOW)  # it cost no cooldown


async def test_somebody_elses_file_is_refused_also_after_a_restart(
    service: SubmissionService, database: Database
) -> None:
    first = await service.submit("hk", "a", source("one"), None, NOW)
    async with serving(database) as restarted:
        for one in (service, restarted):
            with pytest.raises(GateError) as refused:
                await one.submit("other", "b", source("one"), None, NOW)
            (told,) = refused.value.told.violations
            assert (told.rule, str(first.version_id) in told.found) == (Rule.IDENTICAL, True)


async def test_who_knows_an_answer_waits_and_is_told_one_place(
    service: SubmissionService, database: Database
) -> None:
    first = await imported(database, 7_000_000_001, "a red teapot with a lid", "bank:held_out")
    second = await imported(database, 7_000_000_002, "a blue kettle for tea", "bank:held_out")
    knows = f"A = {first}\nB = {second}\n".encode() + source("one")
    with pytest.raises(GateError) as refused:
        await service.submit("hk", "a", knows, None, NOW)
    told = [one for one in refused.value.told.violations if one.rule is Rule.PRODUCT_ID]
    assert len(told) == 1, "a list of them would tell which products answer held-out problems"
    assert refused.value.told.more == 0, "how many there are would tell it, too, file by file"
    assert refused.value.cooldown_until == NOW + GAP
    (kept,) = await SubmissionStore(database.engine).refusals("hk")
    assert sum(one.rule is Rule.PRODUCT_ID for one in kept.violations) == 2
    with pytest.raises(CooldownError) as waits:
        await service.submit("hk", "a", source("one"), None, NOW + timedelta(hours=1))
    assert waits.value.ends_at == NOW + GAP


async def test_who_asks_two_processes_at_once_is_told_one_answer(database: Database) -> None:
    first = await imported(database, 7_000_000_001, "a red teapot with a lid", "bank:held_out")
    second = await imported(database, 7_000_000_002, "a blue kettle for tea", "bank:held_out")
    async with serving(database) as one, serving(database) as two:
        results = await asyncio.gather(
            *(
                service.submit("hk", "a", f"A = {known}\n".encode() + source("x"), None, NOW)
                for service, known in ((one, first), (two, second))
            ),
            return_exceptions=True,
        )
    assert sorted(type(result).__name__ for result in results) == ["CooldownError", "GateError"]


async def test_after_many_refusals_no_more_is_read_for_a_while(database: Database) -> None:
    async with serving(database, Pace(refusals_an_hour=2)) as service:
        for minute in range(2):
            with pytest.raises(GateError):
                await service.submit("hk", "a", BAD, None, NOW + timedelta(minutes=minute))
        with pytest.raises(TooManyRefusalsError) as refused:
            await service.submit("hk", "a", source("x"), None, NOW + timedelta(minutes=5))
        assert refused.value.ends_at == NOW + timedelta(hours=1)
        await service.submit("hk", "a", source("x"), None, NOW + timedelta(hours=1))
        await service.submit("another", "a", source("y"), None, NOW)


@pytest.mark.parametrize("processes", [1, 2])
async def test_of_two_submissions_of_a_hotkey_at_once_one_wins(
    database: Database, processes: int
) -> None:
    async with serving(database) as one, serving(database) as two:
        services = (one, two if processes == 2 else one)
        results = await asyncio.gather(
            *(s.submit("hk", "a", source(str(i)), None, NOW) for i, s in enumerate(services)),
            return_exceptions=True,
        )
    assert sorted(type(result).__name__ for result in results) == ["AgentVersion", "CooldownError"]
    assert await rows(database) == dict.fromkeys(STORED, 1) | {"refused_submissions": 0}


async def test_one_file_of_two_hotkeys_at_once_is_admitted_once(database: Database) -> None:
    async with serving(database) as one, serving(database) as two:
        results = await asyncio.gather(
            one.submit("hk1", "a", source("x"), None, NOW),
            two.submit("hk2", "a", source("x"), None, NOW),
            return_exceptions=True,
        )
    assert sorted(type(result).__name__ for result in results) == ["AgentVersion", "GateError"]


async def test_a_failure_after_the_entry_leaves_nothing(database: Database) -> None:
    taken = UUID(int=1)
    journal = PostgresJournal(database.engine)
    service = SubmissionService(database.engine, journal, new_id=lambda: taken)
    try:
        await service.submit("hk", "a", source("one"), None, NOW)
        before = await rows(database)
        with pytest.raises(Exception, match="submitted already"):
            await service.submit("other", "a", source("two"), None, NOW)
        assert await rows(database) == before
    finally:
        service.close()


@pytest.mark.parametrize(
    "name",
    [
        "",
        "   ",
        "../../etc/passwd",
        "a\\b",
        "x'; DROP TABLE agents; --",
        'say "hi"',
        "a\0b",
        "line\nbreak",
        "\u202eevil",
        "<script>alert(1)</script>",
        "a" * 101,
        "-rf",
        "a..b",
        "\ud800",
        "a$(id)",
    ],
)
async def test_hostile_names_are_refused_and_nothing_is_stored(
    service: SubmissionService, database: Database, name: str
) -> None:
    with pytest.raises(BadNameError):
        await service.submit("hk", name, source("one"), None, NOW)
    assert await rows(database) == dict.fromkeys(STORED, 0)


async def test_names_of_any_script_are_stored_in_one_form(service: SubmissionService) -> None:
    assert (await service.submit("a", "Zoe\u0308 2.1", source("one"), None, NOW)).name == "Zoë 2.1"
    assert (await service.submit("b", "買い物", source("two"), None, NOW)).name == "買い物"


async def test_no_file_and_too_large_a_file_are_refused_unread(
    service: SubmissionService, database: Database
) -> None:
    with pytest.raises(BadSourceError) as empty:
        await service.submit("hk", "a", b"", None, NOW)
    with pytest.raises(BadSourceError) as large:
        await service.submit("hk", "a", b"#" * (1 << 20), None, NOW)
    assert (empty.value.too_large, large.value.too_large) == (False, True)
    assert await rows(database) == dict.fromkeys(STORED, 0)


async def test_paused_submissions_say_so(database: Database) -> None:
    async with serving(database, Pace(paused=True)) as service:
        with pytest.raises(SubmissionsPausedError):
            await service.submit("hk", "a", source("one"), None, NOW)


async def test_a_file_that_brings_the_worker_down_costs_only_itself(
    service: SubmissionService,
) -> None:
    deep = b"def agent_main(p):\n    return " + b"(" * 90_000 + b")" * 90_000 + b"\n"
    with pytest.raises(GateError):
        await service.submit("hk", "a", deep, None, NOW)
    await service.submit("hk", "a", source("one"), None, NOW)
