"""What happened: every state that an evaluation or a run came to, in an append-only table.

Folding the history gives the states: `replay` does it, and tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from arena.db import schema
from arena.work.exceptions import WorkError
from arena.work.rows import failure, utc
from arena.work.types import EvaluationState, RunState
from arena.work.views import RunView, finishes
from scoring.exceptions import ErrorInfo


@dataclass(frozen=True, slots=True)
class Change:
    """Something came to a state. A run's change names run and validator, an evaluation's none."""

    evaluation_id: UUID
    state: RunState | EvaluationState
    at: datetime
    run_id: UUID | None = None
    validator: str | None = None
    """Whose run it is."""
    actor: str | None = None
    """Who did it: a validator, or the arena (None)."""
    why: ErrorInfo | None = None
    """Why a run or an evaluation ended otherwise than well, and whose fault that was."""


def of_run(run: RunView, at: datetime, *, actor: str | None) -> Change:
    """The change that brought a run to the state it is in."""
    return Change(run.evaluation_id, run.state, at, run.run_id, run.validator, actor, run.failure)


async def write(connection: AsyncConnection, changes: Sequence[Change]) -> None:
    """Add changes, in order, in the transaction that makes them."""
    if not changes:
        return
    rows = [
        {
            "evaluation_id": change.evaluation_id,
            "run_id": change.run_id,
            "validator": change.validator,
            "state": change.state,
            "at": change.at,
            "actor": change.actor,
            "code": change.why and change.why.code,
            "fault": change.why and change.why.fault,
            "message": change.why and change.why.message,
        }
        for change in changes
    ]
    await connection.execute(insert(schema.work_history), rows)


async def read(connection: AsyncConnection, evaluation_id: UUID) -> list[Change]:
    """All that happened to an evaluation, in order. Times are UTC, and go back with a clock."""
    table = schema.work_history
    query = select(table).where(table.c.evaluation_id == evaluation_id).order_by(table.c.sequence)
    return [
        Change(
            evaluation_id=row.evaluation_id,
            state=EvaluationState(row.state) if row.run_id is None else RunState(row.state),
            at=utc(row.at),
            run_id=row.run_id,
            validator=row.validator,
            actor=row.actor,
            why=failure(row.code, row.fault, row.message),
        )
        for row in await connection.execute(query)
    ]


@dataclass(slots=True)
class Replayed:
    """The state that a history tells of."""

    state: EvaluationState | None = None
    runs: dict[UUID, RunState] = field(default_factory=dict)
    holders: dict[UUID, str] = field(default_factory=dict)
    """Runs that are held, and by whom."""
    finishers: dict[UUID, str] = field(default_factory=dict)
    """Runs that count, and whose."""


def replay(changes: Iterable[Change]) -> Replayed:
    """Fold the history of one evaluation.

    Raises WorkError (`work.bad_history`) for what cannot have happened: a change before the
    opening, after an end, or of a run that was not claimed.
    """
    told = Replayed()
    for change in changes:
        if isinstance(change.state, EvaluationState):
            _evaluation_came_to(told, change.state)
        else:
            _run_came_to(told, change, change.state)
    return told


def _evaluation_came_to(told: Replayed, state: EvaluationState) -> None:
    opens = state is EvaluationState.OPEN
    if told.state is not (None if opens else EvaluationState.OPEN) or (not opens and told.holders):
        raise WorkError(f"an evaluation that is {told.state} became {state}", code=_BAD)
    told.state = state


def _run_came_to(told: Replayed, change: Change, state: RunState) -> None:
    run, before = change.run_id, told.runs.get(change.run_id) if change.run_id else None
    allowed = {
        RunState.CLAIMED: before is None,
        RunState.RUNNING: before is RunState.CLAIMED,
    }.get(state, before is not None and before.held)
    if not allowed or run is None or change.validator is None:
        raise WorkError(f"a run that was {before} became {state}", code=_BAD)
    if told.state is not EvaluationState.OPEN:
        raise WorkError(f"a run became {state} while its evaluation was {told.state}", code=_BAD)
    told.runs[run] = state
    if state.held:
        told.holders[run] = change.validator
        return
    del told.holders[run]
    if finishes(state, change.why):
        told.finishers[run] = change.validator


_BAD = "work.bad_history"
