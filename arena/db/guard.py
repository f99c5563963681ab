"""Who may do what: the application adds rows and reads them, and owns nothing.

Triggers refuse to change or delete a row, but who owns a table can switch its triggers off.
So the application works as a role that owns nothing and has INSERT and SELECT alone; only
migrations run as the owner. In the few tables that `schema.MUTABLE` names it may also update
the columns named there. What the role may do is set after every migration, for every table.
"""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from arena.db.schema import APPEND_ONLY, MUTABLE
from arena.exceptions import DatabaseError, Fault

WRITER = "arena_writer"
"""The role with the application's rights. It cannot log in; logins are its members."""
LOGIN = "arena_app"
"""The member that the application logs in as where we run the server."""
_VIEWS = ("race_scores", "alembic_version")
_TABLES = (*APPEND_ONLY, *MUTABLE)


class Guard(StrEnum):
    """How the append-only tables are guarded against the application itself."""

    LOGIN = "login"
    """Its login owns nothing: it has no way to change or delete a row."""
    ROLE = "role"
    """Its connections give the owner's rights up; its login could take them back."""
    TRIGGERS = "triggers"
    """It works as the owner, since the login may not create the role: triggers only."""

    @property
    def sentence(self) -> str:
        """For people: what holds, and how to make it stronger."""
        if self is Guard.LOGIN:
            return "the login only adds and reads rows"
        if self is Guard.ROLE:
            return (
                f"connections work as {WRITER}, which only adds and reads rows; a login of its"
                " own would be safer (ARENA_DATABASE_OWNER_URL)"
            )
        return (
            f"the login owns the tables and may not work as {WRITER}: only triggers keep"
            f" records from change. Let an administrator run: CREATE ROLE {WRITER};"
            f" GRANT {WRITER} TO <login> WITH ADMIN OPTION"
        )


def guard(connection: Connection) -> Guard:
    """Give the application's role its rights, where this login may; how strong the guard is.

    Raises DatabaseError when this login neither owns the tables nor may add rows to them.
    """
    if not _owns(connection):
        return _check_login(connection)
    if not _exists(connection, WRITER) and not _try(connection, f"CREATE ROLE {WRITER} NOLOGIN"):
        return Guard.TRIGGERS
    _grant(connection)
    if _may_become(connection):
        return Guard.ROLE
    granted = _try(connection, f"GRANT {WRITER} TO CURRENT_USER")
    return Guard.ROLE if granted and _may_become(connection) else Guard.TRIGGERS


def create_login(connection: Connection) -> None:
    """Make the application's own login, which needs no password: for a server of our own."""
    if not _exists(connection, LOGIN):
        connection.execute(text(f"CREATE ROLE {LOGIN} LOGIN IN ROLE {WRITER}"))


def _owns(connection: Connection) -> bool:
    """Whether this login can act as the owner of any of the tables."""
    query = text(
        "SELECT bool_or(pg_has_role(current_user, relowner, 'MEMBER')) FROM pg_class"
        " WHERE oid = ANY(SELECT to_regclass(name) FROM unnest(CAST(:names AS text[])) AS name)"
    )
    return bool(connection.scalar(query, {"names": [table.name for table in _TABLES]}))


def _check_login(connection: Connection) -> Guard:
    for table in _TABLES:
        query = text("SELECT has_table_privilege(:table, 'INSERT') AND"
                     " has_table_privilege(:table, 'SELECT')")  # fmt: skip
        if not connection.scalar(query, {"table": table.name}):
            raise DatabaseError(
                f"the login may not add rows to {table.name}",
                fault=Fault.CALLER,
                remedy=f"let the owner run: GRANT {WRITER} TO <login>",
            )
    return Guard.LOGIN


def _grant(connection: Connection) -> None:
    """INSERT and SELECT on the tables, SELECT on what is read besides, what `MUTABLE` names,
    and nothing else."""
    for table in _TABLES:
        changes = MUTABLE.get(table)
        delete = {"DELETE"} if changes is not None and changes.delete else set()
        _set_rights(connection, table.name, {"INSERT", "SELECT", *delete})
        columns = set() if changes is None else set(changes.columns)
        _set_column_rights(connection, table.name, columns)
    for name in _VIEWS:
        _set_rights(connection, name, {"SELECT"})


def _set_rights(connection: Connection, name: str, rights: set[str]) -> None:
    # Only what differs: a GRANT that changes nothing still writes the catalogue.
    query = text(
        "SELECT privilege_type FROM pg_class, aclexplode(relacl)"
        " WHERE oid = to_regclass(:name) AND grantee = CAST(:role AS regrole)"
    )
    have = set(connection.scalars(query, {"name": name, "role": WRITER}))
    if excess := have - rights:
        connection.execute(text(f"REVOKE {', '.join(sorted(excess))} ON {name} FROM {WRITER}"))
    if missing := rights - have:
        connection.execute(text(f"GRANT {', '.join(sorted(missing))} ON {name} TO {WRITER}"))


def _set_column_rights(connection: Connection, name: str, updated: set[str]) -> None:
    """UPDATE on these columns, and no right on a column besides."""
    query = text(
        "SELECT attname, privilege_type FROM pg_attribute, aclexplode(attacl)"
        " WHERE attrelid = to_regclass(:name) AND grantee = CAST(:role AS regrole)"
    )
    have = {(row[0], row[1]) for row in connection.execute(query, {"name": name, "role": WRITER})}
    rights = {(column, "UPDATE") for column in updated}
    for column, right in sorted(have - rights):
        connection.execute(text(f'REVOKE {right} ("{column}") ON {name} FROM {WRITER}'))
    for column, right in sorted(rights - have):
        connection.execute(text(f'GRANT {right} ("{column}") ON {name} TO {WRITER}'))


def _exists(connection: Connection, role: str) -> bool:
    query = text("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = :role)")
    return bool(connection.scalar(query, {"role": role}))


def _may_become(connection: Connection) -> bool:
    """Whether connections of this login can work as the role."""
    try:
        with connection.begin_nested() as savepoint:
            connection.execute(text(f"SET LOCAL ROLE {WRITER}"))
            savepoint.rollback()
    except DBAPIError:
        return False
    return True


def _try(connection: Connection, statement: str) -> bool:
    """Run a statement that this login may not be allowed; whether it was.

    Roles belong to all databases of a server: another one may have made it this moment.
    """
    try:
        with connection.begin_nested():
            connection.execute(text(statement))
    except DBAPIError as error:
        return getattr(error.orig, "sqlstate", None) in _EXISTS_ALREADY
    return True


_EXISTS_ALREADY = ("42710", "23505")
"""SQLSTATE of duplicate_object, and of unique_violation when two come at once."""
