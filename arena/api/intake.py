"""Sealed records of validators on their way into the database: checked, stored, counted once.

A batch is taken whole or not at all, in one transaction: records, seals, and which of them
count. Batches that wait at the same time share one; if the database refuses something of
them, each gets its own. A batch may come again, from whichever part of a spool. A record
whose run was lost is stored all the same, so that its validator's chain has no hole; it does
not count until the evaluation is that validator's again and it sends the record once more.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

import zstandard
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from arena.api.errors import Code, Refusal
from arena.api.gathering import Gathering
from arena.api.inputs import EvaluationInputs, InputStore
from arena.api.record_checks import (
    Accepted,
    Expected,
    Limits,
    Read,
    check_run,
    check_verdict,
    read,
    unpack,
)
from arena.api.services import Services
from arena.db import schema
from arena.db.engine import is_away
from arena.exceptions import ArenaError, DatabaseError, RecordConflictError, SealForkError
from arena.records.store import Prepared, insert_prepared, prepare
from arena.records.verification.contents import Opened, open_record
from arena.records.verification.findings import Report
from arena.runs.record import Kind
from arena.work import counting
from arena.work.exceptions import (
    EvaluationNotFoundError,
    LeaseExpiredError,
    OtherRecordError,
    RunAlreadyCompleteError,
    WorkError,
)
from arena.work.holding import last_runs
from arena.work.types import Evaluation
from arena.work.views import RunView
from scoring.exceptions import ProblemError
from scoring.reading import read_problem
from scoring.types import JsonObject, Problem

_KNOWN_EVALUATIONS = 256
"""Evaluations whose inputs are remembered: they never change."""
_TOGETHER = 64
"""Records that share a transaction, where batches of several validators wait."""
_LANES = 2
"""Transactions under way at once in a process: while one waits for the disk, another works."""
_REASONS: Mapping[type[WorkError], str] = {
    LeaseExpiredError: Code.LEASE_EXPIRED,
    RunAlreadyCompleteError: Code.RUN_ALREADY_COMPLETE,
    OtherRecordError: Code.RECORD_CONFLICT,
}
"""Why a record that is stored does not count."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a record. `reason` says why it is stored and does not count."""

    seal: str
    record: str
    kind: Kind
    counted: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Known:
    evaluation: Evaluation
    inputs: EvaluationInputs
    problems: dict[str, Problem]


@dataclass(frozen=True, slots=True)
class _Batch:
    """Records that hold, as far as can be told before a transaction."""

    hotkey: str
    now: datetime
    records: list[Read]
    prepared: Prepared

    @property
    def pairs(self) -> set[tuple[UUID, str]]:
        """The evaluations that it is of, by this validator."""
        return {(record.evaluation_id(), self.hotkey) for record in self.records}

    def stranger(self, runs: Mapping[tuple[UUID, str], RunView]) -> Refusal | None:
        """Why not, when the validator never had a run of one of them."""
        for record in self.records:
            if (record.evaluation_id(), self.hotkey) not in runs:
                try:
                    record.refuse(Code.NOT_RUN_OWNER, "this hotkey has no run of its evaluation")
                except Refusal as refusal:
                    return refusal
        return None


