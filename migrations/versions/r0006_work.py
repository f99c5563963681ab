"""The queue of evaluations: what is wanted, validators' turns, what counts, what happened."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)


def _stored_at() -> sa.Column[object]:
    return sa.Column("stored_at", _TIME, nullable=False, server_default=sa.func.now())


def upgrade() -> None:
    """Create the tables and what guards them."""
    _create_evaluations()
    _create_runs()
    _create_progress()
    _create_counted_records()
    _create_history()
    _guard_append_only("counted_records", "work_history")
    _guard_mutable()


def downgrade() -> None:
    """What counted and what happened is append-only: there is no way back but a backup."""
    raise NotImplementedError("the work's history is append-only")


def _create_evaluations() -> None:
    op.create_table(
        "evaluations",
        sa.Column("evaluation_id", sa.Uuid, nullable=False),
        sa.Column("version", sa.Uuid, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("season_race", sa.Text),
        sa.Column("problems", ARRAY(sa.Text), nullable=False),
        sa.Column("needed", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("taken", sa.Integer, nullable=False),
        sa.Column("finished", sa.Integer, nullable=False),
        sa.Column("opened_at", _TIME, nullable=False),
        sa.Column("ended_at", _TIME),
        sa.PrimaryKeyConstraint("evaluation_id", name="pk_evaluations"),
        sa.UniqueConstraint(
            "version",
            "kind",
            "season_race",
            name="uq_evaluations_version_kind_season_race",
            postgresql_nulls_not_distinct=True,
        ),
        sa.CheckConstraint("kind IN ('qualifying', 'race')", name="kind_known"),
        sa.CheckConstraint("state IN ('OPEN', 'CLOSED', 'CANCELLED')", name="state_known"),
        # Never more validators than are needed, whatever the program does.
        sa.CheckConstraint(
            "needed > 0 AND 0 <= finished AND finished <= taken AND taken <= needed", name="seats"
        ),
    )
    op.create_index(
        "ix_evaluations_wanted",
        "evaluations",
        ["opened_at", "evaluation_id"],
        postgresql_where=sa.text("state = 'OPEN' AND taken < needed"),
    )


def _create_runs() -> None:
    op.create_table(
        "evaluation_runs",
        sa.Column("run_id", sa.Uuid, nullable=False),
        sa.Column("evaluation_id", sa.Uuid, nullable=False),
        sa.Column("validator", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("lease", sa.Interval, nullable=False),
        sa.Column("claimed_at", _TIME, nullable=False),
        sa.Column("started_at", _TIME),
        sa.Column("heard_at", _TIME, nullable=False),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.Column("ended_at", _TIME),
        sa.Column("retry_at", _TIME),
        sa.Column("counted", sa.Integer, nullable=False),
        sa.Column("failure_code", sa.Text),
        sa.Column("failure_fault", sa.Text),
        sa.Column("failure_message", sa.Text),
        sa.PrimaryKeyConstraint("run_id", name="pk_evaluation_runs"),
        sa.ForeignKeyConstraint(
            ["evaluation_id"],
            ["evaluations.evaluation_id"],
            name="fk_evaluation_runs_evaluation_id",
        ),
        sa.UniqueConstraint(
            "evaluation_id",
            "validator",
            "attempt",
            name="uq_evaluation_runs_evaluation_id_validator_attempt",
        ),
        sa.CheckConstraint(
            "state IN ('CLAIMED', 'RUNNING', 'SUCCESS', 'FAILED', 'TIMED_OUT', 'STALE',"
            " 'CANCELLED')",
            name="state_known",
        ),
    )
    # One seat a validator: it neither holds an evaluation twice nor finishes it twice.
    op.create_index(
        "ix_evaluation_runs_seat",
        "evaluation_runs",
        ["evaluation_id", "validator"],
        unique=True,
        postgresql_where=sa.text(
            "state IN ('CLAIMED', 'RUNNING', 'SUCCESS') OR failure_fault = 'agent'"
        ),
    )
    op.create_index(
        "ix_evaluation_runs_held",
        "evaluation_runs",
        ["validator", "expires_at"],
        postgresql_where=sa.text("state IN ('CLAIMED', 'RUNNING')"),
    )


def _create_progress() -> None:
    op.create_table(
        "run_problems",
        sa.Column("run_id", sa.Uuid, nullable=False),
        sa.Column("problem_id", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "problem_id", name="pk_run_problems"),
        sa.ForeignKeyConstraint(
            ["run_id"], ["evaluation_runs.run_id"], name="fk_run_problems_run_id"
        ),
    )


def _create_counted_records() -> None:
    op.create_table(
        "counted_records",
        sa.Column("evaluation_id", sa.Uuid, nullable=False),
        sa.Column("validator", sa.Text, nullable=False),
        sa.Column("problem_id", sa.Text, nullable=False),
        sa.Column("record_hash", sa.LargeBinary, nullable=False),
        sa.Column("run_id", sa.Uuid, nullable=False),
        sa.Column("counted_at", _TIME, nullable=False),
        _stored_at(),
        sa.PrimaryKeyConstraint(
            "evaluation_id", "validator", "problem_id", name="pk_counted_records"
        ),
        sa.UniqueConstraint("record_hash", name="uq_counted_records_record_hash"),
        sa.ForeignKeyConstraint(
            ["evaluation_id"],
            ["evaluations.evaluation_id"],
            name="fk_counted_records_evaluation_id",
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["evaluation_runs.run_id"], name="fk_counted_records_run_id"
        ),
        sa.ForeignKeyConstraint(
            ["record_hash"],
            ["records.record_hash"],
            name="fk_counted_records_record_hash",
            deferrable=True,
            initially="DEFERRED",
        ),
    )


def _create_history() -> None:
    op.create_table(
        "work_history",
        sa.Column("evaluation_id", sa.Uuid, nullable=False),
        sa.Column("run_id", sa.Uuid),
        sa.Column("sequence", sa.BigInteger, sa.Identity(always=True), nullable=False),
        sa.Column("validator", sa.Text),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("actor", sa.Text),
        sa.Column("code", sa.Text),
        sa.Column("fault", sa.Text),
        sa.Column("message", sa.Text),
        _stored_at(),
        sa.PrimaryKeyConstraint("sequence", name="pk_work_history"),
        sa.ForeignKeyConstraint(
            ["evaluation_id"], ["evaluations.evaluation_id"], name="fk_work_history_evaluation_id"
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["evaluation_runs.run_id"], name="fk_work_history_run_id"
        ),
    )
    op.create_index(
        "ix_work_history_evaluation_id_sequence", "work_history", ["evaluation_id", "sequence"]
    )


def _guard_append_only(*tables: str) -> None:
    for table in tables:
        op.execute(
            f"""
            CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
                FOR EACH STATEMENT EXECUTE FUNCTION arena_append_only()
            """
        )
        op.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only")


def _guard_mutable() -> None:
    """Rows are kept, what they are about stays, and what has ended has ended."""
    op.execute(
        """
        CREATE FUNCTION arena_settled() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION '% on % refused: it is settled', TG_OP, TG_TABLE_NAME
                USING ERRCODE = 'restrict_violation';
        END
        $$
        """
    )
    fixed = {
        "evaluations": "evaluation_id, version, kind, season_race, problems, needed, opened_at",
        "evaluation_runs": "run_id, evaluation_id, validator, attempt, claimed_at",
        "run_problems": "run_id, problem_id",
    }
    ended = {
        "evaluations": "OLD.state <> 'OPEN'",
        "evaluation_runs": "OLD.state NOT IN ('CLAIMED', 'RUNNING')",
    }
    for table, columns in fixed.items():
        _guard(table, "kept", "DELETE OR TRUNCATE", "FOR EACH STATEMENT")
        _guard(table, "fixed", f"UPDATE OF {columns}", "FOR EACH STATEMENT")
    for table, condition in ended.items():
        _guard(table, "ended", "UPDATE", f"FOR EACH ROW WHEN ({condition})")


def _guard(table: str, name: str, change: str, when: str) -> None:
    op.execute(
        f"CREATE TRIGGER {name} BEFORE {change} ON {table} {when} EXECUTE FUNCTION arena_settled()"
    )
    op.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}")
