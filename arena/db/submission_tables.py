"""The tables of submissions: agents, their versions, refusals, and credentials under seal.

Agents, versions and refusals are append-only. Credentials are not: who takes one back must
find it gone. They stand here sealed (`arena/secrets.py`); the keys are not in the database.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
)

from arena.db.declaring import metadata, stored_at

agents = Table(
    "agents",
    metadata,
    Column("agent_id", Uuid, primary_key=True),
    Column("hotkey", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    stored_at(),
    UniqueConstraint("hotkey", "name"),
)
"""Agents: a hotkey's names. What races is a version."""

agent_versions = Table(
    "agent_versions",
    metadata,
    Column("version_id", Uuid, primary_key=True),
    Column("agent_id", Uuid, ForeignKey("agents.agent_id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("source_hash", LargeBinary, ForeignKey("agent_sources.source_hash"), nullable=False),
    Column("season_entry", BigInteger, nullable=False),
    Column("submitted_at", DateTime(timezone=True), nullable=False),
    Column("artefact", LargeBinary),
    Column("fingerprint", LargeBinary, nullable=False),
    stored_at(),
    UniqueConstraint("agent_id", "number"),
    UniqueConstraint("season_entry"),
)
"""Admitted files, each with its entry in the journal's stream `season`, in one transaction.
That entry's number is the order of submission for everybody: whoever sees one sees all before
it. `artefact` is the canonical JSON of a manifest, `fingerprint` zstandard over the JSON of
what the index of copies is rebuilt from."""

refused_submissions = Table(
    "refused_submissions",
    metadata,
    Column("hotkey", Text, nullable=False),
    Column("refusal", BigInteger, Identity(always=True), primary_key=True),
    Column("name", Text, nullable=False),
    Column("source_hash", LargeBinary, nullable=False),
    Column("size", Integer, nullable=False),
    Column("code", Text, nullable=False),
    Column("findings", LargeBinary, nullable=False),
    Column("refused_at", DateTime(timezone=True), nullable=False),
    stored_at(),
    Index(None, "hotkey", "refused_at"),
)
"""Files that the gate refused, by hash and size, and all that it found: zstandard over JSON.
Not all of it was told to the submitter (`arena/submissions/refusals.py`)."""

inference_credentials = Table(
    "inference_credentials",
    metadata,
    Column("hotkey", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False),
    Column("chosen_at", DateTime(timezone=True), nullable=False),
    PrimaryKeyConstraint("hotkey", "provider"),
)
"""What miners pay model providers with, sealed. The one chosen last is a hotkey's default."""
