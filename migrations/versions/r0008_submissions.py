"""Submissions: agents, their versions, refused files, credentials under seal."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0011"
branch_labels = None
depends_on = None


def _time(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def _stored_at() -> sa.Column[object]:
    return sa.Column(
        "stored_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
    )


def upgrade() -> None:
    """Create the tables. All but credentials are append-only: those can be taken back."""
    _agents()
    op.create_table(
        "refused_submissions",
        sa.Column("hotkey", sa.Text, nullable=False),
        sa.Column("refusal", sa.BigInteger, sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("source_hash", sa.LargeBinary, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("code", sa.Text, nullable=False),
        sa.Column("findings", sa.LargeBinary, nullable=False),
        _time("refused_at"),
        _stored_at(),
        sa.PrimaryKeyConstraint("refusal", name="pk_refused_submissions"),
    )
    op.create_index(
        "ix_refused_submissions_hotkey_refused_at", "refused_submissions", ["hotkey", "refused_at"]
    )
    op.create_table(
        "inference_credentials",
        sa.Column("hotkey", sa.Text, nullable=False),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        _time("updated_at"),
        _time("chosen_at"),
        sa.PrimaryKeyConstraint("hotkey", "provider", name="pk_inference_credentials"),
    )
    for table in ("agents", "agent_versions", "refused_submissions"):
        op.execute(
            f"""
            CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
                FOR EACH STATEMENT EXECUTE FUNCTION arena_append_only()
            """
        )
        op.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only")


def _agents() -> None:
    op.create_table(
        "agents",
        sa.Column("agent_id", sa.Uuid, nullable=False),
        sa.Column("hotkey", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        _time("created_at"),
        _stored_at(),
        sa.PrimaryKeyConstraint("agent_id", name="pk_agents"),
        sa.UniqueConstraint("hotkey", "name", name="uq_agents_hotkey_name"),
    )
    op.create_table(
        "agent_versions",
        sa.Column("version_id", sa.Uuid, nullable=False),
        sa.Column("agent_id", sa.Uuid, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("source_hash", sa.LargeBinary, nullable=False),
        sa.Column("season_entry", sa.BigInteger, nullable=False),
        _time("submitted_at"),
        sa.Column("artefact", sa.LargeBinary),
        sa.Column("fingerprint", sa.LargeBinary, nullable=False),
        _stored_at(),
        sa.PrimaryKeyConstraint("version_id", name="pk_agent_versions"),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agents.agent_id"], name="fk_agent_versions_agent_id"
        ),
        sa.ForeignKeyConstraint(
            ["source_hash"], ["agent_sources.source_hash"], name="fk_agent_versions_source_hash"
        ),
        sa.UniqueConstraint("agent_id", "number", name="uq_agent_versions_agent_id_number"),
        sa.UniqueConstraint("season_entry", name="uq_agent_versions_season_entry"),
    )


def downgrade() -> None:
    """Records are append-only: there is no way back but a backup."""
    raise NotImplementedError("records are append-only")
