"""Model artefacts: files on their way to the arena, and those that it keeps."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0007"
branch_labels = None
depends_on = None


def _time(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def _stored_at() -> sa.Column[object]:
    return sa.Column(
        "stored_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
    )


def upgrade() -> None:
    """Create the tables, append-only."""
    op.create_table(
        "artefact_uploads",
        sa.Column("upload_id", sa.Uuid, nullable=False),
        sa.Column("hotkey", sa.Text, nullable=False),
        sa.Column("sha256", sa.LargeBinary, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("part_bytes", sa.Integer, nullable=False),
        _time("begun_at"),
        _stored_at(),
        sa.PrimaryKeyConstraint("upload_id", name="pk_artefact_uploads"),
    )
    op.create_index(
        "ix_artefact_uploads_hotkey_sha256_begun_at",
        "artefact_uploads",
        ["hotkey", "sha256", "begun_at"],
    )
    op.create_table(
        "artefact_files",
        sa.Column("sha256", sa.LargeBinary, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("part_bytes", sa.Integer, nullable=False),
        sa.Column("object_id", sa.Uuid, nullable=False),
        sa.Column("hotkey", sa.Text, nullable=False),
        _time("checked_at"),
        _stored_at(),
        sa.PrimaryKeyConstraint("sha256", name="pk_artefact_files"),
    )
    op.create_index("ix_artefact_files_hotkey", "artefact_files", ["hotkey"])
    for table in ("artefact_uploads", "artefact_files"):
        op.execute(
            f"""
            CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
                FOR EACH STATEMENT EXECUTE FUNCTION arena_append_only()
            """
        )
        op.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only")


def downgrade() -> None:
    """Records are append-only: there is no way back but a backup."""
    raise NotImplementedError("records are append-only")
