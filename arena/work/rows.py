"""Between rows and the queue's nouns, and what the states mean in SQL."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, and_, or_

from arena.db import schema
from arena.work.exceptions import WorkError
from arena.work.types import Evaluation, EvaluationKind, EvaluationState, RunState
from arena.work.views import EvaluationView, ProblemProgress, ProblemState, RunView
from scoring.exceptions import ErrorInfo, Fault

_runs = schema.evaluation_runs.c

MAX_NAME = 200
"""Longest name of a validator, race or problem, in characters."""
MAX_CODE, MAX_MESSAGE = 200, 2_000
"""Longest code and text of a failure that are kept."""

HELD = _runs.state.in_([RunState.CLAIMED, RunState.RUNNING])
FINISHED = or_(_runs.state == RunState.SUCCESS, _runs.failure_fault == Fault.AGENT)
"""As `views.finishes`."""
SEATED = or_(HELD, FINISHED)
"""Takes one of the seats. The unique index `ix_evaluation_runs_seat` says the same."""
BARREN = and_(
    _runs.state.in_([RunState.FAILED, RunState.TIMED_OUT, RunState.STALE]),
    _runs.failure_fault != Fault.AGENT,
    _runs.counted == 0,
)
"""A turn that brought nothing; see `policy.WorkPolicy`."""


def evaluation(row: Row[Any]) -> Evaluation:
    """The evaluation of a row of `evaluations`, or of one joined to it."""
    return Evaluation(
        evaluation_id=row.evaluation_id,
        version=row.version,
        kind=EvaluationKind(row.kind),
        season_race=row.season_race,
        problems=tuple(row.problems),
        needed=row.needed,
    )


def evaluation_view(row: Row[Any]) -> EvaluationView:
    """The same with its state."""
    return EvaluationView(
        evaluation=evaluation(row),
        state=EvaluationState(row.state),
        taken=row.taken,
        finished=row.finished,
        opened_at=utc(row.opened_at),
        ended_at=_utc(row.ended_at),
    )


def run_view(row: Row[Any]) -> RunView:
    """The run of a row of `evaluation_runs`."""
    return RunView(
        run_id=row.run_id,
        evaluation_id=row.evaluation_id,
        validator=row.validator,
        attempt=row.attempt,
        state=RunState(row.state),
        lease=row.lease,
        claimed_at=utc(row.claimed_at),
        started_at=_utc(row.started_at),
        heard_at=utc(row.heard_at),
        expires_at=utc(row.expires_at),
        ended_at=_utc(row.ended_at),
        retry_at=_utc(row.retry_at),
        counted=row.counted,
        failure=failure(row.failure_code, row.failure_fault, row.failure_message),
    )


def progress(row: Row[Any]) -> ProblemProgress:
    """The progress of a row of `run_problems`."""
    return ProblemProgress(row.problem_id, ProblemState(row.state), utc(row.updated_at))


def failure(code: str | None, fault: str | None, message: str | None) -> ErrorInfo | None:
    """A failure of three columns that are set together."""
    if code is None or fault is None or message is None:
        return None
    return ErrorInfo(code, Fault(fault), message)


def storable(info: ErrorInfo | None) -> ErrorInfo | None:
    """A failure that Postgres takes, bounded. Its text may come from anyone."""
    if info is None:
        return None
    return ErrorInfo(_text(info.code, MAX_CODE), info.fault, _text(info.message, MAX_MESSAGE))


def _text(text: str, limit: int) -> str:
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return cut.encode("utf-8", "replace").decode("utf-8").replace("\0", "�")


def check_name(what: str, name: str) -> None:
    """Raises WorkError (`work.bad_value`) for a name that is empty, too long or not storable.

    Names are compared, so they are never cut or changed.
    """
    if 0 < len(name) <= MAX_NAME and "\0" not in name:
        try:
            name.encode()
        except UnicodeEncodeError:
            pass
        else:
            return
    raise WorkError(f"this {what} is no name: {name[:20]!r}", code="work.bad_value")


def check_time(*times: datetime) -> None:
    """Raises ValueError for a time without a zone."""
    if any(time.tzinfo is None for time in times):
        raise ValueError("the queue's times need a time zone")


def utc(time: datetime) -> datetime:
    """The same moment in UTC."""
    return time.astimezone(UTC)


def _utc(time: datetime | None) -> datetime | None:
    return None if time is None else utc(time)
