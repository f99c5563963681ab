"""The season's journal: decided on what is there now, again when somebody was faster."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from arena.exceptions import JournalConflictError, SeasonError
from arena.journal import Entry, Event, MemoryJournal
from arena.season.commands import JoinValidator, SetRules
from arena.season.state import STREAM
from arena.season.store import TRIES, command, load_season
from tests.unit.arena.season.driving import RULES, START


class Contested(MemoryJournal):
    """A journal to which somebody else always writes first, `times` times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    async def append(self, stream: str, events: Sequence[Event], *, after: int) -> list[Entry]:
        if self.times:
            self.times -= 1
            there = len(await self.read(stream))
            rival = Event("validator.joined", START, {"validator": f"rival-{self.times}"})
            await super().append(stream, [rival], after=there)
        return await super().append(stream, events, after=after)


async def test_what_is_decided_stands_in_the_journal_and_in_the_season() -> None:
    journal = MemoryJournal()
    loaded = await load_season(journal)
    await command(journal, loaded, SetRules(RULES), START)
    await command(journal, loaded, JoinValidator("a"), START)
    again = await load_season(journal)
    assert again.entries == loaded.entries == 2
    assert again.season.validators == loaded.season.validators == {"a": START}


async def test_a_faster_writer_is_read_and_the_command_decided_anew() -> None:
    journal = Contested(times=2)
    loaded = await load_season(journal)
    await command(journal, loaded, JoinValidator("a"), START)
    assert set(loaded.season.validators) == {"a", "rival-0", "rival-1"}
    assert loaded.entries == len(await journal.read(STREAM)) == 3


async def test_who_is_always_slower_gives_up() -> None:
    journal = Contested(times=TRIES)
    loaded = await load_season(journal)
    with pytest.raises(JournalConflictError):
        await command(journal, loaded, JoinValidator("a"), START)
    assert "a" not in (await load_season(journal)).season.validators


async def test_nothing_is_refused_for_what_was_true_a_moment_ago() -> None:
    journal = MemoryJournal()
    stale, fresh = await load_season(journal), await load_season(journal)
    await command(journal, fresh, JoinValidator("a"), START)
    with pytest.raises(SeasonError):
        await command(journal, stale, JoinValidator(""), START)
    assert set(stale.season.validators) == {"a"}
    assert not await command(journal, stale, JoinValidator("a"), START)
