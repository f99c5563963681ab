"""The queue in a few lines without a database: what it should do, one call after the other.

Written from the queue's description, not from its code; `test_machine.py` holds the two
together. A call gives what it gives, or the code of its refusal as text.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from arena.work.policy import WorkPolicy
from arena.work.types import Ended, Evaluation, EvaluationKind, EvaluationState, RunState
from scoring.exceptions import Fault


@dataclass
class Run:
    evaluation: Evaluation
    validator: str
    lease: timedelta
    claimed_at: datetime
    heard_at: datetime
    expires_at: datetime
    run_id: UUID | None = None
    state: RunState = RunState.CLAIMED
    ended: Ended | None = None
    ended_at: datetime | None = None
    retry_at: datetime | None = None
    counted: int = 0

    @property
    def held(self) -> bool:
        return self.state in (RunState.CLAIMED, RunState.RUNNING)

    @property
    def agents_fault(self) -> bool:
        failure = self.ended.failure if self.ended else None
        return failure is not None and failure.fault is Fault.AGENT

    @property
    def whole(self) -> bool:
        return self.state is RunState.SUCCESS or self.agents_fault

    @property
    def barren(self) -> bool:
        lost = self.state in (RunState.FAILED, RunState.TIMED_OUT, RunState.STALE)
        return lost and not self.agents_fault and self.counted == 0

    def end(self, state: RunState, now: datetime) -> None:
        self.state, self.ended_at = state, now


@dataclass
class Model:
    policy: WorkPolicy
    evaluations: dict[UUID, Evaluation] = field(default_factory=dict)
    opened_at: dict[UUID, datetime] = field(default_factory=dict)
    states: dict[UUID, EvaluationState] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    counted: dict[tuple[UUID, str, str], str] = field(default_factory=dict)
    brought: dict[tuple[UUID, str], list[datetime]] = field(default_factory=dict)

    def runs_at(self, evaluation: Evaluation, validator: str | None = None) -> list[Run]:
        return [
            run
            for run in self.runs
            if run.evaluation == evaluation and validator in (None, run.validator)
        ]

    def seats(self, evaluation: Evaluation) -> tuple[int, int]:
        """Taken, and finished."""
        runs = self.runs_at(evaluation)
        finished = sum(run.whole for run in runs)
        return finished + sum(run.held for run in runs), finished

    def open(self, evaluation: Evaluation, at: datetime) -> None:
        if evaluation.evaluation_id not in self.evaluations:
            self.evaluations[evaluation.evaluation_id] = evaluation
            self.opened_at[evaluation.evaluation_id] = at
            self.states[evaluation.evaluation_id] = EvaluationState.OPEN

    def take_back(self, now: datetime, validator: str | None = None) -> list[Run]:
        stale = self.expired(now, validator)
        for run in stale:
            run.end(RunState.STALE, now)
        return stale

    def expired(self, now: datetime, validator: str | None) -> list[Run]:
        return [
            run
            for run in self.runs
            if run.held
            and (
                run.expires_at <= now
                or run.claimed_at <= now - self.policy.turn
                or self._idle(run, now - self.policy.patience)
            )
            and validator in (None, run.validator)
        ]

    def _idle(self, run: Run, since: datetime) -> bool:
        brought = self.brought.get((run.evaluation.evaluation_id, run.validator), [])
        return run.claimed_at <= since and not any(at > since for at in brought)

    def expire(self, now: datetime) -> list[Run]:
        for run in self.runs:
            if run.held and run.expires_at > now + run.lease:
                run.heard_at, run.expires_at = now, now + run.lease
        return self.take_back(now)

    def claim(
        self,
        validator: str,
        capacity: int,
        now: datetime,
        lease: timedelta,
        working: Collection[UUID] | None,
    ) -> tuple[Run, bool] | str | None:
        """The run, and whether it is a new one. A refusal changes nothing."""
        before = [(run, run.state) for run in self.expired(now, validator)]
        self.take_back(now, validator)
        held = [run for run in self.runs if run.held and run.validator == validator]
        for run in sorted(held, key=lambda run: (run.claimed_at, str(run.run_id))):
            quiet = run.state is RunState.CLAIMED or now >= run.heard_at + run.lease / 2
            if quiet if working is None else run.run_id not in working:
                run.lease, run.heard_at, run.expires_at = lease, now, now + lease
                return run, False
        if len(held) >= capacity:
            for run, state in before:
                run.state, run.ended_at = state, None
            return "work.at_capacity"
        wanted = [e for e in self.evaluations.values() if self._may_have(e, validator, now)]
        if not wanted:
            return None
        chosen = min(wanted, key=lambda evaluation: self._order(evaluation, validator))
        run = Run(chosen, validator, lease, now, now, now + lease)
        self.runs.append(run)
        return run, True

    def _may_have(self, evaluation: Evaluation, validator: str, now: datetime) -> bool:
        own = self.runs_at(evaluation, validator)
        waiting = any(r.retry_at and r.ended_at and r.ended_at <= now < r.retry_at for r in own)
        return (
            self.states[evaluation.evaluation_id] is EvaluationState.OPEN
            and self.seats(evaluation)[0] < evaluation.needed
            and not any(run.held or run.whole for run in own)
            and not waiting
            and sum(run.barren for run in own) < self.policy.tries
        )

    def _order(self, evaluation: Evaluation, validator: str) -> tuple[object, ...]:
        own = self.runs_at(evaluation, validator)
        return (
            not (own and own[-1].state is RunState.STALE),
            evaluation.kind is not EvaluationKind.RACE,
            self.opened_at[evaluation.evaluation_id],
            evaluation.evaluation_id.bytes,
        )

    def refusal(self, run: Run, validator: str, now: datetime) -> str | None:
        if run.validator != validator:
            return "work.not_run_owner"
        if run.state is RunState.STALE or (run.held and now >= run.expires_at):
            return "work.lease_expired"
        return None if run.held else "work.run_already_complete"

    def heartbeat(self, run: Run, validator: str, now: datetime) -> datetime | str:
        refused = self.refusal(run, validator, now)
        if refused:
            return refused
        run.state, run.heard_at, run.expires_at = RunState.RUNNING, now, now + run.lease
        return run.expires_at

    def count(
        self, run: Run, validator: str, problem: str, digest: str, now: datetime
    ) -> bool | str:
        refused = self.refusal(run, validator, now)
        if refused == "work.not_run_owner":
            return refused
        if problem not in run.evaluation.problems:
            return "work.invalid_problem"
        key = (run.evaluation.evaluation_id, validator, problem)
        if self.counted.get(key) == digest:
            return False
        if refused:
            return refused
        if key in self.counted or digest in self.counted.values():
            return "work.other_record"
        self.counted[key] = digest
        self.brought.setdefault(key[:2], []).append(now)
        run.counted += 1
        self.heartbeat(run, validator, now)
        return True

    def complete(self, run: Run, validator: str, ended: Ended, now: datetime) -> Run | str:
        if run.validator == validator and run.ended == ended:
            return run
        refused = self.refusal(run, validator, now)
        if refused:
            return refused
        evaluation = run.evaluation
        agents = ended.failure is not None and ended.failure.fault is Fault.AGENT
        if ended.state is RunState.SUCCESS or agents:
            have = [k for k in self.counted if k[:2] == (evaluation.evaluation_id, validator)]
            if len(have) < len(evaluation.problems):
                return "work.incomplete"
        run.ended = ended
        run.end(ended.state, now)
        if not run.whole:
            barren = sum(r.barren for r in self.runs_at(evaluation, validator))
            run.retry_at = now + self.policy.wait(barren)
        elif self.seats(evaluation)[1] == evaluation.needed:
            self.states[evaluation.evaluation_id] = EvaluationState.CLOSED
        return run

    def cancel(self, version: UUID, now: datetime) -> set[UUID]:
        cancelled = set()
        for which, evaluation in self.evaluations.items():
            if evaluation.version == version and self.states[which] is EvaluationState.OPEN:
                self.states[which] = EvaluationState.CANCELLED
                cancelled.add(which)
                for run in self.runs_at(evaluation):
                    if run.held:
                        run.end(RunState.CANCELLED, now)
        return cancelled
