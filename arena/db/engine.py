"""Open the database: given by address, or embedded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import NullPool, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from arena.db.embedded import EmbeddedPostgres
from arena.db.guard import LOGIN, WRITER, Guard, create_login, guard
from arena.db.migrate import migrate
from arena.exceptions import ArenaError, DatabaseError, DatabaseUnreachableError, Fault
from arena.settings import ArenaSettings

_REFUSALS = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
)
"""Answers that waiting will not change: wrong password, no such database."""

_AWAY = (
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InterfaceError,
)
"""Failures that pass: the server is down, starting, stopping or full."""


class Database:
    """An engine and, when embedded, the server behind it.

    `engine` is what the application works with: it adds rows and reads them. `owner` owns
    the tables and migrates them, and does nothing else. `ready()` makes it answer: starts
    the embedded server if it must, and migrates. It is called again after an outage.
    """

    def __init__(self, settings: ArenaSettings, *, trusted_s: float = 0.0) -> None:
        """`trusted_s`: how long after its last use a connection is taken without asking the
        server whether it lives, which takes three round trips. One that the server closed
        meanwhile is noticed all the same; a request may meet one that it lost silently."""
        self._embedded: EmbeddedPostgres | None = None
        if settings.database_url is None:
            self._embedded = EmbeddedPostgres(settings.data_dir)
            owner = make_url(self._embedded.url)
            url = owner.set(username=LOGIN)
        else:
            owner = url = asyncpg_url(settings.database_url.get_secret_value())
            if settings.database_owner_url is not None:
                owner = asyncpg_url(settings.database_owner_url.get_secret_value())
        timeout = settings.database_timeout_seconds
        connect_args = {"timeout": timeout, "command_timeout": timeout}
        self.owner: AsyncEngine = create_async_engine(
            owner, poolclass=NullPool, connect_args=connect_args
        )
        self.engine: AsyncEngine = create_async_engine(
            url,
            # As many in all as by default, but more of them kept: to connect costs Postgres a
            # process and SQLAlchemy several questions, more than what is then asked.
            pool_size=12,
            max_overflow=3,
            pool_pre_ping=not trusted_s,
            pool_timeout=timeout,
            connect_args=connect_args,
        )
        if trusted_s:
            _ask_after(self.engine, trusted_s)
        event.listen(self.engine.sync_engine, "do_connect", self._give_rights_up)
        self._separate = owner != url
        self.guard: Guard | None = None
        """How records are guarded against this program; None until it is `ready`."""

    @property
    def where(self) -> str:
        """The database's address for people, without its password."""
        if self._embedded is not None:
            return f"embedded Postgres in {self._embedded.cluster}"
        return self.engine.url.render_as_string(hide_password=True)

    async def ready(self) -> None:
        """Raises DatabaseUnreachableError or DatabaseError."""
        if self._embedded is not None:
            await asyncio.to_thread(self._embedded.start)
        try:
            await self._migrate()
        except (SQLAlchemyError, OSError, TimeoutError, asyncpg.PostgresError) as error:
            raise database_error(error, self.where) from error

    async def _migrate(self) -> None:
        found = await migrate(self.owner)
        if self._embedded is not None:
            async with self.owner.begin() as connection:
                await connection.run_sync(create_login)
        if self._separate:
            # What holds is what the application's own login may do.
            async with self.engine.connect() as connection:
                found = await connection.run_sync(guard)
        if found is not self.guard:
            await self.engine.dispose()  # those connections were made before it was known
        self.guard = found

    def _give_rights_up(self, _dialect: Any, _record: Any, _args: Any, options: Any) -> None:
        """Before every new connection: `RESET ROLE` leads back to this role, too."""
        if self.guard is Guard.ROLE:
            options["server_settings"] = {"role": WRITER}

    async def close(self) -> None:
        """Close the connections; stop the embedded server if nobody else uses it."""
        await self.engine.dispose()
        await self.owner.dispose()
        if self._embedded is not None:
            await asyncio.to_thread(self._embedded.stop)


@asynccontextmanager
async def open_database(
    settings: ArenaSettings, *, trusted_s: float = 0.0
) -> AsyncIterator[Database]:
    """A database, closed at the end. It answers only after `ready()`."""
    database = Database(settings, trusted_s=trusted_s)
    try:
        yield database
    finally:
        await database.close()


def _ask_after(engine: AsyncEngine, seconds: float) -> None:
    """Ask a pooled connection whether it lives only when it was idle for so long."""

    @event.listens_for(engine.sync_engine, "checkin")
    def used(_connection: Any, record: Any) -> None:
        record.info["used"] = time.monotonic()

    @event.listens_for(engine.sync_engine, "checkout")
    def taken(connection: Any, record: Any, _proxy: Any) -> None:
        last = record.info.get("used")
        if last is None:  # made this moment
            return
        if record.driver_connection.is_closed():
            raise DisconnectionError("the server closed it")
        if time.monotonic() - last > seconds:
            try:
                engine.dialect.do_ping(connection)
            except engine.dialect.loaded_dbapi.Error as error:
                raise DisconnectionError("the server does not answer on it") from error


def asyncpg_url(text: str) -> URL:
    """The address for SQLAlchemy, whichever way its scheme is spelt.

    Raises DatabaseError (the caller's) when it is not a Postgres address; the text
    itself is not shown, since it may hold a password.
    """
    try:
        url = make_url(text)
    except ArgumentError:
        url = None
    if url is None or url.get_backend_name() not in ("postgresql", "postgres"):
        raise DatabaseError(
            "ARENA_DATABASE_URL is not the address of a Postgres database",
            fault=Fault.CALLER,
            remedy="it looks like postgresql://user:password@host:5432/name",
        )
    return url.set(drivername="postgresql+asyncpg")


def database_error(error: BaseException, where: str) -> ArenaError:
    """Say what a driver's exception means: away for now, or refused for good."""
    cause = _cause(error)
    detail = " ".join(str(cause).split()) or type(cause).__name__
    if isinstance(cause, asyncpg.InsufficientPrivilegeError):
        return DatabaseError(
            f"{where}: {detail}",
            fault=Fault.CALLER,
            remedy=f"let the owner of the tables run: GRANT {WRITER} TO <login>; to bring an"
            " older schema up to date, set ARENA_DATABASE_OWNER_URL to the owner's address",
        )
    if isinstance(cause, _REFUSALS):
        return DatabaseError(
            f"{where}: {detail}", fault=Fault.CALLER, remedy="check ARENA_DATABASE_URL"
        )
    if is_away(error):
        return DatabaseUnreachableError(f"{where} does not answer: {detail}")
    return DatabaseError(f"{where}: {detail}")


def is_away(error: BaseException) -> bool:
    """Whether a driver's exception says that the server is away, and waiting may help."""
    return isinstance(_cause(error), (OSError, TimeoutError, *_AWAY))


def _cause(error: BaseException) -> BaseException:
    """The driver's own exception under SQLAlchemy's wrappers."""
    seen: BaseException = error
    while isinstance(seen, DBAPIError) or type(seen).__module__.startswith("sqlalchemy"):
        inner = getattr(seen, "orig", None) or seen.__cause__
        if inner is None:
            break
        seen = inner
    return seen
