"""What a file is compared with: earlier submissions and the bank's problems, kept up to date."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from arena.problems.bank import Bank
from arena.problems.following import BankFollower
from arena.submissions.answers import AnswerIndex
from arena.submissions.copies import CopyIndex
from arena.submissions.fingerprints import Fingerprint
from arena.submissions.store import Indexed, SubmissionStore
from scoring.types import Problem


class KnownCopies:
    """The index of copies: first all stored fingerprints, oldest first, then what comes."""

    def __init__(self, store: SubmissionStore, bases: Sequence[Fingerprint]) -> None:
        """`bases`: files that anyone may build on."""
        self._store = store
        self._index = CopyIndex(bases)
        self._entry = 0

    async def current(self, connection: AsyncConnection) -> CopyIndex:
        """The index of all versions that this connection sees."""
        new = await self._store.indexed(connection, after=self._entry)
        if new:
            await asyncio.to_thread(self._add_all, new)
        return self._index

    def _add_all(self, new: Sequence[Indexed]) -> None:
        for one in new:
            self._index.add(one.version, one.hotkey, one.fingerprint)
            self._entry = one.entry


class KnownAnswers:
    """The index of the answers of every problem in use, suites among them; retired ones are
    nobody's secret."""

    def __init__(self, bank: BankFollower) -> None:
        self._bank = bank
        self._index: AnswerIndex | None = None
        self._entries = -1

    async def current(self) -> AnswerIndex:
        """The index of the bank as it is now."""
        bank = await self._bank.current()
        if self._index is None or bank.entries != self._entries:
            entries, problems = bank.entries, _in_use(bank)
            self._index = await asyncio.to_thread(AnswerIndex.build, problems)
            self._entries = entries
        return self._index


def _in_use(bank: Bank) -> list[Problem]:
    return [holding.problem for holding in bank if not holding.retired]
