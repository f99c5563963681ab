"""The bank in a journal: read it, decide, append; again when somebody else was faster."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from arena.exceptions import JournalConflictError
from arena.journal import Event, Journal
from arena.problems.bank import STREAM, Bank
from arena.problems.holdings import Origin, Provenance
from arena.problems.intake import clusters_of
from arena.problems.suite import UNREADABLE
from arena.settings import ArenaSettings
from scoring.exceptions import ProblemError

if TYPE_CHECKING:  # loads datasketch, which not every command needs
    from arena.problems.clusters import Clusters

T = TypeVar("T")

TRIES = 5
"""How often a change is decided anew when the journal has gone on."""


@dataclass
class LoadedBank:
    """The bank as the journal has it, and its clusters, which are found when first asked for."""

    bank: Bank
    events: Sequence[Event]

    @cached_property
    def clusters(self) -> Clusters:
        """The index of all its problems."""
        return clusters_of(self.events)


Decide = Callable[[LoadedBank], Awaitable[tuple[Sequence[Event], T]]]
"""Decides on a bank, and may apply the events to it; the events, and what else came of it."""


async def load_bank(journal: Journal) -> LoadedBank:
    """Fold the stream `bank`. Raises BankError when it holds no bank."""
    events = [entry.event for entry in await journal.read(STREAM)]
    return LoadedBank(Bank.folded(events), events)


async def change_bank(journal: Journal, decide: Decide[T]) -> tuple[Bank, T]:
    """Decide on the journal's bank and append what was decided; the bank after it.

    What cannot be folded is never written. Raises whatever `decide` raises, and
    JournalConflictError when others were faster several times.
    """
    for attempt in range(1, TRIES + 1):
        loaded = await load_bank(journal)
        events, result = await decide(loaded)
        bank = loaded.bank
        if bank.entries == len(loaded.events):
            for event in events:
                bank.apply(event)
        if not events:
            return bank, result
        try:
            await journal.append(STREAM, events, after=len(loaded.events))
        except JournalConflictError:
            if attempt == TRIES:
                raise
            continue
        return bank, result
    raise AssertionError("unreachable")


@asynccontextmanager
async def open_journal(settings: ArenaSettings) -> AsyncIterator[Journal]:
    """The journal in the arena's database: the one of the settings, or the embedded one.

    Raises DatabaseError or DatabaseUnreachableError.
    """
    # Only here: the drivers and the migrations take a second to load.
    from arena.db.engine import open_database
    from arena.db.journal import PostgresJournal

    async with open_database(settings) as database:
        await database.ready()
        yield PostgresJournal(database.engine)


def file_provenance(path: Path) -> Provenance:
    """Where the problems of a file come from. Raises ProblemError when it cannot be read."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ProblemError(f"{path}: cannot be read: {error.strerror}", code=UNREADABLE) from None
    return Provenance(Origin.FILE, name=path.name, sha256=digest)
