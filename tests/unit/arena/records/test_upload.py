"""Records reach the database whenever it is there, and a race is told once when it is not."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy.engine import make_url

from arena.db.embedded import EmbeddedPostgres
from arena.db.engine import open_database
from arena.exceptions import DatabaseError
from arena.records.store import RecordStore
from arena.records.upload import Uploader
from arena.runs.ledger import Ledger
from arena.runs.record import EncodedRecord
from arena.runs.signing import KeypairSigner
from arena.runs.spool import SpoolSink
from arena.settings import ArenaSettings
from tests.unit.arena import builders

pytestmark = pytest.mark.database

PROBLEMS = tuple(builders.problem(n) for n in range(1, 6))


def _record(number: int) -> EncodedRecord:
    return builders.record(PROBLEMS[number], run_id=f"run-{number}").encode()


@pytest.fixture
def server() -> Iterator[EmbeddedPostgres]:
    """A server of this test's own, which it may stop."""
    directory = Path(tempfile.mkdtemp(prefix="arena-test-"))
    server = EmbeddedPostgres(directory)
    server.start()
    yield server
    server.stop()
    shutil.rmtree(directory, ignore_errors=True)


def _settings(server: EmbeddedPostgres) -> ArenaSettings:
    url = make_url(server.url).set(drivername="postgresql")
    return ArenaSettings(database_url=SecretStr(url.render_as_string(hide_password=False)))


class _Open:
    """A spool, an uploader at work, and what was told."""

    def __init__(self, directory: Path) -> None:
        self.told: list[str] = []
        self.spool = SpoolSink(directory, Ledger(directory / "ledger", KeypairSigner("//Alice")))
        self.uploader: Uploader

    async def put(self, number: int) -> None:
        entry = await self.spool.append(_record(number))
        self.uploader.add(f"run-{number}", entry)


@asynccontextmanager
async def _uploading(settings: ArenaSettings, directory: Path) -> AsyncIterator[_Open]:
    opened = _Open(directory)
    loaded = list(opened.spool.load())
    async with open_database(settings) as database:
        entry = builders.race_entry(problems=PROBLEMS)
        opened.uploader = Uploader(database, opened.spool, entry, opened.told.append)
        for place, found in loaded:
            opened.uploader.add(str(found.record.value["run_id"]), place)
        task = asyncio.create_task(opened.uploader.run())
        try:
            yield opened
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            opened.spool.close()


async def _stored(settings: ArenaSettings) -> set[str]:
    async with open_database(settings) as database:
        return await RecordStore(database.engine).stored_runs("race")


async def test_records_are_stored_as_they_come(server: EmbeddedPostgres, tmp_path: Path) -> None:
    settings = _settings(server)
    async with _uploading(settings, tmp_path) as opened:
        await opened.uploader.connect()
        for number in range(3):
            await opened.put(number)
        assert await opened.uploader.drain(30) == 0
    assert opened.told == []
    assert await _stored(settings) == {"run-0", "run-1", "run-2"}


async def test_an_outage_is_told_once_and_waited_out(
    server: EmbeddedPostgres, tmp_path: Path
) -> None:
    settings = _settings(server)
    async with _uploading(settings, tmp_path) as opened:
        await opened.uploader.connect()
        await opened.put(0)
        assert await opened.uploader.drain(30) == 0
        server.stop()
        await opened.put(1)
        await opened.put(2)
        assert await opened.uploader.drain(1.5) == 2
        assert len(opened.told) == 1
        assert "the database is away" in opened.told[0]
        server.start()
        assert await opened.uploader.drain(30) == 0
        assert len(opened.told) == 2
        assert "is back" in opened.told[1]
    assert await _stored(settings) == {"run-0", "run-1", "run-2"}


async def test_what_one_process_could_not_store_the_next_one_does_without_doubles(
    server: EmbeddedPostgres, tmp_path: Path
) -> None:
    settings = _settings(server)
    async with _uploading(settings, tmp_path) as opened:
        await opened.uploader.connect()
        await opened.put(0)
        await opened.uploader.drain(30)
        server.stop()
        await opened.put(1)
        assert await opened.uploader.drain(0.2) == 1
    server.start()
    async with _uploading(settings, tmp_path) as opened:
        assert opened.uploader.pending == 2
        await opened.uploader.connect()
        assert await opened.uploader.drain(30) == 0
    assert await _stored(settings) == {"run-0", "run-1"}


async def test_a_database_that_is_away_at_the_start_stops_nothing(
    server: EmbeddedPostgres, tmp_path: Path
) -> None:
    settings = _settings(server)
    server.stop()
    async with _uploading(settings, tmp_path) as opened:
        await opened.uploader.connect()
        await opened.put(0)
        server.start()
        assert await opened.uploader.drain(30) == 0
    assert ["away" in opened.told[0], "back" in opened.told[1]] == [True, True]


async def test_wrong_settings_are_an_error_at_the_start(
    server: EmbeddedPostgres, tmp_path: Path
) -> None:
    url = make_url(server.url).set(drivername="postgresql", database="no_such")
    settings = ArenaSettings(database_url=SecretStr(url.render_as_string(hide_password=False)))
    async with _uploading(settings, tmp_path) as opened:
        with pytest.raises(DatabaseError, match="no_such"):
            await opened.uploader.connect()


async def test_an_embedded_server_that_went_away_is_started_again(tmp_path: Path) -> None:
    directory = Path(tempfile.mkdtemp(prefix="arena-test-"))
    settings = ArenaSettings(database_url=None, data_dir=directory)
    try:
        async with _uploading(settings, tmp_path) as opened:
            await opened.uploader.connect()
            other = EmbeddedPostgres(directory)
            other.start()
            other.stop()  # the pid is this process's: the server is gone for both
            await opened.put(0)
            assert await opened.uploader.drain(30) == 0
    finally:
        shutil.rmtree(directory, ignore_errors=True)
