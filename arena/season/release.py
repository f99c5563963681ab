"""What of the records is public: DESIGN.md's *Release*, from the bank and the season.

A record is released when its problem is retired from the bank and its agent's embargo is
over; an agent's code when it has won and that embargo is over. What neither bank nor season
knows is not released.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from arena.journal import Journal
from arena.problems import bank as banks
from arena.problems.bank import Bank
from arena.problems.release import Released, TextWithheld, text_withheld
from arena.season import state as seasons
from arena.season.embargo import code_public_at, embargo_over
from arena.season.state import Season


@dataclass(frozen=True, slots=True)
class Release:
    """The problems whose records are released, and the agents, by their source's hash, whose
    embargo is over. Both have to be, unless `everything` is released: of records that come
    from a public export already."""

    problems: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    everything: bool = False
    code: frozenset[str] = frozenset()
    """The agents, by their source's hash, whose code itself is public."""

    def __call__(self, problem_id: str, source: str) -> bool:
        """Whether a record of this problem and agent is released."""
        return self.everything or (problem_id in self.problems and source in self.sources)

    @property
    def digest(self) -> str:
        """SHA-256 over both, in hex."""
        listed = [str(self.everything), *sorted(self.problems), "", *sorted(self.sources)]
        return hashlib.sha256("\n".join(listed).encode()).hexdigest()


NOTHING = Release()
"""Of a race's directory nobody can tell what is released."""


def release_of(bank: Bank | None, season: Season | None, at: datetime) -> Release:
    """What is released at a moment."""
    if bank is None or season is None:
        return NOTHING
    # The two are looked at apart: a row is released when both say so.
    released = Released(bank, lambda _: True)
    over = embargo_over(season, at)
    problems = (holding.problem.problem_id for holding in bank)
    sources = {entrant.source for entrant in season.entrants.values()}
    shown = ((e.source, code_public_at(season, v)) for v, e in season.entrants.items())
    return Release(
        frozenset(problem_id for problem_id in problems if released(problem_id, "")),
        frozenset(source for source in sources if over(source)),
        code=frozenset(source for source, since in shown if since is not None and since <= at),
    )


def own_text_withheld(bank: Bank, season: Season, problem_id: str) -> TextWithheld | None:
    """Why the owner of an agent may not read what it printed on a problem; None when it may.

    A race's problems are opened when it is over. One that an operator opened before is still
    withheld while others race on it.
    """
    running = season.running
    if running is not None and any(one.problem_id == problem_id for one in running.problems):
        return TextWithheld.RACING
    return text_withheld(bank, problem_id)


async def current_release(journal: Journal, at: datetime) -> Release:
    """What is released at a moment, from the journals of bank and season."""
    bank = [entry.event for entry in await journal.read(banks.STREAM)]
    season = [entry.event for entry in await journal.read(seasons.STREAM)]
    return release_of(
        Bank.folded(bank) if bank else None, Season.folded(season) if season else None, at
    )
