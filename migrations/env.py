"""Alembic's entry: runs the revisions on the connection that `arena.db.migrate` hands over."""

from __future__ import annotations

from alembic import context

from arena.db.schema import metadata


def run() -> None:
    """Upgrade inside the caller's transaction, so that all revisions apply or none."""
    connection = context.config.attributes["connection"]
    context.configure(connection=connection, target_metadata=metadata)
    with context.begin_transaction():
        context.run_migrations()


run()
