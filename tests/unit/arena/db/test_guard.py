"""The application's own role adds rows and reads them, and can do nothing else to them."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from arena.db.embedded import EmbeddedPostgres
from arena.db.engine import Database, open_database
from arena.db.guard import WRITER, Guard
from arena.db.schema import APPEND_ONLY, MUTABLE
from arena.exceptions import DatabaseError, Fault
from arena.settings import ArenaSettings

pytestmark = pytest.mark.database

CHANGES = (
    "UPDATE {table} SET {column} = {column}",
    "DELETE FROM {table}",
    "TRUNCATE {table} CASCADE",
    "ALTER TABLE {table} DISABLE TRIGGER append_only",
    "ALTER TABLE {table} DISABLE TRIGGER ALL",
    "DROP TRIGGER append_only ON {table}",
    "DROP TABLE {table} CASCADE",
    "ALTER TABLE {table} RENAME TO gone",
    "ALTER TABLE {table} ADD COLUMN more text",
    "CREATE RULE lost AS ON INSERT TO {table} DO INSTEAD NOTHING",
    "CREATE TRIGGER lost BEFORE INSERT ON {table} FOR EACH ROW"
    " EXECUTE FUNCTION arena_append_only()",
)
ELSE = (
    "SET session_replication_role = replica",
    "CREATE OR REPLACE FUNCTION arena_append_only() RETURNS trigger LANGUAGE plpgsql"
    " AS $$ BEGIN RETURN NULL; END $$",
    "DROP FUNCTION arena_append_only() CASCADE",
    "ALTER FUNCTION arena_append_only() RENAME TO gone",
    "DROP SCHEMA public CASCADE",
    "UPDATE alembic_version SET version_num = '0001'",
    "CREATE OR REPLACE VIEW race_scores AS SELECT 1",
    "CREATE ROLE more SUPERUSER",
    f"ALTER ROLE {WRITER} SUPERUSER",
)


class Server:
    """A server of this module's own, where roles can be made."""

    def __init__(self, url: str) -> None:
        self._url = make_url(url)

    async def execute(self, *statements: str) -> None:
        engine = create_async_engine(self._url, isolation_level="AUTOCOMMIT")
        async with engine.connect() as connection:
            for statement in statements:
                await connection.execute(text(statement))
        await engine.dispose()

    def address(self, database: str, login: str) -> SecretStr:
        url = self._url.set(drivername="postgresql", database=database, username=login)
        return SecretStr(url.render_as_string(hide_password=False))

    async def login(self, options: str = "") -> str:
        name = f"l_{uuid.uuid4().hex}"
        await self.execute(f"CREATE ROLE {name} LOGIN {options}")
        return name

    async def database(self, owner: str) -> str:
        name = f"d_{uuid.uuid4().hex}"
        await self.execute(f"CREATE DATABASE {name} OWNER {owner}")
        return name


