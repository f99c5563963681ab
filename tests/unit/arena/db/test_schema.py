"""The database refuses changes, and migrations give what the code declares."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from arena.db.engine import Database
from arena.db.migrate import migrate
from arena.db.schema import APPEND_ONLY, MUTABLE, metadata
from arena.exceptions import DatabaseError

pytestmark = pytest.mark.database


async def test_migrations_create_exactly_the_declared_tables(database: Database) -> None:
    def difference(connection: Connection) -> list[Any]:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        return list(compare_metadata(context, metadata))

    async with database.owner.connect() as connection:
        assert await connection.run_sync(difference) == []


def test_every_table_is_append_only_or_says_what_may_change() -> None:
    assert {*APPEND_ONLY, *MUTABLE} == set(metadata.sorted_tables)
    assert not set(APPEND_ONLY) & set(MUTABLE)
    for table, changes in MUTABLE.items():
        assert set(changes.columns) <= set(table.columns.keys())
        assert not set(changes.columns) & set(table.primary_key.columns.keys())


@pytest.mark.parametrize("role", ["origin", "replica"])
async def test_not_even_the_owner_changes_deletes_or_truncates_by_accident(
    database: Database, role: str
) -> None:
    statements = ("UPDATE {0} SET {1} = {1}", "DELETE FROM {0}", "TRUNCATE {0} CASCADE")
    async with database.owner.connect() as connection:
        for table in APPEND_ONLY:
            for statement in statements:
                await connection.execute(text(f"SET session_replication_role = {role}"))
                with pytest.raises(DBAPIError, match="the table is append-only"):
                    await connection.execute(
                        text(statement.format(table.name, table.columns[0].name))
                    )
                await connection.rollback()


async def test_processes_that_start_at_once_migrate_once(database: Database) -> None:
    async with database.owner.begin() as connection:
        await connection.execute(text("DROP SCHEMA public CASCADE"))
        await connection.execute(text("CREATE SCHEMA public"))
    await asyncio.gather(*(migrate(database.owner) for _ in range(4)))
    async with database.owner.connect() as connection:
        assert await connection.scalar(text("SELECT count(*) FROM alembic_version")) == 1


async def test_a_schema_from_a_newer_program_is_refused(database: Database) -> None:
    async with database.owner.begin() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(DatabaseError, match="does not fit this program"):
        await database.ready()
