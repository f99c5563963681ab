"""A queue on one database for all of these tests."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.ext.asyncio import create_async_engine

from arena.db.embedded import EmbeddedPostgres
from arena.db.engine import Database
from arena.settings import ArenaSettings
from tests.unit.arena.work.desk import Desk, application


@pytest.fixture(scope="session")
def work_url(postgres_server: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a migrated database for all tests of the queue, for asyncpg."""
    url = make_url(postgres_server.url).set(database=f"work_{uuid.uuid4().hex}")
    asyncio.run(_migrate(postgres_server, url, tmp_path_factory.mktemp("work")))
    return url.render_as_string(hide_password=False)


async def _migrate(server: EmbeddedPostgres, url: URL, directory: Path) -> None:
    engine = create_async_engine(server.url, isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        await connection.execute(text(f"CREATE DATABASE {url.database}"))
    await engine.dispose()
    address = url.set(drivername="postgresql").render_as_string(hide_password=False)
    database = Database(ArenaSettings(database_url=SecretStr(address), data_dir=directory))
    await database.ready()
    await database.close()


@pytest.fixture
async def desk(work_url: str) -> AsyncIterator[Desk]:
    """A queue with the application's rights, its clock, and what tests do with it.

    Nothing can be deleted from its tables: what a test leaves open is cancelled.
    """
    engine = application(work_url)
    desk = Desk(engine)
    yield desk
    await desk.clear()
    await engine.dispose()
