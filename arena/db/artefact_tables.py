"""The tables of model artefacts. Append-only, like nearly all (`arena/db/schema.py`)."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    Uuid,
)

from arena.db.declaring import metadata, stored_at

artefact_uploads = Table(
    "artefact_uploads",
    metadata,
    Column("upload_id", Uuid, primary_key=True),
    Column("hotkey", Text, nullable=False),
    Column("sha256", LargeBinary, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("part_bytes", Integer, nullable=False),
    Column("begun_at", DateTime(timezone=True), nullable=False),
    stored_at(),
    Index(None, "hotkey", "sha256", "begun_at"),
)
"""A hotkey's file on its way. Until it is stored, or a day has gone, it takes of the quota."""

artefact_files = Table(
    "artefact_files",
    metadata,
    Column("sha256", LargeBinary, primary_key=True),
    Column("bytes", BigInteger, nullable=False),
    Column("part_bytes", Integer, nullable=False),
    Column("object_id", Uuid, nullable=False),
    Column("hotkey", Text, nullable=False, index=True),
    Column("checked_at", DateTime(timezone=True), nullable=False),
    stored_at(),
)
"""Files that the arena keeps, by the SHA-256 that it computed itself. Their parts are the
objects `artefacts/<object_id>/<number>`, which no link allows to write. `hotkey` sent it first."""
