"""The journals of season and bank, as they are now, and the one way to write to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from arena.journal import Event, Journal
from arena.problems import bank as banks
from arena.problems.bank import Bank
from arena.problems.bank_store import Decide, LoadedBank, change_bank
from arena.season import state as seasons
from arena.season.commands import Command
from arena.season.state import Season
from arena.season.store import LoadedSeason, command

SKEW = timedelta(seconds=60)
"""How far another process's clock may be ahead: an event that it wrote a moment ago does not
stop the calendar. Beyond, nothing is decided until the clock has caught up."""


class Calendar:
    """Season and bank, folded as far as their journals went when last read."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._season = LoadedSeason(Season(), 0)
        self._bank = LoadedBank(Bank(), [])

    @property
    def season(self) -> Season:
        """The season as last read. Not to be changed."""
        return self._season.season

    @property
    def bank(self) -> Bank:
        """The bank as last read. Not to be changed."""
        return self._bank.bank

    @property
    def begun(self) -> bool:
        """Whether anything has happened in the season."""
        return self._season.entries > 0

    async def refresh(self) -> None:
        """Read on in both journals. Raises what they raise, SeasonError and BankError."""
        for entry in await self.journal.read(seasons.STREAM, after=self._season.entries):
            self.season.apply(entry.event)
            self._season.entries = entry.sequence
        events = [e.event for e in await self.journal.read(banks.STREAM, after=self.bank.entries)]
        for event in events:
            self.bank.apply(event)
        if events:
            self._bank = LoadedBank(self.bank, [*self._bank.events, *events])

    def moment(self, now: datetime, happened: datetime | None = None) -> datetime:
        """When an event is to be, that follows at `now` from what `happened` before.

        Never before the last event, so that a calendar that was away writes down what it
        missed when it happened, as far as the order of the journal allows.
        """
        at = now if happened is None else min(happened, now)
        last = self.season.now
        if last is None or last <= at:
            return at
        return last if last <= now + SKEW else at

    async def decide(self, order: Command, at: datetime) -> Sequence[Event]:
        """Decide on an order at `at` (`moment`) and append what follows. Raises as `command`."""
        return await command(self.journal, self._season, order, at)

    async def change_bank(
        self, decide: Callable[[LoadedBank, datetime], Sequence[Event]], now: datetime
    ) -> Sequence[Event]:
        """Decide on the journal's bank and append what follows. Raises as `change_bank`."""

        async def decided(loaded: LoadedBank) -> tuple[Sequence[Event], Sequence[Event]]:
            events = decide(loaded, self.bank_moment(loaded.bank, now))
            return events, events

        return await self.write_bank(decided)

    async def write_bank(self, decide: Decide[Sequence[Event]]) -> Sequence[Event]:
        """The same for a decision that waits for something."""
        _, events = await change_bank(self.journal, decide)
        await self.refresh()
        return events

    @staticmethod
    def bank_moment(bank: Bank, now: datetime) -> datetime:
        """When an event of the bank is to be: not before its last one, were it of a clock that
        is a little ahead."""
        last = bank.clock
        return last if last is not None and now < last <= now + SKEW else now
