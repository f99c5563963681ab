"""The season as the journal has it now, without folding it from the beginning each time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

from arena.journal import Entry, Journal
from arena.season.state import RACE_CLOSED, RACE_DRAWN, RACE_OPENED, STREAM, Season
from arena.season.store import LoadedSeason
from scoring.types import JsonObject


class SeasonFollower:
    """Keeps a folded season and takes in what was appended since. One an event loop."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._loaded: LoadedSeason | None = None
        self._lock = asyncio.Lock()
        self.draws: dict[str, list[int]] = {}
        """By race: the numbers of the entries that its draw's record is made of."""

    async def current(self) -> LoadedSeason:
        """The season now; an empty one before its first event. It goes on with later calls:
        read what belongs together before the next `await`, and change nothing.

        Raises SeasonError for a journal that cannot be folded, and as `Journal.read`.
        """
        async with self._lock:
            loaded = self._loaded
            if loaded is None:
                entries = await self._journal.read(STREAM)
                # In a thread: a year of races takes a while.
                season = await asyncio.to_thread(Season.folded, [e.event for e in entries])
                self._loaded = loaded = LoadedSeason(season, len(entries))
                self.draws = {}
                self._note(entries)
                return loaded
            entries = await self._journal.read(STREAM, after=loaded.entries)
            self._loaded = None  # an event that cannot be applied leaves half a state
            for entry in entries:
                loaded.season.apply(entry.event)
                loaded.entries = entry.sequence
            self._note(entries)
            self._loaded = loaded
            return loaded

    def _note(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            data = entry.event.data
            if entry.event.kind == RACE_OPENED:
                data = cast("JsonObject", data["commitment"])
            elif entry.event.kind not in (RACE_DRAWN, RACE_CLOSED):
                continue
            self.draws.setdefault(str(data["race_id"]), []).append(entry.sequence)
