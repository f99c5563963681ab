"""The tables of the calendar's driver. Append-only, like nearly all (`arena/db/schema.py`)."""

from __future__ import annotations

from sqlalchemy import Column, LargeBinary, Table, Text

from arena.db.declaring import metadata, stored_at

race_secrets = Table(
    "race_secrets",
    metadata,
    Column("race_id", Text, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    stored_at(),
)
"""What a race is committed to before its draw: its secret and its listing's key, sealed by keys
that are not in the database. Stored before the race opens, and never another for it."""
