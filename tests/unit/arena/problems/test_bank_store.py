"""The bank in a journal: changes are decided on its newest state, and never written broken."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from arena.exceptions import BankError, JournalConflictError
from arena.journal import Event, MemoryJournal
from arena.problems.bank import RETIRED, STREAM
from arena.problems.bank_store import LoadedBank, change_bank, file_provenance, load_bank
from arena.problems.decisions import retire
from arena.problems.intake import Intake
from arena.problems.pools import Pool
from scoring.exceptions import ProblemError
from tests.unit.arena.problems.banks import FILE, START, problem


async def bring(loaded: LoadedBank, *names: str) -> tuple[Sequence[Event], int]:
    intake = Intake(loaded.bank, loaded.clusters, START)
    taken = intake.take([problem(name) for name in names], Pool.OPEN, FILE)
    return taken.events, len(taken.admitted)


async def test_a_change_is_appended_and_read_back() -> None:
    journal = MemoryJournal()
    bank, admitted = await change_bank(journal, lambda loaded: bring(loaded, "a", "b"))
    assert (admitted, bank.entries) == (2, 2)
    loaded = await load_bank(journal)
    assert list(loaded.bank) == list(bank)
    assert len(loaded.clusters) == 2


async def test_a_change_is_decided_anew_when_somebody_else_was_faster() -> None:
    journal = MemoryJournal()
    seen: list[int] = []

    async def decide(loaded: LoadedBank) -> tuple[Sequence[Event], int]:
        seen.append(loaded.bank.entries)
        if len(seen) == 1:
            await change_bank(journal, lambda other: bring(other, "first"))
        return await bring(loaded, "second")

    bank, _ = await change_bank(journal, decide)
    assert seen == [0, 1]
    assert [holding.problem_id for holding in bank] == ["first", "second"]


async def test_it_gives_up_when_others_are_always_faster() -> None:
    journal = MemoryJournal()
    tries = 0

    async def decide(loaded: LoadedBank) -> tuple[Sequence[Event], int]:
        nonlocal tries
        tries += 1
        await change_bank(journal, lambda other: bring(other, f"other{tries}"))
        return await bring(loaded, "mine")

    with pytest.raises(JournalConflictError):
        await change_bank(journal, decide)
    assert tries == 5


async def test_what_cannot_be_is_never_written_and_nothing_is_nothing() -> None:
    journal = MemoryJournal()
    await change_bank(journal, lambda loaded: bring(loaded, "a"))

    async def broken(_: LoadedBank) -> tuple[Sequence[Event], None]:
        return [Event(RETIRED, START, {"problems": ["nobody"], "reason": "x"})], None

    with pytest.raises(BankError):
        await change_bank(journal, broken)

    async def again(loaded: LoadedBank) -> tuple[Sequence[Event], None]:
        return retire(loaded.bank, [], "x", START), None

    await change_bank(journal, again)
    assert len(await journal.read(STREAM)) == 1


def test_a_files_provenance_has_no_directory(tmp_path: Path) -> None:
    path = tmp_path / "suite.jsonl"
    path.write_bytes(b"x")
    found = file_provenance(path)
    assert found.name == "suite.jsonl"
    assert found.sha256 == "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    with pytest.raises(ProblemError, match="cannot be read"):
        file_provenance(tmp_path / "absent")
