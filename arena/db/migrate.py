"""Bring a database's schema to this program's version."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncEngine

from arena.db.guard import Guard, guard
from arena.exceptions import DatabaseError

_LOCK = 0x41_52_45_4E_41
"""Key of the advisory lock; any number that all versions of this program share."""


async def migrate(engine: AsyncEngine) -> Guard:
    """Run the revisions that are missing, in one transaction and one process at a time, and
    see to it that the tables are guarded; how well they are.

    Raises DatabaseError when the schema is from a newer program, or from an older one and
    this login may not change it.
    """
    async with engine.begin() as connection:
        await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        await connection.run_sync(_upgrade)
        return await connection.run_sync(guard)


async def is_current(engine: AsyncEngine) -> bool:
    """Whether the schema is of this program's version. Driver errors pass through."""
    async with engine.connect() as connection:
        return await connection.run_sync(lambda found: _is_current(found, _config()))


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_scripts()).replace("%", "%%"))
    return config


def _is_current(connection: Connection, config: Config) -> bool:
    revision = MigrationContext.configure(connection).get_current_revision()
    return revision == ScriptDirectory.from_config(config).get_current_head()


def _upgrade(connection: Connection) -> None:
    config = _config()
    config.attributes["connection"] = connection
    # Asked first: a login that only adds rows may not touch alembic's table.
    if _is_current(connection, config):
        return
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise DatabaseError(
            f"the database's schema does not fit this program: {error}",
            remedy="update sn15-arena, or point ARENA_DATABASE_URL at another database",
        ) from error


def _scripts() -> Path:
    """Where the installed `migrations` package lies (this room may not import it)."""
    spec = find_spec("migrations")
    if spec is None or spec.origin is None:
        raise DatabaseError("the package `migrations` is not installed")
    return Path(spec.origin).parent
