"""What pages read, kept at hand: season and bank folded once, names, races with numbers.

A request reads what was appended since the last one, and folds no journal from its
beginning. Sums over the record tables are kept for a few seconds.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, TypeVar, cast
from uuid import NAMESPACE_URL, UUID, uuid5

from fastapi import Depends, Query, Request
from sqlalchemy import select

from arena.api.limits import RateLimit
from arena.api.services import Services
from arena.db import schema
from arena.journal import Event
from arena.problems.bank import Bank
from arena.problems.following import BankFollower
from arena.season.following import SeasonFollower
from arena.season.record import DrawRecord, record_of
from arena.season.release import Release, release_of
from arena.season.results import RaceResult
from arena.season.state import STREAM, Race, Season, Stage, VoidRace
from arena.submissions.store import AgentVersion, SubmissionStore

T = TypeVar("T")

_RACES = uuid5(NAMESPACE_URL, "sn15-arena race")
KEPT_S = 10.0
"""How long a sum over tables is served without being made again, in seconds."""
SELECTION_S, SELECTIONS = 600.0, 6.0
"""A hotkey may select who races six times at once, and then once in ten minutes."""
READERS = 2
"""Records that are read whole at once."""
MAX_PAGE = 200
MAX_OFFSET = 100_000

Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]
Offset = Annotated[int, Query(ge=0, le=MAX_OFFSET)]
SuiteId = Annotated[int | None, Query(ge=0, le=2**31 - 1)]


@dataclass(frozen=True, slots=True)
class RaceView:
    """A race of the season under the id and the number that the SDK's models want. `status`
    is `qualifying`, `awaiting_beacon`, `racing`, `completed` or `void`."""

    number: int
    race: Race | RaceResult | VoidRace

    @property
    def name(self) -> str:
        """The season's own id."""
        return self.race.race_id

    @property
    def race_id(self) -> UUID:
        """A UUID that follows from it."""
        return race_uuid(self.name)

    @property
    def status(self) -> str:
        """How far it is."""
        if isinstance(self.race, RaceResult):
            return "completed"
        if isinstance(self.race, VoidRace):
            return "void"
        return self.race.stage.value

    @property
    def open(self) -> bool:
        """Whether it is not over."""
        return isinstance(self.race, Race)


def race_uuid(name: str) -> UUID:
    """The id of a race for clients that want a UUID."""
    return uuid5(_RACES, name)


def version_uuid(version: str) -> UUID:
    """The id of an agent version. The arena's own are UUIDs."""
    try:
        return UUID(version)
    except ValueError:
        return uuid5(_RACES, version)


def races_of(season: Season) -> list[RaceView]:
    """All races, oldest first, counted from 1: ids hold their dates, and sort."""
    known: list[Race | RaceResult | VoidRace] = [*season.results, *season.voids]
    known += [race for race in (season.running, season.open) if race is not None]
    known.sort(key=lambda race: race.race_id)
    return [RaceView(number, race) for number, race in enumerate(known, 1)]


def current_race(season: Season) -> Race | None:
    """The race that runs, else the one in qualifying."""
    return season.running or season.open


def locked(season: Season) -> bool:
    """Whether who races next is settled and not drawn yet."""
    return season.open is not None and season.open.stage is not Stage.QUALIFYING


class Views:
    """One an app. Driver errors pass through."""

    def __init__(self, services: Services) -> None:
        self._clock = services.clock
        self._engine = services.engine
        self._season = SeasonFollower(services.journal)
        self._bank = BankFollower(services.journal)
        self._release: tuple[tuple[int, int, datetime], Release] | None = None
        self._kept: dict[object, tuple[datetime, Any]] = {}
        self.versions = SubmissionStore(services.engine)
        self.reading = asyncio.Semaphore(READERS)
        """Held while a record is read whole, which costs a core for a moment."""
        self.selections = RateLimit(1 / SELECTION_S, SELECTIONS)
        """Selections of a hotkey: each is an entry of the journal, for good."""

    async def season(self) -> Season:
        """The season now."""
        return (await self._season.current()).season

    async def draw_record(self, race: str) -> DrawRecord:
        """The record of a race's draw, from its own entries of the journal alone."""
        await self._season.current()
        table = schema.journal.c
        query = select(table.kind, table.at, table.data).where(
            table.stream == STREAM, table.sequence.in_(self._season.draws.get(race, []))
        )
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query.order_by(table.sequence))).all()
        # In a thread: a listing has a row for every held-out problem.
        return await asyncio.to_thread(
            lambda: record_of((Event(r.kind, r.at, json.loads(r.data)) for r in rows), race)
        )

    async def bank(self) -> Bank:
        """The bank now."""
        return await self._bank.current()

    async def release(self) -> Release:
        """What of the records and of agents' code is public now."""
        bank, loaded = await self._bank.current(), await self._season.current()
        # Embargoes end at noon: what is public changes with the minute, at most.
        minute = self._clock().replace(second=0, microsecond=0)
        key = (bank.entries, loaded.entries, minute)
        if self._release is None or self._release[0] != key:
            self._release = key, release_of(bank, loaded.season, minute)
        return self._release[1]

    async def named(self, versions: Iterable[str]) -> dict[str, AgentVersion]:
        """Versions with their agents' names, by id; those that the arena has."""
        ids = {version_uuid(version) for version in versions}
        found = await self.versions.named(sorted(ids))
        return {str(version_id): version for version_id, version in found.items()}

    async def kept(
        self, key: object, make: Callable[[], Awaitable[T]], seconds: float = KEPT_S
    ) -> T:
        """What `make` gives, made again after a while."""
        now = self._clock()
        found = self._kept.get(key)
        if found is not None and timedelta(0) <= now - found[0] < timedelta(seconds=seconds):
            return cast("T", found[1])
        value = await make()
        if len(self._kept) > 1_000:
            self._kept.clear()
        self._kept[key] = now, value
        return value


def views_of(request: Request) -> Views:
    """The views of the app that answers this request; made with the first one."""
    state = request.app.state
    if not hasattr(state, "views"):
        state.views = Views(state.services)
    return cast("Views", state.views)


ViewsDep = Annotated[Views, Depends(views_of)]
