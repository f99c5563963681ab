"""The race itself: all agents times all problems through one pool of workers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from arena.exceptions import RaceError, SealError
from arena.races.inputs import RaceInputs
from arena.races.progress import RaceProgress
from arena.races.schedule import Board, Task
from arena.runs.attempts import RetryPolicy, run_until_closed
from arena.runs.execution import World
from arena.runs.frames import SpooledRecord
from arena.runs.record import EncodedRecord, Kind, RunRecord, RunSummary, record_key
from arena.runs.spool import SpoolEntry, SpoolSink
from arena.runs.verdicts import VerdictSummary
from scoring.exceptions import Fault
from scoring.types import JsonObject

GIVE_UP_AFTER = 20
"""Problems left open in a row before the race stops: the host itself is broken, and
going through every other problem would only take time."""


class Carrier(Protocol):
    """Carries records on from the spool: into a database, or to the arena."""

    def add(self, key: str, entry: SpoolEntry) -> None:
        """Queue a record that the spool holds, under its key."""
        ...


class RaceSink:
    """Where a race's records go: the spool first, then the board and the upload queue."""

    def __init__(self, spool: SpoolSink, board: Board, uploader: Carrier) -> None:
        self._spool = spool
        self._board = board
        self._uploader = uploader
        self._runs: dict[str, SpoolEntry] = {}
        self.judge: JsonObject | None = None
        """Who gave the first verdict found, if one was."""

    async def put(self, record: EncodedRecord) -> None:
        """Safe on disk when this returns; in the database as soon as it is there."""
        # Read in a thread: the gateway answers agents on this loop.
        summary = await asyncio.to_thread(_summary, record)
        entry = await self._spool.append(record)
        self._note(entry, summary)

    async def load(self) -> None:
        """Take in what earlier processes left in the spool. Before the first `put`."""
        found = await asyncio.to_thread(
            lambda: [(entry, _summary(_sealed(found))) for entry, found in self._spool.load()]
        )
        for entry, summary in found:
            self._note(entry, summary)

    async def read(self, run_id: str) -> EncodedRecord:
        """The record of a run that was put or loaded before."""
        return (await self._spool.read(self._runs[run_id])).record

    def _note(self, entry: SpoolEntry, summary: _Summary) -> None:
        try:
            if isinstance(summary, VerdictSummary):
                self._board.add_verdict(summary)
                self.judge = self.judge or summary.judge
            else:
                self._board.add(summary)
                self._runs[summary.run_id] = entry
        except KeyError as error:
            raise RaceError(
                f"a result on disk is not one of this race: {error}",
                remedy="give --out a new directory",
            ) from error
        kind = Kind.VERDICT if isinstance(summary, VerdictSummary) else Kind.RUN
        self._uploader.add(record_key(kind, summary.run_id), entry)


_Summary = RunSummary | VerdictSummary


def _sealed(found: SpooledRecord) -> EncodedRecord:
    """The record, if it has a seal of its own. Raises RaceError or SealError."""
    if found.seal_line is None:
        raise RaceError(
            "this race was begun before records were sealed: its results can be read, and"
            " nothing can be added to them",
            remedy="give --out a new directory",
        )
    if not found.sealed.bound:
        raise SealError("a result on disk stands beside the seal of another record")
    return found.record


def _summary(record: EncodedRecord) -> _Summary:
    try:
        if record.kind is Kind.VERDICT:
            return VerdictSummary.of(record.value)
        return RunSummary.of(record.value)
    except (KeyError, TypeError, ValueError) as error:
        raise RaceError(
            f"a result cannot be read: {error}", remedy="give --out a new directory"
        ) from error


@dataclass(frozen=True, slots=True)
class Race:
    """A race that is ready to go on: what is closed already is on the board."""

    world: World
    inputs: RaceInputs
    race_id: str
    board: Board
    sink: RaceSink
    policy: RetryPolicy
    workers: int
    phase: str = "race"

    async def run(self, progress: RaceProgress) -> None:
        """Run every open task. When cancelled, all sandboxes are killed and removed first.

        Raises RaceError when the host keeps failing, and SpoolError when results can no
        longer be kept. What is finished stays finished in every case.
        """
        host = HostHealth()
        tasks = iter(self.board.open())
        # While a run is judged its sandbox is gone, and its place is another's.
        places = asyncio.Semaphore(self.workers)
        judging = self.world.judge.concurrency if self.world.judge else 0
        try:
            async with asyncio.TaskGroup() as pool:
                for _ in range(self.workers + judging):
                    pool.create_task(self._work(tasks, progress, host, places))
        except ExceptionGroup as group:
            raise first_of(group) from None

    async def _work(
        self,
        tasks: Iterator[Task],
        progress: RaceProgress,
        host: HostHealth,
        places: asyncio.Semaphore,
    ) -> None:
        for task in tasks:
            record = await run_until_closed(
                self.world,
                self.inputs.agents[task.agent],
                self.inputs.problems[task.problem],
                self.sink,
                policy=self.policy,
                race_id=self.race_id,
                phase=self.phase,
                first_attempt=self.board.next_attempt(task),
                slot=places,
            )
            progress.done(RunSummary.of(record.to_json()))
            host.watch(record)


class HostHealth:
    """Notices when problem after problem is left open."""

    def __init__(self) -> None:
        self._open_in_a_row = 0

    def watch(self, record: RunRecord) -> None:
        """Raises RaceError after `GIVE_UP_AFTER` open problems without a closed one between."""
        if record.closed or record.failure is None:
            self._open_in_a_row = 0
            return
        self._open_in_a_row += 1
        if self._open_in_a_row >= GIVE_UP_AFTER:
            raise RaceError(
                f"{GIVE_UP_AFTER} problems in a row could not be run, the last one because:"
                f" {record.failure.message}",
                fault=Fault.VALIDATOR,
                remedy="mend it (`arena doctor` checks the machine) and start the race again",
            )


def first_of(group: ExceptionGroup[Exception]) -> Exception:
    """The exception that ended the pool; the others are its consequences."""
    first = group.exceptions[0]
    return first_of(first) if isinstance(first, ExceptionGroup) else first
