"""The season in a journal: read it, decide, append; again when somebody else was faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from arena.exceptions import JournalConflictError
from arena.journal import Event, Journal
from arena.season.commands import Command
from arena.season.deciding import decide
from arena.season.state import STREAM, Season

TRIES = 5
"""How often a command is decided anew when the journal has gone on."""


@dataclass
class LoadedSeason:
    """A season and how many entries of its stream it has folded."""

    season: Season
    entries: int


async def load_season(journal: Journal) -> LoadedSeason:
    """Fold the stream `season`. Raises SeasonError when it holds none."""
    entries = await journal.read(STREAM)
    return LoadedSeason(Season.folded(entry.event for entry in entries), len(entries))


async def command(
    journal: Journal, loaded: LoadedSeason, order: Command, now: datetime
) -> Sequence[Event]:
    """Decide on an order and append what follows; `loaded` is brought up to date.

    Raises SeasonError or DrawError for an order that is refused, and JournalConflictError
    when others were faster several times.
    """
    for attempt in range(1, TRIES + 1):
        # First: a refusal decided on what was true a moment ago would be none.
        for entry in await journal.read(STREAM, after=loaded.entries):
            loaded.season.apply(entry.event)
            loaded.entries = entry.sequence
        events = decide(loaded.season, order, now)
        if not events:
            return events
        try:
            await journal.append(STREAM, events, after=loaded.entries)
        except JournalConflictError:
            if attempt == TRIES:
                raise
            continue
        for event in events:
            loaded.season.apply(event)
        loaded.entries += len(events)
        return events
    raise AssertionError("unreachable")
