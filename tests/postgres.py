"""A real Postgres for tests: one embedded server a session, a fresh database a test."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import select, text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from arena.db import schema
from arena.db.embedded import EmbeddedPostgres
from arena.db.engine import Database
from arena.settings import ArenaSettings


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[EmbeddedPostgres]:
    """The session's server. Tests that stop a server start one of their own."""
    # Short, and enterable for the database's user: a socket's path must fit 108 bytes.
    directory = Path(tempfile.mkdtemp(prefix="arena-test-"))
    server = EmbeddedPostgres(directory)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
async def database_url(postgres_server: EmbeddedPostgres) -> AsyncIterator[str]:
    """The address of an empty database of this test's own, as an operator would give it."""
    name = f"t_{uuid.uuid4().hex}"
    engine = create_async_engine(postgres_server.url, isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        await connection.execute(text(f"CREATE DATABASE {name}"))
    yield (
        make_url(postgres_server.url)
        .set(drivername="postgresql", database=name)
        .render_as_string(hide_password=False)
    )
    async with engine.connect() as connection:
        await connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    await engine.dispose()


@pytest.fixture
async def database(database_url: str, tmp_path: Path) -> AsyncIterator[Database]:
    """That database, migrated."""
    opened = Database(ArenaSettings(database_url=SecretStr(database_url), data_dir=tmp_path))
    await opened.ready()
    yield opened
    await opened.close()


async def sources(database: Database) -> frozenset[str]:
    """The hashes of all agents' sources that a database has."""
    async with database.engine.connect() as connection:
        found = await connection.scalars(select(schema.agent_sources.c.source_hash))
        return frozenset(digest.hex() for digest in found)
