"""Races, their agents and problems, runs and records; all append-only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_APPEND_ONLY = ("races", "agent_sources", "race_agents", "race_problems", "records", "runs")


def _stored_at() -> sa.Column[object]:
    return sa.Column(
        "stored_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
    )


def upgrade() -> None:
    """Create the tables and what guards them."""
    _create_race_tables()
    _create_run_tables()
    _refuse_changes()


def downgrade() -> None:
    """Records are append-only: there is no way back but a backup."""
    raise NotImplementedError("records are append-only")


def _create_race_tables() -> None:
    op.create_table(
        "races",
        sa.Column("race_id", sa.Text, nullable=False),
        sa.Column("phase", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary, nullable=False),
        sa.Column("inputs", JSONB, nullable=False),
        _stored_at(),
        sa.PrimaryKeyConstraint("race_id", name="pk_races"),
    )
    op.create_table(
        "agent_sources",
        sa.Column("source_hash", sa.LargeBinary, nullable=False),
        sa.Column("source", sa.LargeBinary, nullable=False),
        _stored_at(),
        sa.PrimaryKeyConstraint("source_hash", name="pk_agent_sources"),
    )
    op.create_table(
        "race_agents",
        sa.Column("race_id", sa.Text, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("source_hash", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("race_id", "label", name="pk_race_agents"),
        sa.ForeignKeyConstraint(["race_id"], ["races.race_id"], name="fk_race_agents_race_id"),
        sa.ForeignKeyConstraint(
            ["source_hash"], ["agent_sources.source_hash"], name="fk_race_agents_source_hash"
        ),
    )
    op.create_table(
        "race_problems",
        sa.Column("race_id", sa.Text, nullable=False),
        sa.Column("problem_id", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("bucket", sa.Text, nullable=False),
        sa.Column("pool", sa.Text),
        sa.Column("cluster", sa.Text),
        sa.PrimaryKeyConstraint("race_id", "problem_id", name="pk_race_problems"),
        sa.ForeignKeyConstraint(["race_id"], ["races.race_id"], name="fk_race_problems_race_id"),
    )


def _create_run_tables() -> None:
    op.create_table(
        "records",
        sa.Column("record_hash", sa.LargeBinary, nullable=False),
        sa.Column("schema_version", sa.SmallInteger, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        _stored_at(),
        sa.PrimaryKeyConstraint("record_hash", name="pk_records"),
    )
    op.create_table(
        "runs",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("race_id", sa.Text, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("problem_id", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("closed", sa.Boolean, nullable=False),
        sa.Column("success", sa.Boolean),
        sa.Column("success_upstream", sa.Boolean),
        sa.Column("axis", sa.Text),
        sa.Column("failure_code", sa.Text),
        sa.Column("failure_fault", sa.Text),
        sa.Column("wall_s", sa.Double, nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("record_hash", sa.LargeBinary, nullable=False),
        _stored_at(),
        sa.PrimaryKeyConstraint("run_id", name="pk_runs"),
        sa.UniqueConstraint("record_hash", name="uq_runs_record_hash"),
        sa.ForeignKeyConstraint(
            ["record_hash"], ["records.record_hash"], name="fk_runs_record_hash"
        ),
        sa.ForeignKeyConstraint(
            ["race_id", "agent"],
            ["race_agents.race_id", "race_agents.label"],
            name="fk_runs_race_id_agent",
        ),
        sa.ForeignKeyConstraint(
            ["race_id", "problem_id"],
            ["race_problems.race_id", "race_problems.problem_id"],
            name="fk_runs_race_id_problem_id",
        ),
    )
    op.create_index("ix_runs_race_id_agent_problem_id", "runs", ["race_id", "agent", "problem_id"])


def _refuse_changes() -> None:
    """Guard every table with a trigger per statement.

    Per statement, so that one that matches no row is refused too; `ALWAYS`, so that a
    session in replica mode does not slip past. Who owns the database can still drop a
    trigger: signatures and hash chains are what shows that.
    """
    op.execute(
        """
        CREATE FUNCTION arena_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION '% on % refused: the table is append-only', TG_OP, TG_TABLE_NAME
                USING ERRCODE = 'restrict_violation';
        END
        $$
        """
    )
    for table in _APPEND_ONLY:
        op.execute(
            f"""
            CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
                FOR EACH STATEMENT EXECUTE FUNCTION arena_append_only()
            """
        )
        op.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only")
