"""The course of a race: opened, closed to qualifiers, drawn, run, decided. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, time, timedelta

from arena.exceptions import DrawError, SeasonError
from arena.journal import Event
from arena.season.beacon import check_ticket, check_value
from arena.season.clock import local_day, next_daily, zone
from arena.season.commands import Draw, OpenRace, ProblemOutcome, Report
from arena.season.commitment import Commitment
from arena.season.draw import check_pool, draw, draw_seed, secret_hash
from arena.season.promotion import beats, margin, required_score
from arena.season.results import Decision, RacerResult, TitleDecision, racer_result
from arena.season.state import (
    QUALIFYING_CLOSED,
    RACE_CLOSED,
    RACE_DRAWN,
    RACE_OPENED,
    RACE_VOIDED,
    REPORTED,
    Race,
    Season,
    Stage,
    Void,
)
from scoring.types import Json, JsonObject


def next_race(season: Season, now: datetime) -> tuple[str, datetime]:
    """The id of a race that would open now, and when its qualifying would close.

    The id holds the local date of the closing, so it is known before the race opens and
    no two races share one.
    """
    rules = season.rules
    where = zone(rules.zone)
    soonest = now + timedelta(hours=rules.minimum_qualifying_hours)
    closes_at = next_daily(soonest, time.fromisoformat(rules.closing), where)
    return f"race-{local_day(closes_at, where):%F}", closes_at


def open_race(season: Season, command: OpenRace, now: datetime) -> list[Event]:
    """Begin qualifying. The whole commitment stands in the event.

    Raises SeasonError (`season.race_open`, `season.twice_raced`), and DrawError when the
    pool is too small for the quota, whatever the seed (`draw.pool_too_small`), or the beacon's
    value is not the one that the closing time dictates (`draw.bad_beacon`).
    """
    if season.open is not None:
        raise SeasonError(
            f"{season.open.race_id} is {season.open.stage.value}: the next race opens when it"
            " is drawn or void",
            code="season.race_open",
        )
    rules = season.rules
    race_id, closes_at = next_race(season, now)
    if any(race_id == known for known in _race_ids(season)):
        raise SeasonError(f"there was a {race_id} already", code="season.twice_raced")
    if command.ticket.source is not rules.beacon:
        raise DrawError(
            f"the rules name the beacon {rules.beacon.value}, not {command.ticket.source.value}",
            code="draw.bad_beacon",
        )
    check_ticket(command.ticket, now, closes_at, rules.beacon_delay)
    check_pool(command.listing.rows, rules.quota)
    commitment = Commitment(
        race_id=race_id,
        committed_at=now,
        closes_at=closes_at,
        secret_hash=command.secret_hash,
        ticket=command.ticket,
        beacon_delay=rules.beacon_delay_seconds,
        quota=rules.quota,
        listing_hash=command.listing.hash,
        listing_size=len(command.listing),
    )
    data: JsonObject = {
        "commitment": commitment.to_json(),
        "commitment_hash": commitment.hash,
        "listing": command.listing.to_json(),
        "rules": rules.to_json(),
    }
    return [Event(RACE_OPENED, now, data)]


def tick(season: Season, now: datetime) -> list[Event]:
    """The first thing that is due, if any: the end of the race that runs, else the closing
    or the voiding of the open one. Apply it and tick again until nothing comes.
    """
    running, race = season.running, season.open
    if running is not None and (now >= running.deadline or _all_complete(season, running)):
        return [_close(season, running, now)]
    if race is None or now < race.closes_at:
        return []
    if race.stage is Stage.QUALIFYING:
        return [_close_qualifying(season, race, now)]
    if now >= race.draw_until:
        return [_void(season, race, Void.NOT_DRAWN, now)]
    return []


def draw_race(season: Season, command: Draw, now: datetime) -> list[Event]:
    """Reveal the secret and draw the problems.

    Raises SeasonError (`season.no_such_race`, `season.still_racing`) and DrawError
    (`draw.other_secret`, `draw.bad_opening` and those of the beacon).
    """
    race = season.open
    if race is None or race.race_id != command.race_id or race.stage is not Stage.AWAITING_BEACON:
        raise SeasonError(
            f"{command.race_id[:80]!r} does not await its draw", code="season.no_such_race"
        )
    if now >= race.draw_until:
        raise SeasonError(
            f"{race.race_id} was to be drawn before {race.draw_until:%F %T} UTC",
            code="season.too_late",
        )
    if season.running is not None:
        raise SeasonError(f"{season.running.race_id} still runs", code="season.still_racing")
    if secret_hash(race.race_id, command.secret) != race.commitment.secret_hash:
        raise DrawError("this is not the secret that was committed to", code="draw.other_secret")
    proven = check_value(race.commitment.ticket, command.beacon, race.closes_at)
    if now < command.beacon.at:
        raise DrawError("the beacon's value is of the future", code="draw.early_beacon")
    seed = draw_seed(race.race_id, command.secret, command.beacon.value)
    buckets = {row.name: row.bucket for row in race.listing.rows}
    problems: list[Json] = []
    for leaf in draw(race.listing.rows, race.rules.quota, seed):
        opening = command.openings.get(leaf)
        if opening is None or opening.leaf != leaf:
            raise DrawError(f"nothing opens the row {leaf}", code="draw.bad_opening")
        row: JsonObject = {"leaf": leaf, "bucket": buckets[leaf].value}
        problems.append(row | opening.to_json())
    data: JsonObject = {
        "race_id": race.race_id,
        "secret": command.secret,
        "beacon": command.beacon.to_json(),
        "beacon_proven": proven,
        "seed": seed,
        "problems": problems,
    }
    return [Event(RACE_DRAWN, now, data)]


def report(season: Season, command: Report, now: datetime) -> list[Event]:
    """Note outcomes. What is known already comes to nothing; another value is refused.

    Raises SeasonError: `season.no_such_race`, `season.too_late`, `season.not_racing`,
    `season.unknown_validator`, `season.not_drawn`, `season.bad_score`,
    `season.outcome_changed`.
    """
    race = season.running
    if race is None or race.race_id != command.race_id:
        raise SeasonError(f"{command.race_id[:80]!r} does not run", code="season.no_such_race")
    if now >= race.deadline:
        raise SeasonError(
            f"{race.race_id} ended at {race.deadline:%F %T} UTC", code="season.too_late"
        )
    if command.version not in race.racers:
        raise SeasonError(
            f"{command.version[:80]!r} does not race in {race.race_id}", code="season.not_racing"
        )
    if command.validator not in season.validators:
        raise SeasonError(
            f"{command.validator[:80]!r} is no validator here", code="season.unknown_validator"
        )
    known = race.sheets.get(command.version, {}).get(command.validator)
    drawn = {problem.problem_id for problem in race.problems}
    rows: dict[str, Json] = {}
    for problem_id, outcome in command.outcomes.items():
        if problem_id not in drawn:
            raise SeasonError(f"problem {problem_id[:80]!r} was not drawn", code="season.not_drawn")
        before = known.outcomes.get(problem_id) if known else None
        if before is None:
            _check_outcome(outcome)
            rows[problem_id] = [
                int(outcome.success),
                outcome.coefficient,
                outcome.agentic_ratio,
            ]
        elif before != outcome:
            raise SeasonError(
                f"{command.validator} has reported another outcome of {problem_id} before",
                code="season.outcome_changed",
            )
    if not rows:
        return []
    data: JsonObject = {
        "race_id": race.race_id,
        "version": command.version,
        "validator": command.validator,
        "outcomes": rows,
    }
    return [Event(REPORTED, now, data)]


def _close_qualifying(season: Season, race: Race, now: datetime) -> Event:
    """Who races: of each hotkey the agent that it selected, else its latest, of those that
    qualified in time; and the champion. The others of a hotkey that races are superseded."""
    waiting: dict[str, list[str]] = {}
    for version, since in season.waiting.items():
        if since < race.closes_at:
            waiting.setdefault(season.entrants[version].hotkey, []).append(version)
    racing: dict[str, str] = {}
    superseded: list[Json] = []
    for hotkey, versions in waiting.items():
        selected = season.selected.get(hotkey)
        oldest_first = sorted(versions, key=lambda v: (season.entrants[v].submitted_at, v))
        racing[hotkey] = selected if selected in versions else oldest_first[-1]
        superseded += [version for version in oldest_first if version != racing[hotkey]]
    champion = season.champion
    challengers = sorted(version for version in racing.values() if version != champion)
    needed = min(race.rules.validators, len(season.validators))
    if not challengers:
        return _void(season, race, Void.NO_QUALIFIER, now)
    if needed < race.rules.quorum:
        return _void(season, race, Void.TOO_FEW_VALIDATORS, now)
    racers: list[Json] = [*challengers, *([champion] if champion else [])]
    data: JsonObject = {
        "race_id": race.race_id,
        "racers": racers,
        "champion": champion,
        "superseded": superseded,
        "needed": needed,
    }
    return Event(QUALIFYING_CLOSED, now, data)


def _void(season: Season, race: Race, reason: Void, now: datetime) -> Event:
    """No race: who was to run in it waits for the next one."""
    waiting: list[Json] = [
        version
        for version in race.racers
        if version != season.champion and season.entrants[version].eligible
    ]
    data: JsonObject = {"race_id": race.race_id, "reason": reason.value, "waiting": waiting}
    return Event(RACE_VOIDED, now, data)


def _all_complete(season: Season, race: Race) -> bool:
    """Whether every racer has all outcomes of as many validators as it needs. One that was
    disqualified or has left meanwhile is not waited for."""
    return all(
        race.complete(version, race.needed)
        for version in race.racers
        if season.entrants[version].eligible
    )


def _close(season: Season, race: Race, now: datetime) -> Event:
    """Score everybody and decide the title. Below the quorum there is no number."""
    on_time = _all_complete(season, race)
    needed = race.needed if on_time else race.rules.quorum
    results = [
        racer_result(version, race.sheets.get(version, {}), race.problems, needed)
        for version in race.racers
    ]
    again: dict[bool, list[Json]] = {True: [], False: []}
    for result in results:
        entrant = season.entrants[result.version]
        if not result.complete and entrant.eligible and result.version != season.champion:
            again[entrant.carried < race.rules.carries].append(result.version)
    racers: list[Json] = [result.to_json() for result in results]
    data: JsonObject = {
        "race_id": race.race_id,
        "on_time": on_time,
        "racers": racers,
        "title": _decide_title(season, race, results).to_json(),
        "carried": again[True],
        "set_aside": again[False],
    }
    return Event(RACE_CLOSED, now, data)


def _decide_title(season: Season, race: Race, results: Iterable[RacerResult]) -> TitleDecision:
    """Ties go to the champion; among challengers to the version id that comes first."""
    title = season.title
    champion = title.version if title else None
    scores = {r.version: r.score for r in results if r.score is not None}
    ranked = sorted(
        (-score, version)
        for version, score in scores.items()
        if version != champion and season.entrants[version].eligible
    )
    if title is None:
        if not ranked:
            return TitleDecision(Decision.NO_FINISHER, None)
        score, best = -ranked[0][0], ranked[0][1]
        won = score > 0.0
        return TitleDecision(
            Decision.VACANT if won else Decision.NOTHING_SOLVED, best if won else None
        )
    if champion not in race.racers:
        return TitleDecision(Decision.CHAMPION_ABSENT, champion)
    if champion not in scores:
        return TitleDecision(Decision.CHAMPION_INCOMPLETE, champion)
    share = margin(title.since, race.closes_at, race.rules)
    required = required_score(scores[champion], share)
    if not ranked:
        return TitleDecision(Decision.NO_FINISHER, champion, share, required)
    score, best = -ranked[0][0], ranked[0][1]
    if beats(score, scores[champion], share):
        return TitleDecision(Decision.PROMOTED, best, share, required)
    return TitleDecision(Decision.DEFENDED, champion, share, required)


def _check_outcome(outcome: ProblemOutcome) -> None:
    for value in (outcome.coefficient, outcome.agentic_ratio):
        if isinstance(value, bool) or not (math.isfinite(value) and 0.0 <= value <= 1.0):
            raise SeasonError(
                f"a coefficient and an agentic ratio are between 0 and 1, not {value!r}",
                code="season.bad_score",
            )


def _race_ids(season: Season) -> Iterable[str]:
    if season.running is not None:
        yield season.running.race_id
    yield from (race.race_id for race in season.results)
    yield from (race.race_id for race in season.voids)
