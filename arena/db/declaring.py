"""What modules that declare tables share: the metadata, and columns that every table has."""

from __future__ import annotations

from sqlalchemy import Column, DateTime, MetaData, func

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def stored_at() -> Column[object]:
    """When a row was added, by the database's clock."""
    return Column("stored_at", DateTime(timezone=True), nullable=False, server_default=func.now())