class RecordIntake:
    """Takes batches. One an app; it remembers what evaluations are run on."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._inputs = InputStore(services.engine)
        self._known: OrderedDict[UUID, _Known] = OrderedDict()
        settings = services.settings
        self._limits = Limits(
            settings.records_plain_bytes, settings.record_bytes, settings.records_per_batch
        )
        self._accepted = Accepted(settings.scoring_versions, settings.catalog_hashes)
        self._gathering = Gathering(
            self._store, most=_TOGETHER, lanes=_LANES, weight=lambda batch: len(batch.records)
        )

    async def take(self, hotkey: str, body: bytes) -> list[Taken]:
        """Store a batch of this hotkey's records.

        Raises Refusal for the first that does not hold; nothing of the batch is stored then.
        """
        now = self._services.clock()
        records = await asyncio.to_thread(self._read, hotkey, body, now)
        checks = await self._checks(records)
        prepared = await asyncio.to_thread(_checked, checks, records)
        taken = await self._gathering.do(_Batch(hotkey, now, records, prepared))
        for one in taken:
            outcome = "counted" if one.counted else "stored"
            self._services.metrics.records.labels(outcome).inc()
        return taken

    def _read(self, hotkey: str, body: bytes, now: datetime) -> list[Read]:
        pairs = unpack(body, self._limits)
        return [read(i, content, seal, hotkey, now) for i, (content, seal) in enumerate(pairs)]

    async def _checks(self, records: Sequence[Read]) -> list[Callable[[], None]]:
        """Every record against what the arena knows, to be called where there is time.

        They raise Refusal; so does this."""
        beside = {r.run_id: r for r in records if r.opened.kind is Kind.RUN}
        checks: list[Callable[[], None]] = []
        for record in records:
            known = await self._evaluation(record)
            if record.opened.kind is Kind.RUN:
                expected = Expected(
                    known.evaluation,
                    known.inputs.source_hash,
                    known.inputs.problems,
                    known.problems.get(record.value["problem"]["problem_id"]),
                )
                checks.append(partial(check_run, record, expected, self._accepted))
                continue
            judged = beside.get(record.run_id)
            if judged is not None:
                run, sealer = judged.opened, judged.sealed.sealed.seal.validator
            else:
                run, sealer = await self._stored_run(record)
            problem = known.problems.get(_problem_id(run))
            checks.append(partial(check_verdict, record, run, sealer, problem))
        return checks

    async def _evaluation(self, record: Read) -> _Known:
        which = record.evaluation_id()
        known = self._known.get(which)
        if known is not None:
            self._known.move_to_end(which)
            return known
        try:
            view = await self._services.queue.evaluation(which)
        except EvaluationNotFoundError:
            record.refuse(Code.EVAL_RUN_NOT_FOUND, "there is no such evaluation")
        inputs = await self._inputs.inputs(which)
        stored = await self._inputs.problems(inputs)
        problems = await asyncio.to_thread(_parsed, stored)
        known = self._known[which] = _Known(view.evaluation, inputs, problems)
        if len(self._known) > _KNOWN_EVALUATIONS:
            self._known.popitem(last=False)
        return known

    async def _stored_run(self, record: Read) -> tuple[Opened, str]:
        """The stored record of the run that a verdict is on, and who sealed it."""
        query = (
            select(schema.records.c.content, schema.seals.c.validator)
            .join(schema.runs, schema.runs.c.record_hash == schema.records.c.record_hash)
            .join(schema.seals, schema.seals.c.record_hash == schema.records.c.record_hash)
            .where(schema.runs.c.run_id == record.run_id)
        )
        async with self._services.engine.connect() as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            record.refuse(Code.RECORD_NOT_FOUND, "the run that it judges is not stored")
        opened = await asyncio.to_thread(_opened, row.content)
        return opened, row.validator

    async def _store(self, batches: Sequence[_Batch]) -> list[list[Taken] | Exception]:
        """Batches that waited together: in one transaction, or else each in its own."""
        try:
            return await self._in_one(batches)
        except (ArenaError, DBAPIError) as error:
            if len(batches) == 1:
                return [_refused(error)]
            if isinstance(error, DBAPIError) and is_away(error):
                raise
        answers: list[list[Taken] | Exception] = []
        for batch in batches:
            try:
                answers += await self._in_one([batch])
            except (ArenaError, SQLAlchemyError, OSError, TimeoutError) as error:
                answers.append(_refused(error))
        return answers

    async def _in_one(self, batches: Sequence[_Batch]) -> list[list[Taken] | Exception]:
        async with self._services.engine.begin() as connection:
            runs = await last_runs(connection, {pair for batch in batches for pair in batch.pairs})
            strangers = [batch.stranger(runs) for batch in batches]
            good = [b for b, refusal in zip(batches, strangers, strict=True) if refusal is None]
            if good:
                await insert_prepared(connection, Prepared.joined([b.prepared for b in good]))
            taken = iter(await _count(connection, good, runs))
            return [next(taken) if refusal is None else refusal for refusal in strangers]


async def _count(
    connection: AsyncConnection, batches: Sequence[_Batch], runs: Mapping[tuple[UUID, str], RunView]
) -> list[list[Taken]]:
    """Let what can count of the batches count; what became of each record of each."""
    bids: dict[tuple[int, int], counting.Bid] = {}
    for number, batch in enumerate(batches):
        for record in batch.records:
            if record.opened.kind is Kind.RUN and record.closed:
                run = runs[record.evaluation_id(), batch.hotkey].run_id
                problem = record.value["problem"]["problem_id"]
                bid = counting.Bid(run, problem, record.opened.hash, batch.now)
                bids[number, record.index] = bid
    views = {run.run_id: run for run in runs.values()}
    told = dict(
        zip(bids, await counting.count_all(connection, views, list(bids.values())), strict=True)
    )
    return [
        [_taken(record, told.get((number, record.index))) for record in batch.records]
        for number, batch in enumerate(batches)
    ]


def _taken(record: Read, told: bool | WorkError | None) -> Taken:
    sealed = record.sealed.sealed
    reason: str | None = None
    if told is None:
        reason = "VERDICT" if record.opened.kind is Kind.VERDICT else "OPEN"
    elif isinstance(told, WorkError):
        reason = _REASONS[type(told)]
    return Taken(sealed.hash, sealed.seal.record, sealed.seal.kind, reason is None, reason)


def _refused(error: Exception) -> Exception:
    """The error as its caller is to see it."""
    if isinstance(error, SealForkError):
        return Refusal(Code.SEAL_CHAIN_FORK, error.message)
    if isinstance(error, RecordConflictError):
        return Refusal(Code.RECORD_CONFLICT, error.message)
    return error


def _checked(checks: Sequence[Callable[[], None]], records: Sequence[Read]) -> Prepared:
    for check in checks:
        check()
    return prepare([record.sealed for record in records])


def _parsed(stored: Sequence[tuple[str, JsonObject]]) -> dict[str, Problem]:
    try:
        return {problem_id: read_problem(value) for problem_id, value in stored}
    except (ValueError, ProblemError) as error:
        raise DatabaseError(f"a stored problem cannot be read: {error}") from error


def _opened(packed: bytes) -> Opened:
    """A record that was checked when it was stored."""
    opened = open_record("stored", zstandard.decompress(packed), None, Report())
    if opened is None:
        raise DatabaseError("a stored record cannot be read")
    return opened


def _problem_id(run: Opened) -> str:
    problem = run.value["problem"]
    return str(problem["problem_id"]) if isinstance(problem, dict) else ""
