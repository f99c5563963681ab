"""The log of seals, its heads and their commitments; append-only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def _stored_at() -> sa.Column[object]:
    return sa.Column(
        "stored_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
    )


def upgrade() -> None:
    """Create the tables and what guards them."""
    op.create_table(
        "log_heads",
        sa.Column("day", sa.Date, nullable=False),
        sa.Column("head_hash", sa.LargeBinary, nullable=False),
        sa.Column("previous", sa.LargeBinary),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("root", sa.LargeBinary, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("signature", sa.LargeBinary, nullable=False),
        sa.Column("consistency", sa.LargeBinary, nullable=False),
        sa.Column("subtrees", sa.LargeBinary, nullable=False),
        _stored_at(),
        sa.PrimaryKeyConstraint("day", name="pk_log_heads"),
        sa.UniqueConstraint("head_hash", name="uq_log_heads_head_hash"),
        # One head after each, and one first: two would be two logs.
        sa.UniqueConstraint(
            "previous", name="uq_log_heads_previous", postgresql_nulls_not_distinct=True
        ),
    )
    op.create_table(
        "log_entries",
        sa.Column("index", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("seal_hash", sa.LargeBinary, nullable=False),
        sa.Column("leaf_hash", sa.LargeBinary, nullable=False),
        _stored_at(),
        sa.PrimaryKeyConstraint("index", name="pk_log_entries"),
        sa.UniqueConstraint("seal_hash", name="uq_log_entries_seal_hash"),
        sa.ForeignKeyConstraint(
            ["seal_hash"], ["seals.seal_hash"], name="fk_log_entries_seal_hash"
        ),
    )
    op.create_table(
        "head_commitments",
        sa.Column("head_hash", sa.LargeBinary, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("block", sa.BigInteger, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        _stored_at(),
        sa.PrimaryKeyConstraint("head_hash", "address", "block", name="pk_head_commitments"),
        sa.ForeignKeyConstraint(
            ["head_hash"], ["log_heads.head_hash"], name="fk_head_commitments_head_hash"
        ),
    )
    for table in ("log_heads", "log_entries", "head_commitments"):
        op.execute(
            f"""
            CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
                FOR EACH STATEMENT EXECUTE FUNCTION arena_append_only()
            """
        )
        op.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only")


def downgrade() -> None:
    """The log is append-only: there is no way back but a backup."""
    raise NotImplementedError("the log is append-only")
