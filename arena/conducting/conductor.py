"""The calendar's driver: does all that is due, whenever it is asked to look.

Every decision follows from the journals and the tables, and everything that is written is
written once, whoever writes it: a conductor that is killed between any two writes is followed
by one that goes on as if it had not been. Steps do not depend on each other's success; what
failed is tried again at the next look.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from arena.api.ticks import CONDUCTOR, tick
from arena.conducting import daily, giving_up, qualifying, racing, stock
from arena.conducting.calendar import Calendar
from arena.conducting.members import Members
from arena.conducting.metrics import ConductorMetrics
from arena.conducting.parts import Parts
from arena.conducting.work import Done, Work
from arena.db.engine import database_error
from arena.exceptions import ArenaError, DatabaseError, DatabaseUnreachableError

_log = structlog.get_logger(__name__)

LOCK = 0x43_41_4C_45_4E_44
"""Key of the advisory lock that lets one conductor of a database look at a time; "CALEND"."""
SLOW_RETRY = timedelta(minutes=10)
"""Between two tries of what takes long: growth, clusters, rotation."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One thing to look at. `every`: how long after a success, and after a failure, it rests."""

    name: str
    run: Callable[[Work], Awaitable[None]]
    every: timedelta = timedelta(0)
    again: timedelta = timedelta(0)


class Conductor:
    """Drives one arena's calendar. Any number may run: one looks at a time."""

    def __init__(self, parts: Parts, metrics: ConductorMetrics | None = None) -> None:
        self._parts = parts
        self._metrics = metrics or ConductorMetrics()
        self._calendar: Calendar | None = None
        self._members = Members()
        self._told: dict[tuple[str, str], str] = {}
        self._resting: dict[str, datetime] = {}
        """Until when a step rests. Forgotten with the process, which costs a look."""

    async def step(self, now: datetime) -> list[Done]:
        """Do all that is due at `now`, and say what was done: nothing when nothing is due, or
        when another conductor is at it.

        Raises DatabaseUnreachableError, and nothing else that passes by itself.
        """
        started = time.monotonic()
        work = Work(now, self._metrics, self._told)
        try:
            async with _alone(self._parts.engine) as alone:
                if alone:
                    await self._look(work)
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            self._calendar = None
            raise database_error(error, "the database") from error
        except BaseException:
            self._calendar = None
            raise
        finally:
            self._metrics.seconds.observe(time.monotonic() - started)
        return work.done

    async def expire(self, now: datetime) -> None:
        """Take back the leases that ran out; safe beside everything. To be called often."""
        await self._parts.queue.expire(now)

    async def _look(self, work: Work) -> None:
        calendar = self._calendar or Calendar(self._parts.journal)
        self._calendar = calendar
        try:
            await calendar.refresh()
        except DatabaseError:
            raise
        except ArenaError:
            self._calendar = None
            raise
        for step in self._steps(calendar):
            if work.now < self._resting.get(step.name, work.now):
                continue
            failed = len(work.failed)
            with work.trying(step.name):
                await step.run(work)
            rests = step.again if len(work.failed) > failed else step.every
            self._resting[step.name] = work.now + rests
        if work.broken:
            self._calendar = None
        await tick(self._parts.engine, CONDUCTOR, work.now)
        self._metrics.looked_at.set(work.now.timestamp())

    def _steps(self, calendar: Calendar) -> list[_Step]:
        """In their order: first what has happened is entered, in the order of the calendar;
        then what follows from it."""
        parts = self._parts
        chain_every = timedelta(seconds=parts.settings.chain_every)
        return [
            _Step("expire", lambda work: self.expire(work.now)),
            _Step("rules", lambda work: racing.set_rules(parts, calendar, work)),
            _Step("qualify", lambda work: qualifying.qualify(parts, calendar, work)),
            _Step("report", lambda work: racing.report(parts, calendar, work)),
            _Step("note raced", lambda work: racing.note_raced(calendar, work)),
            _Step("members", lambda work: self._members.step(parts, calendar, work),
                  chain_every, chain_every),
            _Step("tick", lambda work: racing.tick(calendar, work)),
            _Step("give up", lambda work: giving_up.give_up(parts, calendar, work)),
            _Step("draw", lambda work: racing.draw(parts, calendar, work)),
            _Step("note drawn", lambda work: racing.note_raced(calendar, work)),
            _Step("race", lambda work: racing.open_evaluations(parts, calendar, work)),
            _Step("rotate", lambda work: stock.rotate_bank(parts, calendar, work),
                  again=SLOW_RETRY),
            _Step("clusters", lambda work: stock.reconcile_clusters(parts, calendar, work),
                  again=SLOW_RETRY),
            _Step("grow", lambda work: stock.grow_bank(parts, calendar, work), again=SLOW_RETRY),
            _Step("open race", lambda work: racing.open_race(parts, calendar, work)),
            _Step("qualifying", lambda work: qualifying.open_qualifying(parts, calendar, work)),
            _Step("log", lambda work: daily.close_log(parts, work)),
            _Step("root", lambda work: daily.commit_root(parts, work), again=chain_every),
            _Step("export", lambda work: daily.export(parts, work), chain_every, SLOW_RETRY),
        ]  # fmt: skip


@asynccontextmanager
async def _alone(engine: AsyncEngine) -> AsyncIterator[bool]:
    """Whether this look has the lock. It goes with the connection, so with the process, too.

    Were the connection lost in the middle, two might look at once: the journals and the keys
    of the tables settle that, as they settle a kill.
    """
    async with engine.connect() as connection:
        connection = await connection.execution_options(isolation_level="AUTOCOMMIT")
        alone = bool(await connection.scalar(select(func.pg_try_advisory_lock(LOCK))))
        try:
            yield alone
        finally:
            if alone and not connection.closed:
                await connection.scalar(select(func.pg_advisory_unlock(LOCK)))


async def conduct(
    conductor: Conductor,
    clock: Callable[[], datetime],
    *,
    every_s: float,
    stopping: asyncio.Event,
    revive: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Look again and again until `stopping`; leases are taken back meanwhile, too.

    A database that is away is waited for; `revive` starts one that is ours.
    """
    expiring = asyncio.create_task(_expire(conductor, clock, every_s), name="expire")
    away = False
    try:
        while not stopping.is_set():
            try:
                await conductor.step(clock())
            except ArenaError as error:
                if not away:
                    _log.error("the calendar waits", code=error.code, error=f"{error!s:.500}")
                away = True
                await _revived(error, revive)
            else:
                if away:
                    _log.info("the calendar goes on")
                away = False
            await _pause(stopping, every_s)
    finally:
        expiring.cancel()
        await asyncio.gather(expiring, return_exceptions=True)


async def _revived(error: ArenaError, revive: Callable[[], Awaitable[None]] | None) -> None:
    if revive is None or not isinstance(error, DatabaseUnreachableError):
        return
    try:
        await revive()
    except ArenaError as again:
        _log.warning("the database does not start", code=again.code)


async def _expire(conductor: Conductor, clock: Callable[[], datetime], every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        try:
            await conductor.expire(clock())
        except ArenaError as error:
            _log.warning("leases are taken back later", code=error.code)


async def _pause(stopping: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stopping.wait()
    except TimeoutError:
        pass
