"""When what an agent is and did becomes public. Pure.

A winner's code is public from noon of the first weekday after it first won the title,
where the arena's clock is; a disqualification neither hides nor hastens it. The code of an
agent that never won is not published by the arena. Records hold what an agent did, not its
code: those of every agent that raced are free of the embargo from noon of the weekday after
its last race, and are then released with their problems.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from arena.season.clock import NOON, next_weekday, zone
from arena.season.state import Season


def code_public_at(season: Season, version: str) -> datetime | None:
    """When an agent's code becomes public; None for one that never won."""
    won = (title.won_at for title in season.titles if title.version == version)
    first = min(won, default=None)
    return None if first is None else _release(season, first)


def records_public_at(season: Season, version: str) -> datetime | None:
    """When the records of an agent are free of its embargo; None before it has raced."""
    raced = set(season.entrants[version].raced)
    ends = (race.closed_at for race in season.results if race.race_id in raced)
    last = max(ends, default=None)
    return None if last is None else _release(season, last)


def embargo_over(season: Season, now: datetime) -> Callable[[str], bool]:
    """Whether the embargo of the agents with a source hash is over, of all of them.

    For `arena.problems.release.Released`. False for a source that nobody submitted.
    """
    over: dict[str, bool] = {}
    for version, entrant in season.entrants.items():
        at = records_public_at(season, version)
        over[entrant.source] = over.get(entrant.source, True) and at is not None and at <= now
    return lambda source: over.get(source, False)


def _release(season: Season, after: datetime) -> datetime:
    return next_weekday(after, NOON, zone(season.rules.zone))
