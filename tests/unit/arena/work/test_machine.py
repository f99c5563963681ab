"""Whatever is asked of the queue, in whatever order, it does what its model does."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from arena.exceptions import Fault
from arena.work.exceptions import WorkError
from arena.work.history import replay
from arena.work.types import Ended, EvaluationKind, EvaluationState, Lease, RunState
from tests.unit.arena.work.desk import LEASE, POLICY, SUCCESS, Desk, application, failed
from tests.unit.arena.work.model import Model, Run

pytestmark = pytest.mark.database

T = TypeVar("T")
VALIDATORS = st.sampled_from(["val-a", "val-b", "val-c"])
ENDINGS = st.sampled_from(
    [SUCCESS, SUCCESS, *(failed(fault) for fault in Fault), failed(state=RunState.TIMED_OUT)]
)
PLACE = st.integers(0, 30)


class WorkMachine(RuleBasedStateMachine):
    """Validators that claim, live, die, count and end; a clock that also goes back."""

    def __init__(self, runner: asyncio.Runner, url: str) -> None:
        super().__init__()
        self.runner = runner
        self.desk = Desk(application(url))
        self.model = Model(POLICY)
        self.versions = [uuid4() for _ in range(3)]

    def ask(self, call: Coroutine[Any, Any, T]) -> T | str:
        """What the queue says, or the code of its refusal."""
        try:
            return self.runner.run(call)
        except WorkError as error:
            return error.code

    def some(self, place: int) -> Run:
        """One of the runs; the latest most often."""
        return self.model.runs[-1 - min(place // 4, len(self.model.runs) - 1)]

    @rule(seconds=st.sampled_from([0, 1, 20, 59, 61, 120, 200, -1, -70, -4000, 4000]))
    def time_passes(self, seconds: int) -> None:
        self.desk.later(seconds)

    @rule(version=st.integers(0, 2), race=st.booleans(), needed=st.integers(1, 3))
    def open(self, version: int, race: bool, needed: int) -> None:
        kind = EvaluationKind.RACE if race else EvaluationKind.QUALIFYING
        arguments = (self.versions[version], kind, "race-1" if race else None, ["p0", "p1"])
        opened = self.ask(self.desk.queue.open_evaluation(*arguments, needed, self.desk.now))
        known = [e for e in self.model.evaluations.values() if (e.version, e.kind) == arguments[:2]]
        if known and known[0].needed != needed:
            assert opened == "work.other_evaluation"
        else:
            assert not isinstance(opened, str)
            self.model.open(opened, self.desk.now)

    @rule(
        validator=VALIDATORS,
        capacity=st.integers(1, 2),
        says=st.sampled_from(["nothing", "none", "all", "some"]),
    )
    def claim(self, validator: str, capacity: int, says: str) -> None:
        held = [r.run_id for r in self.model.runs if r.held and r.run_id is not None]
        working = {"nothing": None, "none": [], "all": held, "some": held[::2]}[says]
        given = self.ask(self.desk.claim(validator, capacity=capacity, working=working))
        expected = self.model.claim(validator, capacity, self.desk.now, LEASE, working)
        if not isinstance(expected, tuple):
            assert given == expected
            return
        run, new = expected
        assert isinstance(given, Lease)
        if new:
            run.run_id = given.run_id
        assert given.run_id == run.run_id
        assert given.evaluation == run.evaluation
        assert given.expires_at == run.expires_at
        earlier = self.model.runs_at(run.evaluation, validator)
        assert given.resumed == (not new or len(earlier) > 1)

    @precondition(lambda self: self.model.runs)
    @rule(place=PLACE, validator=st.none() | VALIDATORS)
    def heartbeat(self, place: int, validator: str | None) -> None:
        run = self.some(place)
        assert run.run_id is not None
        who, now = validator or run.validator, self.desk.now
        said = self.ask(self.desk.queue.heartbeat(run.run_id, who, now))
        assert said == self.model.heartbeat(run, who, now)

    @precondition(lambda self: self.model.runs)
    @rule(
        place=PLACE,
        problem=st.sampled_from(["p0", "p1", "p0", "p1", "p7"]),
        which=st.sampled_from([0, 0, 0, 1, 2]),
        validator=st.none() | st.none() | VALIDATORS,
    )
    def count(self, place: int, problem: str, which: int, validator: str | None) -> None:
        """The record of this problem, another one, or one that may be another problem's."""
        run = self.some(place)
        self._count(run, validator or run.validator, problem, which)

    def _count(self, run: Run, who: str, problem: str, which: int) -> None:
        assert run.run_id is not None
        name = run.evaluation.evaluation_id, who, problem if which < 2 else "p0", which % 2
        digest = self.desk.hash(*name)
        self.runner.run(self.desk.store(digest))
        now = self.desk.now
        call = self.desk.queue.count_record(run.run_id, who, problem, digest, now)
        assert self.ask(call) == self.model.count(run, who, problem, digest, now)

    @precondition(lambda self: any(run.held for run in self.model.runs))
    @rule()
    def count_the_rest(self) -> None:
        run = [run for run in self.model.runs if run.held][-1]
        for problem in run.evaluation.problems:
            self._count(run, run.validator, problem, 0)

    @precondition(lambda self: self.model.runs)
    @rule(place=PLACE, ended=ENDINGS, validator=st.none() | st.none() | VALIDATORS)
    def complete(self, place: int, ended: Ended, validator: str | None) -> None:
        run = self.some(place)
        self._complete(run, validator or run.validator, ended)

    def _complete(self, run: Run, who: str, ended: Ended) -> None:
        assert run.run_id is not None
        now = self.desk.now
        said = self.ask(self.desk.queue.complete(run.run_id, who, ended, now))
        expected = self.model.complete(run, who, ended, now)
        if isinstance(expected, str):
            assert said == expected
        else:
            assert not isinstance(said, str)
            assert (said.run.run_id, said.run.state) == (run.run_id, run.state)
            assert said.run.retry_at == run.retry_at

    @rule(
        validator=VALIDATORS,
        turns=st.lists(
            st.sampled_from(
                ["fails", "fails", "goes silent", "counts and goes silent", "succeeds"]
            ),
            min_size=1,
            max_size=4,
        ),
        wait=st.sampled_from([0, 59, 60, 119, 120, 180]),
    )
    def turns(self, validator: str, turns: list[str], wait: int) -> None:
        """What a validator does that has its day, or a bad one."""
        for turn in turns:
            self.claim(validator, 2, "nothing")
            held = [r for r in self.model.runs if r.held and r.validator == validator]
            if not held:
                break
            if turn in ("succeeds", "counts and goes silent"):
                for problem in ("p0", "p1")[: 1 + (turn == "succeeds")]:
                    self._count(held[-1], validator, problem, 0)
            if turn.endswith("silent"):
                self.time_passes(120)
            else:
                self._complete(held[-1], validator, SUCCESS if turn == "succeeds" else failed())
            self.time_passes(wait)
            self.claim(validator, 2, "nothing")

    @rule()
    def expire(self) -> None:
        taken = self.runner.run(self.desk.queue.expire(self.desk.now))
        expected = self.model.expire(self.desk.now)
        assert {run.run_id for run in taken} == {run.run_id for run in expected}

    @rule(version=st.integers(0, 2), sure=st.integers(0, 5))
    def cancel(self, version: int, sure: int) -> None:
        if sure == 0:
            which = self.versions[version]
            call = self.desk.queue.cancel(which, "a reason", self.desk.now)
            assert set(self.runner.run(call)) == self.model.cancel(which, self.desk.now)

    @invariant()
    def no_more_hold_it_than_are_needed(self) -> None:
        for which, evaluation in self.model.evaluations.items():
            view = self.runner.run(self.desk.queue.evaluation(which))
            assert (view.taken, view.finished) == self.model.seats(evaluation)
            assert view.state is self.model.states[which]
            assert view.taken <= evaluation.needed
            assert (view.state is EvaluationState.CLOSED) == (view.finished == evaluation.needed)

    def teardown(self) -> None:
        try:
            for which in self.model.evaluations:
                self.runner.run(self._check(which))
        finally:
            self.runner.run(self.desk.clear())
            self.runner.run(self.desk.engine.dispose())

    async def _check(self, which: Any) -> None:
        """What is stored is what the model holds, and what the history tells."""
        evaluation = self.model.evaluations[which]
        runs = self.model.runs_at(evaluation)
        told = replay(await self.desk.queue.history(which))
        assert told.state is self.model.states[which]
        assert told.runs == {run.run_id: run.state for run in runs}
        assert set(told.holders) == {run.run_id for run in runs if run.held}
        assert set(told.finishers) == {run.run_id for run in runs if run.whole}
        stored = {r.run_id: r for r in await self.desk.queue.runs_of(evaluation.version)}
        for run in runs:
            assert run.run_id is not None
            found = stored[run.run_id]
            assert (found.state, found.counted) == (run.state, run.counted)
            assert (found.heard_at, found.expires_at) == (run.heard_at, run.expires_at)
            # An agent is never charged for another's fault: only whole runs count.
            if found.finishes:
                assert found.failure is None or found.failure.fault is Fault.AGENT
        results = await self.desk.queue.results(which)
        records = {
            (which, result.validator, problem): digest
            for result in results.validators
            for problem, digest in result.records.items()
        }
        assert records == {k: v for k, v in self.model.counted.items() if k[0] == which}
        for result in results.finished:
            assert set(result.records) == set(evaluation.problems)
        tired = await self.desk.queue.out_of_tries(which)
        for validator in {run.validator for run in runs}:
            barren = sum(run.barren for run in self.model.runs_at(evaluation, validator))
            assert (validator in tired) == (barren >= POLICY.tries)


def test_the_queue_does_what_its_model_does(work_url: str) -> None:
    with asyncio.Runner() as runner:

        class Here(WorkMachine):
            def __init__(self) -> None:
                super().__init__(runner, work_url)

        run_state_machine_as_test(
            Here,
            settings=settings(
                derandomize=True,  # the same calls each time
                max_examples=25,
                stateful_step_count=40,
                deadline=None,
                suppress_health_check=[HealthCheck.too_slow],
            ),
        )
