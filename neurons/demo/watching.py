"""Waits for the season to come to a point, and tells what happens meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from arena.season.results import RaceResult
from arena.season.rules import SeasonRules
from arena.season.state import Race, Season
from arena.season.store import load_season
from neurons.demo.network import NetworkError
from neurons.demo.story import Story
from sandbox.terminal import plain

T = TypeVar("T")

PATIENCE_S = 1_800.0
"""How long nothing may happen."""
_LOOK_S = 1.0
NOTICE_S = 20.0
"""What a calendar needs at least to start and to open a race before its qualifying closes."""


def closing_soon(rules: SeasonRules, now: datetime, ready_s: float) -> SeasonRules:
    """The rules with a closing as soon as there is time for, where a calendar started in
    `ready_s` before."""
    at = (now + timedelta(seconds=max(NOTICE_S, 4 * ready_s))).astimezone(UTC)
    return rules.model_copy(update={"closing": f"{at:%H:%M:%S}", "zone": "UTC"})


async def qualified(story: Story) -> Season:
    """The season once every version that was let in has its qualifying score, and every
    validator takes part: one was perhaps too late for any of the work."""
    everybody = set(story.validators.values())

    def look(season: Season) -> Season | None:
        done = [v for v in story.versions if _scored(season, v)]
        whole = len(done) == len(story.versions) and everybody <= season.validators.keys()
        return season if whole else None

    def progress(season: Season) -> list[str]:
        scores = {v: season.entrants[v].qualifying for v in story.versions if _scored(season, v)}
        return [f"{story.versions[v]} scored {score:.3f}" for v, score in scores.items()]

    return await _season(story, look, progress, "agents to be scored, validators to take part")


async def drawn(story: Story) -> Race:
    """The race once its problems are drawn. Raises NetworkError when it was void."""

    def look(season: Season) -> Race | None:
        if season.voids:
            void = season.voids[-1]
            raise NetworkError(f"{void.race_id} did not take place: {void.reason.value}")
        return season.running

    def progress(season: Season) -> list[str]:
        race = season.open
        if race is None:
            return []
        return [
            f"{race.race_id} is open: {len(race.listing)} held-out problems are committed to",
            f"qualifying closes at {race.closes_at:%T} UTC; a beacon after it decides the draw",
        ]

    return await _season(story, look, progress, "the draw")


async def decided(story: Story) -> tuple[Season, RaceResult]:
    """The season and the race's result, once all validators have reported."""

    def look(season: Season) -> tuple[Season, RaceResult] | None:
        return (season, season.results[-1]) if season.results else None

    def progress(season: Season) -> list[str]:
        race = season.running
        if race is None:
            return []
        names = {hotkey: name for name, hotkey in story.validators.items()}
        return [
            f"{story.versions[version]}: {names[validator]} has raced all {len(sheet.scores)}"
            for version, sheets in race.sheets.items()
            for validator, sheet in sheets.items()
        ]

    return await _season(story, look, progress, "the validators to race everybody")


async def _season(
    story: Story,
    look: Callable[[Season], T | None],
    progress: Callable[[Season], list[str]],
    what: str,
) -> T:
    """What `look` finds in the journal, looked at again and again; each new line of `progress`
    is told once. Raises NetworkError when a process ends or nothing happens any more."""
    said: list[str] = []
    until = time.monotonic() + PATIENCE_S
    while True:
        season = (await load_season(story.journal)).season
        for line in progress(season):
            if line not in said:
                said.append(line)
                until = time.monotonic() + PATIENCE_S
                story.people.print(f"  {plain(line, 200)}", soft_wrap=True)
        found = look(season)
        if found is not None:
            return found
        for member in story.network.members.values():
            member.check()
        if time.monotonic() > until:
            raise NetworkError(f"waited in vain for {what}", remedy=f"see {story.home / 'logs'}")
        await asyncio.sleep(_LOOK_S)


def _scored(season: Season, version: str) -> bool:
    entrant = season.entrants.get(version)
    return entrant is not None and entrant.qualifying is not None
