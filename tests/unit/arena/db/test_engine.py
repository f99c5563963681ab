"""Opening databases, and saying why one cannot be opened."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.engine import make_url

from arena.db.engine import asyncpg_url, open_database
from arena.exceptions import DatabaseError, DatabaseUnreachableError, Fault
from arena.settings import ArenaSettings


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+asyncpg", "postgresql+psycopg"])
def test_any_spelling_of_a_postgres_address_is_taken(scheme: str) -> None:
    url = asyncpg_url(f"{scheme}://someone:secret@host:5433/arena")
    assert url.drivername == "postgresql+asyncpg"
    assert (url.host, url.port, url.database) == ("host", 5433, "arena")


@pytest.mark.parametrize("text", ["sqlite:///arena.db", "secret", "", "mysql://u:secret@h/d"])
def test_another_database_is_refused_without_showing_the_address(text: str) -> None:
    with pytest.raises(DatabaseError) as caught:
        asyncpg_url(text)
    assert caught.value.fault is Fault.CALLER
    assert "secret" not in str(caught.value)


async def test_a_server_that_is_down_is_unreachable_and_its_password_stays_hidden(
    tmp_path: Path,
) -> None:
    settings = ArenaSettings(
        database_url=SecretStr("postgresql://someone:hunter2@127.0.0.1:1/arena"),
        data_dir=tmp_path,
    )
    async with open_database(settings) as database:
        with pytest.raises(DatabaseUnreachableError) as caught:
            await database.ready()
    assert "hunter2" not in str(caught.value)


@pytest.mark.database
async def test_a_database_that_does_not_exist_is_the_callers_mistake(
    database_url: str, tmp_path: Path
) -> None:
    url = make_url(database_url).set(database="no_such").render_as_string(hide_password=False)
    settings = ArenaSettings(database_url=SecretStr(url), data_dir=tmp_path)
    async with open_database(settings) as database:
        with pytest.raises(DatabaseError, match="no_such") as caught:
            await database.ready()
    assert caught.value.fault is Fault.CALLER


async def test_trusted_connections_that_the_server_closed_are_replaced(
    database_url: str, tmp_path: Path
) -> None:
    settings = ArenaSettings(database_url=SecretStr(database_url), data_dir=tmp_path)
    ended = text(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    for trusted_s in (60.0, 1e-9):  # known closed at once; asked, since it was idle
        async with open_database(settings, trusted_s=trusted_s) as one:
            await one.ready()
            async with one.engine.connect() as connection:
                before = await connection.scalar(text("SELECT pg_backend_pid()"))
                raw = (await connection.get_raw_connection()).driver_connection
                assert raw is not None
            async with open_database(settings) as other, other.engine.connect() as connection:
                await connection.execute(ended)
            while trusted_s > 1 and not raw.is_closed():  # noqa: ASYNC110 - the news is on its way
                await asyncio.sleep(0.01)
            async with one.engine.connect() as connection:
                assert await connection.scalar(text("SELECT pg_backend_pid()")) != before
