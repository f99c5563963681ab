"""Standings: who stands where after a race, over all races, and by bucket. Pure.

An agent that is disqualified stands in none of them and keeps its history; after an
appeal it stands in all of them again. Ties are broken by the agent version id, ascending.
A racer without a score is listed behind those that have one, never at 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from arena.season.results import RaceResult, RacerResult
from arena.season.state import Season
from scoring.types import Bucket, Json, JsonObject
from scoring.weights import Finisher


@dataclass(frozen=True, slots=True)
class Row:
    """One agent's place. `score` and `asr` are None while incomplete; `races` counts those
    that the figures are of. `rank` is None without a score."""

    rank: int | None
    version: str
    hotkey: str
    score: float | None
    asr: float | None
    races: int
    champion: bool
    registered: bool

    def to_json(self) -> JsonObject:
        """As pages and `--json` show it."""
        return {
            "rank": self.rank,
            "version": self.version,
            "hotkey": self.hotkey,
            "score": self.score,
            "asr": self.asr,
            "races": self.races,
            "champion": self.champion,
            "registered": self.registered,
        }


@dataclass(frozen=True, slots=True)
class PaidRace:
    """What the weight vector is made of: the finishers of the last race, and the champion."""

    race_id: str
    finishers: tuple[Finisher, ...]
    champion: str | None


def race_standings(season: Season, race: RaceResult) -> tuple[Row, ...]:
    """One race, best score first."""
    return _ranked(season, {r.version: (r.score, r.asr, int(r.complete)) for r in race.racers})


def all_time(season: Season) -> tuple[Row, ...]:
    """All races: the mean of each agent's race scores, over the races in which it has one.

    Races differ in their problems, so a mean over few of them is rough: `races` says it.
    """
    return _ranked(
        season,
        {
            version: (
                fmean(r.score for r in raced if r.score is not None),
                fmean(r.asr for r in raced if r.asr is not None),
                len(raced),
            )
            for version, raced in _complete(season).items()
        },
    )


def by_bucket(season: Season) -> dict[Bucket, tuple[Row, ...]]:
    """All races, by the scores in one bucket."""
    complete = _complete(season)
    found: dict[Bucket, tuple[Row, ...]] = {}
    for bucket in Bucket:
        scores = {
            version: [r.by_bucket[bucket] for r in raced if bucket in r.by_bucket]
            for version, raced in complete.items()
        }
        found[bucket] = _ranked(
            season, {v: (fmean(s), None, len(s)) for v, s in scores.items() if s}
        )
    return found


def paid_race(season: Season) -> PaidRace | None:
    """The last race that somebody finished; None when there was none: weights are left alone.

    The disqualified are not among its finishers. Those that left the metagraph are: they
    count, and what would be theirs burns. The champion is named only while it is one of
    them; rank 1 is otherwise the best race score.
    """
    for race in reversed(season.results):
        finishers = tuple(
            Finisher(season.entrants[r.version].hotkey, r.version, r.score)
            for r in race.racers
            if r.score is not None and season.entrants[r.version].disqualified is None
        )
        if finishers:
            champion = season.champion
            raced = any(f.agent_version_id == champion for f in finishers)
            return PaidRace(race.race_id, finishers, champion if raced else None)
    return None


def to_json(season: Season) -> JsonObject:
    """Champion, last race, all-time and buckets, as pages and `--json` show them."""
    last = season.results[-1] if season.results else None
    return {
        "champion": season.champion,
        "last_race": {
            "race_id": last.race_id,
            "title": last.title.to_json(),
            "standings": _rows(race_standings(season, last)),
        }
        if last
        else None,
        "all_time": _rows(all_time(season)),
        "by_bucket": {b.value: _rows(rows) for b, rows in by_bucket(season).items()},
    }


def _rows(rows: tuple[Row, ...]) -> list[Json]:
    return [row.to_json() for row in rows]


def _complete(season: Season) -> dict[str, list[RacerResult]]:
    """The races of each agent in which it has a score, oldest first."""
    found: dict[str, list[RacerResult]] = {}
    for race in season.results:
        for racer in race.racers:
            if racer.complete:
                found.setdefault(racer.version, []).append(racer)
    return found


def _ranked(
    season: Season, figures: dict[str, tuple[float | None, float | None, int]]
) -> tuple[Row, ...]:
    champion = season.champion
    standing = [v for v in figures if season.entrants[v].disqualified is None]
    standing.sort(key=lambda v: (figures[v][0] is None, -(figures[v][0] or 0.0), v))
    rows = []
    for place, version in enumerate(standing, 1):
        score, asr, races = figures[version]
        entrant = season.entrants[version]
        rows.append(
            Row(
                rank=None if score is None else place,
                version=version,
                hotkey=entrant.hotkey,
                score=score,
                asr=asr,
                races=races,
                champion=version == champion,
                registered=not entrant.left,
            )
        )
    return tuple(rows)
