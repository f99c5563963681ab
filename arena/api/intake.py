"""Sealed records of validators on their way into the database: checked, stored, counted once.

A batch is taken whole or not at all, in one transaction: records, seals, and which of them
count. It may come again, from whichever part of a spool. A record whose run was lost is
stored all the same, so that its validator's chain has no hole; it does not count until the
evaluation is that validator's again and it sends the record once more.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

import zstandard
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from arena.api.errors import Code, Refusal
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
from arena.exceptions import DatabaseError, RecordConflictError, SealForkError
from arena.records.store import insert_prepared, prepare
from arena.records.verification.contents import Opened, open_record
from arena.records.verification.findings import Report
from arena.runs.record import Kind
from arena.work import counting
from arena.work.exceptions import (
    EvaluationNotFoundError,
    LeaseExpiredError,
    OtherRecordError,
    RunAlreadyCompleteError,
)
from arena.work.types import Evaluation
from scoring.exceptions import ProblemError
from scoring.reading import read_problem
from scoring.types import JsonObject, Problem

_KNOWN_EVALUATIONS = 256
"""Evaluations whose inputs are remembered: they never change."""


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

    async def take(self, hotkey: str, body: bytes) -> list[Taken]:
        """Store a batch of this hotkey's records.

        Raises Refusal for the first that does not hold; nothing of the batch is stored then.
        """
        now = self._services.clock()
        records = await asyncio.to_thread(self._read, hotkey, body, now)
        await self._check(records)
        prepared = await prepare([record.sealed for record in records])
        try:
            async with self._services.engine.begin() as connection:
                runs = await self._runs(connection, records, hotkey)
                await insert_prepared(connection, prepared)
                taken = await self._count(connection, records, runs, hotkey, now)
        except SealForkError as error:
            raise Refusal(Code.SEAL_CHAIN_FORK, error.message) from None
        except RecordConflictError as error:
            raise Refusal(Code.RECORD_CONFLICT, error.message) from None
        for one in taken:
            outcome = "counted" if one.counted else "stored"
            self._services.metrics.records.labels(outcome).inc()
        return taken

    def _read(self, hotkey: str, body: bytes, now: datetime) -> list[Read]:
        pairs = unpack(body, self._limits)
        return [read(i, content, seal, hotkey, now) for i, (content, seal) in enumerate(pairs)]

    async def _check(self, records: Sequence[Read]) -> None:
        """Every record against what the arena knows. Raises Refusal."""
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
        await asyncio.to_thread(_all, checks)

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

    async def _runs(
        self, connection: AsyncConnection, records: Sequence[Read], hotkey: str
    ) -> dict[UUID, UUID]:
        """The caller's last turn at each evaluation, in the order in which they are locked.

        Raises Refusal when it never had one.
        """
        wanted = {record.evaluation_id(): record for record in records}
        table = schema.evaluation_runs.c
        query = (
            select(table.evaluation_id, table.run_id)
            .where(table.evaluation_id.in_(wanted), table.validator == hotkey)
            .order_by(table.evaluation_id, table.attempt)
        )
        rows = await connection.execute(query)
        found = {row.evaluation_id: row.run_id for row in rows}
        for evaluation, record in wanted.items():
            if evaluation not in found:
                record.refuse(Code.NOT_RUN_OWNER, "this hotkey has no run of its evaluation")
        return found

    async def _count(
        self,
        connection: AsyncConnection,
        records: Sequence[Read],
        runs: dict[UUID, UUID],
        hotkey: str,
        now: datetime,
    ) -> list[Taken]:
        taken: dict[int, Taken] = {}
        # In one order for everybody, so that no two batches wait for each other.
        for record in sorted(records, key=lambda r: (runs[r.evaluation_id()].bytes, r.index)):
            reason: str | None = "VERDICT" if record.opened.kind is Kind.VERDICT else None
            if reason is None and not record.closed:
                reason = "OPEN"
            if reason is None:
                reason = await self._counted(connection, record, runs, hotkey, now)
            sealed = record.sealed.sealed
            taken[record.index] = Taken(
                sealed.hash, sealed.seal.record, sealed.seal.kind, reason is None, reason
            )
        return [taken[index] for index in sorted(taken)]

    async def _counted(
        self,
        connection: AsyncConnection,
        record: Read,
        runs: dict[UUID, UUID],
        hotkey: str,
        now: datetime,
    ) -> str | None:
        """Let it count; why not, when it does not."""
        run = runs[record.evaluation_id()]
        problem = record.value["problem"]["problem_id"]
        try:
            await counting.count(connection, run, hotkey, problem, record.opened.hash, now)
        except LeaseExpiredError:
            return Code.LEASE_EXPIRED
        except RunAlreadyCompleteError:
            return Code.RUN_ALREADY_COMPLETE
        except OtherRecordError:
            return Code.RECORD_CONFLICT
        return None


def _all(checks: Sequence[Callable[[], None]]) -> None:
    for check in checks:
        check()


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
