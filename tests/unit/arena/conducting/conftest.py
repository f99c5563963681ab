"""Fixtures of the calendar's tests."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from arena.db.embedded import EmbeddedPostgres
from arena.db.engine import Database
from arena.settings import ArenaSettings
from tests.unit.arena.conducting.world import World


@pytest.fixture
def world(database: Database) -> World:
    """An arena on a database of its own, with the application's rights."""
    return World(database.engine)


@pytest.fixture
async def other_database(
    postgres_server: EmbeddedPostgres, tmp_path: Path
) -> AsyncIterator[Database]:
    """A second database, to compare with."""
    name = f"other_{uuid.uuid4().hex}"
    admin = create_async_engine(postgres_server.url, isolation_level="AUTOCOMMIT")
    async with admin.connect() as connection:
        await connection.execute(text(f"CREATE DATABASE {name}"))
    url = make_url(postgres_server.url).set(drivername="postgresql", database=name)
    address = SecretStr(url.render_as_string(hide_password=False))
    opened = Database(ArenaSettings(database_url=address, data_dir=tmp_path))
    await opened.ready()
    yield opened
    await opened.close()
    async with admin.connect() as connection:
        await connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    await admin.dispose()
