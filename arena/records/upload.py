"""From the spool into the database, whenever the database is there.

The spool is where a record is safe; the database is where it is found. This task
carries records over in order and outlives outages: it says once that the database is
away and once that it is back, and holds no record in memory meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import islice
from typing import TypeVar

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy.exc import SQLAlchemyError

from arena.db.engine import Database, database_error
from arena.db.guard import Guard
from arena.exceptions import ArenaError, DatabaseError, DatabaseUnreachableError, Fault
from arena.records.store import RaceEntry, RecordStore
from arena.runs.seal import Sealed, SealedRecord
from arena.runs.spool import SpoolEntry, SpoolSink

_T = TypeVar("_T")

_BATCH_RECORDS = 32
_BATCH_BYTES = 4 << 20
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0


class Uploader:
    """Carries one race's records from its spool into the database."""

    def __init__(
        self,
        database: Database,
        spool: SpoolSink,
        race: RaceEntry,
        tell: Callable[[str], None],
    ) -> None:
        self._database = database
        self._store = RecordStore(database.engine)
        self._spool = spool
        self._race = race
        self._tell = tell
        self._pending: deque[tuple[str, SpoolEntry]] = deque()
        self._stored: set[str] | None = None
        """Keys of records known to be in the database; None while it has to be asked (again)."""
        self._away: ArenaError | None = None
        self._opening = asyncio.Lock()
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def pending(self) -> int:
        """Records that are not in the database yet."""
        return len(self._pending)

    def add(self, key: str, entry: SpoolEntry) -> None:
        """Queue a record that the spool holds, under its key."""
        self._pending.append((key, entry))
        self._idle.clear()
        self._wake.set()

    async def connect(self) -> None:
        """First contact. An outage is told and waited out later.

        Raises DatabaseError when the settings are wrong: that will not pass by itself.
        """
        try:
            await self._open()
        except DatabaseError as error:
            if error.fault is Fault.CALLER:
                raise
            self._say_away(error)
            return
        if self._database.guard is Guard.TRIGGERS:
            self._tell(Guard.TRIGGERS.sentence)

    async def stored_head(self, validator: str) -> Sealed | None:
        """The last seal of a validator in the database; None too when it is away."""
        if self._stored is None:
            return None
        return await self._guarded(lambda: self._store.head(validator))

    async def run(self) -> None:
        """Carry records over until cancelled."""
        pause = _FIRST_PAUSE_S
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                while self._pending:
                    await self._carry()
                    pause = _FIRST_PAUSE_S
                self._idle.set()
            except DatabaseError as error:
                self._say_away(error)
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._hurry.wait()
                self._hurry.clear()
                pause = min(2 * pause, _LONGEST_PAUSE_S)
                self._wake.set()

    async def drain(self, timeout_s: float) -> int:
        """Wait until all is stored, at most `timeout_s`; how many records are not.

        For the end of a race, while `run` is running.
        """
        self._hurry.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        return self.pending

    async def _open(self) -> set[str]:
        """Make the database answer and learn what it has; once, whoever asks first."""

        async def opened() -> set[str]:
            await self._database.ready()
            await self._store.register(self._race)
            return await self._store.stored_keys(self._race.race_id)

        async with self._opening:
            if self._stored is None:
                self._stored = await self._guarded(opened)
                if self._away is not None:
                    self._away = None
                    self._tell("the database is back; the results kept on disk go in now")
            return self._stored

    async def _carry(self) -> None:
        """Store the oldest pending records; they stay pending until that is certain."""
        stored = await self._open()
        batch: list[SealedRecord] = []
        taken = size = 0
        # A copy: records join the queue while this one waits for the disk.
        for key, entry in tuple(islice(self._pending, _BATCH_RECORDS)):
            if size >= _BATCH_BYTES:
                break
            taken += 1
            if key not in stored:
                batch.append((await self._spool.read(entry)).sealed)
                size += entry.length
        await self._guarded(lambda: self._store.put(batch))
        for _ in range(taken):
            self._pending.popleft()

    async def _guarded(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """Run `call`, with a driver's exception turned into one of ours."""
        try:
            return await call()
        except (SQLAlchemyError, OSError, TimeoutError, asyncpg.PostgresError) as error:
            raise database_error(error, self._database.where) from error

    def _say_away(self, error: ArenaError) -> None:
        if self._away is None:
            away = isinstance(error, DatabaseUnreachableError)
            what = "the database is away" if away else "the database does not take the results"
            self._tell(
                f"{what}: {error}; the race goes on and keeps its results in {self._spool.path}"
            )
        self._away = error
        self._stored = None