@pytest.fixture
def directory() -> Iterator[Path]:
    """A data directory, on a path short enough for a socket."""
    directory = Path(tempfile.mkdtemp(prefix="arena-test-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    directory = Path(tempfile.mkdtemp(prefix="arena-test-"))
    embedded = EmbeddedPostgres(directory)
    embedded.start()
    yield Server(embedded.url)
    embedded.stop()
    shutil.rmtree(directory, ignore_errors=True)


@asynccontextmanager
async def _ready(
    url: SecretStr | None, directory: Path, owner: SecretStr | None = None
) -> AsyncIterator[Database]:
    settings = ArenaSettings(database_url=url, database_owner_url=owner, data_dir=directory)
    async with open_database(settings) as database:
        await database.ready()
        yield database


async def _refused(database: Database, *statements: str) -> None:
    """Each statement lacks the right to it, also after what might lead back to the owner."""
    async with database.engine.connect() as connection:
        for statement in statements:
            await connection.execute(text("RESET ROLE"))
            with pytest.raises(DBAPIError, match=r"permission denied|must be owner|denied to"):
                await connection.execute(text(statement))
            await connection.rollback()


async def _check(database: Database) -> None:
    for table in APPEND_ONLY:
        column = table.columns[0].name
        changes = [change.format(table=table.name, column=column) for change in CHANGES]
        await _refused(database, *changes)
    for table, allowed in MUTABLE.items():
        fixed = set(table.columns.keys()) - set(allowed.columns)
        updates = [f'UPDATE {table.name} SET "{column}" = DEFAULT' for column in sorted(fixed)]
        changes = [
            c.format(table=table.name, column="")
            for c in CHANGES
            if "DROP TRIGGER" not in c and "DISABLE TRIGGER app" not in c
        ]
        await _refused(database, *updates, *changes[1 + allowed.delete :])
    await _refused(database, *ELSE)


async def test_an_embedded_database_gives_the_application_a_login_that_owns_nothing(
    directory: Path,
) -> None:
    async with _ready(None, directory) as database:
        assert database.guard is Guard.LOGIN
        await _check(database)
        await _refused(database, "SET ROLE postgres", "SET SESSION AUTHORIZATION postgres")


async def test_a_given_database_is_worked_in_without_the_owners_rights(
    server: Server, directory: Path
) -> None:
    login = await server.login("CREATEROLE")
    name = await server.database(login)
    async with _ready(server.address(name, login), directory) as database:
        assert database.guard is Guard.ROLE
        await _check(database)


async def test_an_administrators_login_is_given_up_too(server: Server, directory: Path) -> None:
    name = await server.database("postgres")
    async with _ready(server.address(name, "postgres"), directory) as database:
        assert database.guard is Guard.ROLE
        await _check(database)


async def test_a_login_of_its_own_beside_the_owners_is_the_hard_separation(
    server: Server, directory: Path
) -> None:
    owner, login = await server.login("CREATEROLE"), await server.login()
    name = await server.database(owner)
    urls = server.address(name, login), server.address(name, owner)
    async with _ready(urls[1], directory):
        pass
    with pytest.raises(DatabaseError, match="permission denied") as caught:
        async with _ready(urls[0], directory):
            pass
    assert caught.value.fault is Fault.CALLER
    assert f"GRANT {WRITER} TO" in (caught.value.remedy or "")
    await server.execute(f"GRANT {WRITER} TO {login}")
    for given in (urls[1], None):  # with the owner's address, and without once it migrated
        async with _ready(urls[0], directory, given) as database:
            assert database.guard is Guard.LOGIN
            await _check(database)
            await _refused(database, f"SET ROLE {owner}", "SET ROLE postgres")


async def test_a_login_that_may_not_make_roles_still_works_and_says_that_it_is_weaker(
    server: Server, directory: Path
) -> None:
    login = await server.login()
    name = await server.database(login)
    async with _ready(server.address(name, login), directory) as database:
        assert database.guard is Guard.TRIGGERS
        assert "only triggers" in database.guard.sentence
        async with database.engine.connect() as connection:
            with pytest.raises(DBAPIError, match="the table is append-only"):
                await connection.execute(text("DELETE FROM seals"))


async def test_a_schema_that_a_login_may_not_change_is_the_callers_to_mend(
    server: Server, directory: Path
) -> None:
    login = await server.login()
    name = await server.database("postgres")
    with pytest.raises(DatabaseError, match="permission denied") as caught:
        async with _ready(server.address(name, login), directory):
            pass
    assert caught.value.fault is Fault.CALLER


async def test_rights_that_someone_added_are_taken_back(server: Server, directory: Path) -> None:
    name = await server.database("postgres")
    async with _ready(server.address(name, "postgres"), directory) as database:
        async with database.owner.begin() as connection:
            await connection.execute(text(f"GRANT UPDATE, TRUNCATE ON seals TO {WRITER}"))
            await connection.execute(text(f"GRANT UPDATE (size) ON records TO {WRITER}"))
            await connection.execute(text(f"GRANT UPDATE ON evaluations TO {WRITER}"))
        await database.ready()
        await _refused(database, "UPDATE seals SET kind = kind", "TRUNCATE seals")
        await _refused(database, "UPDATE records SET size = size")
        await _refused(database, "UPDATE evaluations SET needed = needed")


async def test_the_role_reads_and_adds_to_every_table(database: Database) -> None:
    query = text(
        "SELECT array_agg(privilege_type ORDER BY privilege_type) FROM"
        " information_schema.role_table_grants WHERE grantee = :role AND table_name = :table"
    )
    for table in (*APPEND_ONLY, *MUTABLE):
        deletes = table in MUTABLE and MUTABLE[table].delete
        async with database.engine.connect() as connection:
            await connection.execute(table.select())
            granted = await connection.scalar(query, {"role": WRITER, "table": table.name})
        assert granted == ["DELETE"] * deletes + ["INSERT", "SELECT"], table.name


async def test_the_role_updates_the_columns_that_may_change_and_no_others(
    database: Database,
) -> None:
    query = text(
        "SELECT column_name FROM information_schema.column_privileges"
        " WHERE grantee = :role AND table_name = :table AND privilege_type = 'UPDATE'"
    )
    async with database.engine.connect() as connection:
        for table in (*APPEND_ONLY, *MUTABLE):
            columns = MUTABLE[table].columns if table in MUTABLE else ()
            granted = await connection.scalars(query, {"role": WRITER, "table": table.name})
            assert sorted(granted) == sorted(columns), table.name
