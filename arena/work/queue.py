"""The queue of evaluations, in Postgres: who works on what, until when, and what counts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from arena.db.engine import database_error
from arena.work import claiming, counting, ending, holding, opening, reading, rows
from arena.work.history import Change
from arena.work.history import read as read_history
from arena.work.policy import WorkPolicy
from arena.work.types import Ended, Evaluation, EvaluationKind, Lease
from arena.work.views import (
    Completion,
    EvaluationResults,
    EvaluationView,
    ProblemProgress,
    ProblemState,
    RunView,
)


class WorkQueue:
    """Evaluations, and the runs of validators at them. Any number of processes share it.

    Every method is one transaction; the time is handed in and has a zone (ValueError). They
    raise DatabaseUnreachableError or DatabaseError when the database does: nothing has been
    done then, or what was asked for has, and asking again is safe.
    """

    def __init__(self, engine: AsyncEngine, policy: WorkPolicy | None = None) -> None:
        self._engine = engine
        self._policy = policy or WorkPolicy()

    async def open_evaluation(
        self,
        version: UUID,
        kind: EvaluationKind,
        season_race: str | None,
        problems: Sequence[str],
        needed: int,
        at: datetime,
    ) -> Evaluation:
        """Want `needed` validators for an agent version on these problems.

        There is one evaluation for (version, kind, season_race), and its id follows from
        them; opening it again changes nothing, also after its end. Raises WorkError
        (`work.bad_value`), and OtherEvaluationError when it was opened with other problems or
        another number.
        """
        rows.check_time(at)
        wanted = opening.checked(version, kind, season_race, problems, needed)
        async with self._transaction() as connection:
            await opening.open_evaluation(connection, wanted, at)
        return wanted

    async def claim(
        self,
        validator: str,
        *,
        capacity: int,
        now: datetime,
        lease: timedelta,
        working: Collection[UUID] | None = None,
    ) -> Lease | None:
        """Give a validator a run to do, held for `lease`; None when there is nothing for it.

        First comes a run that it holds but does not work on, then an evaluation that it let
        go stale; both are `resumed`. Then races before qualifying, and the oldest. It never
        gets an evaluation that it holds or has finished, that as many validators as are
        needed hold or have finished, that it failed at a moment ago, or that it has no tries
        left for (`WorkPolicy`).

        `working` are the runs that it says it works on: after a restart, none. Who does not
        say is taken to work on those that were heard of within the last half of their lease.

        Raises AtCapacityError when it holds `capacity` runs and works on them, and WorkError
        (`work.bad_value`).
        """
        rows.check_name("validator", validator)
        rows.check_time(now)
        if lease <= timedelta(0):
            raise ValueError("a lease takes time")
        async with self._transaction() as connection:
            return await claiming.claim(
                connection,
                validator,
                capacity=capacity,
                now=now,
                lease=lease,
                policy=self._policy,
                working=working,
            )

    async def heartbeat(self, run: UUID, validator: str, now: datetime) -> datetime:
        """A validator lives: until when the run is held now.

        Raises RunNotFoundError, NotRunOwnerError, LeaseExpiredError and
        RunAlreadyCompleteError, as all that follow.
        """
        return (await self.started(run, validator, now)).expires_at

    async def started(self, run: UUID, validator: str, now: datetime) -> RunView:
        """The run is RUNNING. Any sign of life says so; again is fine."""
        rows.check_time(now)
        async with self._transaction() as connection:
            return await holding.hear(connection, run, validator, now)

    async def progress(
        self, run: UUID, validator: str, problems: Mapping[str, ProblemState], now: datetime
    ) -> None:
        """How far a run is, for pages: the last word on each problem stands.

        Raises as `heartbeat`, and InvalidProblemError; nothing of it is stored then.
        """
        rows.check_time(now)
        async with self._transaction() as connection:
            await holding.progress(connection, run, validator, problems, now)

    async def held(self, run: UUID, validator: str, now: datetime) -> Lease:
        """The lease of a run that a validator holds, unchanged. Raises as `heartbeat`."""
        rows.check_time(now)
        async with self._transaction() as connection:
            found = await holding.own_run(connection, run, validator)
            holding.check_held(found, now)
            row = await holding.problems_of(connection, found.evaluation_id)
        resumed = found.attempt > 1
        return Lease(run, rows.evaluation(row), validator, found.expires_at, resumed)

    async def count_record(
        self, run: UUID, validator: str, problem_id: str, record_hash: str, now: datetime
    ) -> bool:
        """Let a stored record (its hash in hex) count for a problem; whether it is new.

        The first record of a validator for a problem of an evaluation is the one that counts;
        it counts on in later runs of the same validator. The same again is fine, also after
        the run's end. `counting.count` does it within another's transaction.

        Raises as `heartbeat`, InvalidProblemError, OtherRecordError for a second record of a
        problem or a record that counts elsewhere, WorkError (`work.bad_value`), and
        DatabaseError when no such record is stored.
        """
        rows.check_time(now)
        async with self._transaction() as connection:
            return await counting.count(connection, run, validator, problem_id, record_hash, now)

    async def complete(self, run: UUID, validator: str, ended: Ended, now: datetime) -> Completion:
        """End a run. The same ending again gives the same answer, also after the lease.

        After SUCCESS, or a failure of the agent's, the run counts: both need a counted record
        for every problem (IncompleteRunError). After any other failure the evaluation is
        wanted again, of this validator only after a while and not without end.

        Raises as `heartbeat`, and RunAlreadyCompleteError after another ending.
        """
        rows.check_time(now)
        checked = ending.checked(ended)
        async with self._transaction() as connection:
            return await ending.complete(connection, run, validator, checked, now, self._policy)

    async def expire(self, now: datetime) -> list[RunView]:
        """Take back the runs whose lease has run out, and those that brought no record for too
        long (`WorkPolicy`); which they were. To be called often.

        What another process changes this moment is left for the next call.
        """
        rows.check_time(now)
        async with self._transaction() as connection:
            await holding.mend_clock(connection, now)
            return await holding.take_back(connection, now, self._policy)

    async def cancel(self, version: UUID, reason: str, now: datetime) -> list[UUID]:
        """End the open evaluations of an agent version, and the runs at them; which they were.

        Nobody is at fault, and what was counted stays.
        """
        rows.check_time(now)
        async with self._transaction() as connection:
            return await opening.cancel(connection, version, reason, now)

    async def evaluation(self, which: UUID) -> EvaluationView:
        """One evaluation. Raises EvaluationNotFoundError."""
        async with self._transaction() as connection:
            return await reading.evaluation(connection, which)

    async def open_evaluations(self) -> list[EvaluationView]:
        """What is not done, in the order in which it is claimed."""
        async with self._transaction() as connection:
            return await reading.open_evaluations(connection)

    async def evaluations_of(self, version: UUID) -> list[EvaluationView]:
        """All evaluations of an agent version, oldest first."""
        async with self._transaction() as connection:
            return await reading.evaluations_of(connection, version)

    async def run(self, which: UUID) -> RunView:
        """One run, whoever's it is. Raises RunNotFoundError."""
        async with self._transaction() as connection:
            return await reading.run(connection, which)

    async def running(self) -> list[RunView]:
        """The runs that are held, oldest first."""
        async with self._transaction() as connection:
            return await reading.running(connection)

    async def runs_of(self, version: UUID) -> list[RunView]:
        """All runs of an agent version, oldest first."""
        async with self._transaction() as connection:
            return await reading.runs_of(connection, version)

    async def progress_of(self, run: UUID) -> list[ProblemProgress]:
        """What a run's validator said of its problems, in the evaluation's order."""
        async with self._transaction() as connection:
            return await reading.progress_of(connection, run)

    async def results(self, which: UUID) -> EvaluationResults:
        """Which records count, by validator. Raises EvaluationNotFoundError."""
        async with self._transaction() as connection:
            return await reading.results(connection, which)

    async def out_of_tries(self, which: UUID) -> frozenset[str]:
        """Validators that get an evaluation no more. When these are all there are, it is stuck:
        `cancel` it, or let another validator join."""
        async with self._transaction() as connection:
            return await reading.out_of_tries(connection, which, self._policy)

    async def history(self, which: UUID) -> list[Change]:
        """All that happened to an evaluation and its runs, in order."""
        async with self._transaction() as connection:
            return await read_history(connection, which)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[AsyncConnection]:
        """A transaction, with what a driver raises as an error of this house."""
        try:
            async with self._engine.begin() as connection:
                yield connection
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            where = self._engine.url.render_as_string(hide_password=True)
            raise database_error(error, where) from error
