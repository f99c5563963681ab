"""Append-only journals: what happened, in order, as the state machines of this room fold it.

Bank, clusters, partition, calendar and standings are pure: their state is what folding
their journal gives, so that anyone with the journal has the same state. A journal lives in
memory (simulations, tests) or in the database (`arena/db/journal.py`), where its table
refuses UPDATE, DELETE and TRUNCATE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from arena.exceptions import JournalConflictError
from scoring.types import JsonObject


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened. `kind` is a stable name, such as `problem.imported`."""

    kind: str
    at: datetime
    data: JsonObject


@dataclass(frozen=True, slots=True)
class Entry:
    """An event with its place in its stream, counted from 1."""

    stream: str
    sequence: int
    event: Event


class Journal(Protocol):
    """Streams of events."""

    async def append(self, stream: str, events: Sequence[Event], *, after: int) -> list[Entry]:
        """Add events behind entry number `after`, all or none.

        Raises JournalConflictError when the stream has gone on since: read on and decide
        again.
        """
        ...

    async def read(self, stream: str, *, after: int = 0) -> list[Entry]:
        """The entries behind number `after`, in order."""
        ...


class MemoryJournal:
    """A journal for one process, gone with it."""

    def __init__(self) -> None:
        self._streams: dict[str, list[Entry]] = {}

    async def append(self, stream: str, events: Sequence[Event], *, after: int) -> list[Entry]:
        """As `Journal.append`."""
        entries = self._streams.setdefault(stream, [])
        if len(entries) != after:
            raise JournalConflictError(f"{stream} has {len(entries)} entries, expected {after}")
        added = [Entry(stream, after + i, event) for i, event in enumerate(events, 1)]
        entries.extend(added)
        return added

    async def read(self, stream: str, *, after: int = 0) -> list[Entry]:
        """As `Journal.read`."""
        return self._streams.get(stream, [])[after:]
