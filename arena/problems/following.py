"""The bank as the journal has it now, without folding it from the beginning each time."""

from __future__ import annotations

import asyncio

from arena.journal import Journal
from arena.problems.bank import STREAM, Bank


class BankFollower:
    """Keeps a folded bank and takes in what was appended since. One an event loop."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._bank: Bank | None = None
        self._lock = asyncio.Lock()

    async def current(self) -> Bank:
        """The bank now; an empty one before its first event. It goes on with later calls: read
        what belongs together before the next `await`, and change nothing.

        Raises BankError for a journal that cannot be folded, and as `Journal.read`.
        """
        async with self._lock:
            bank = self._bank
            if bank is None:
                entries = await self._journal.read(STREAM)
                # In a thread: a bank of thousands of problems takes a while.
                bank = await asyncio.to_thread(Bank.folded, [e.event for e in entries])
                self._bank = bank
                return bank
            entries = await self._journal.read(STREAM, after=bank.entries)
            self._bank = None  # an event that cannot be applied leaves half a state
            for entry in entries:
                bank.apply(entry.event)
            self._bank = bank
            return bank
