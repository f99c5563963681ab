"""The season as the journal has it now, without folding it from the beginning each time."""

from __future__ import annotations

import asyncio

from arena.journal import Journal
from arena.season.state import STREAM, Season
from arena.season.store import LoadedSeason


class SeasonFollower:
    """Keeps a folded season and takes in what was appended since. One an event loop."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._loaded: LoadedSeason | None = None
        self._lock = asyncio.Lock()

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
                return loaded
            entries = await self._journal.read(STREAM, after=loaded.entries)
            self._loaded = None  # an event that cannot be applied leaves half a state
            for entry in entries:
                loaded.season.apply(entry.event)
                loaded.entries = entry.sequence
            self._loaded = loaded
            return loaded
