"""Who may race: submissions, qualifying, disqualification, appeals, validators. Pure."""

from __future__ import annotations

import math
from datetime import datetime

from arena.exceptions import SeasonError
from arena.journal import Event
from arena.season.commands import (
    Appeal,
    Deregister,
    Disqualify,
    JoinValidator,
    LeaveValidator,
    Qualify,
    SelectRacer,
    SetRules,
    Submit,
)
from arena.season.state import (
    DEREGISTERED,
    DISQUALIFIED,
    NOT_QUALIFIED,
    QUALIFIED,
    RACER_SELECTED,
    REINSTATED,
    RULES_SET,
    SUBMITTED,
    VALIDATOR_JOINED,
    VALIDATOR_LEFT,
    Entrant,
    Season,
    Stage,
)
from scoring.types import Json

LONGEST_NAME = 128
LONGEST_REASON = 1000


def set_rules(season: Season, command: SetRules, now: datetime) -> list[Event]:
    """New rules; a race that is open keeps its own."""
    rules = command.rules.to_json()
    return [] if rules == season.rules.to_json() and season.now else [Event(RULES_SET, now, rules)]


def submit(season: Season, command: Submit, now: datetime) -> list[Event]:
    """Take in an agent. Raises SeasonError: `season.too_soon` says when the wait is over."""
    for name in (command.version, command.hotkey, command.source):
        _check_text(name, LONGEST_NAME, "a name")
    if command.version in season.entrants:
        raise SeasonError(
            f"agent version {command.version} was submitted already", code="season.twice_submitted"
        )
    last = season.last_submission.get(command.hotkey)
    if last is not None and now < last + season.rules.submission_gap:
        ends = last + season.rules.submission_gap
        raise SeasonError(
            f"one submission of a hotkey in {season.rules.submission_hours:g} hours: the wait"
            f" of {command.hotkey} ends at {ends:%F %T} UTC",
            code="season.too_soon",
        )
    return [
        _event(
            SUBMITTED,
            now,
            version=command.version,
            hotkey=command.hotkey,
            source=command.source,
        )
    ]


def qualify(season: Season, command: Qualify, now: datetime) -> list[Event]:
    """Note a qualifying score; at the threshold or above, the agent waits for the next race.

    Raises SeasonError: `season.incomplete` for no score, `season.bad_score` for what is none.
    """
    entrant = _entrant(season, command.version)
    if command.score is None:
        raise SeasonError(
            f"{command.version} has no qualifying score while one of its problems is open",
            code="season.incomplete",
        )
    if not (math.isfinite(command.score) and 0.0 <= command.score <= 1.0):
        raise SeasonError(
            f"a qualifying score is between 0 and 1, not {command.score}", code="season.bad_score"
        )
    if entrant.qualifying is not None:
        raise SeasonError(
            f"{command.version} has its qualifying score already", code="season.twice_qualified"
        )
    _check_eligible(entrant)
    threshold = season.rules.qualifying_threshold
    kind = QUALIFIED if command.score >= threshold else NOT_QUALIFIED
    return [_event(kind, now, version=command.version, score=command.score, threshold=threshold)]


def disqualify(season: Season, command: Disqualify, now: datetime) -> list[Event]:
    """Take an agent out of races, standings and title. What it did stays on record."""
    entrant = _entrant(season, command.version)
    _check_text(command.reason, LONGEST_REASON, "a reason")
    if entrant.disqualified is not None:
        raise SeasonError(
            f"{command.version} is disqualified already", code="season.twice_disqualified"
        )
    return [_event(DISQUALIFIED, now, version=command.version, reason=command.reason)]


def appeal(season: Season, command: Appeal, now: datetime) -> list[Event]:
    """Lift a disqualification.

    The agent's scores count again, and so does its title unless somebody has won it in a
    race since. One that qualified and is not champion then races again.
    """
    entrant = _entrant(season, command.version)
    _check_text(command.reason, LONGEST_REASON, "a reason")
    if entrant.disqualified is None:
        raise SeasonError(f"{command.version} is not disqualified", code="season.not_disqualified")
    racing = {v for race in (season.open, season.running) if race for v in race.racers}
    races_again = (
        entrant.qualified
        and not entrant.left
        and entrant.version not in racing
        and not _would_reign(season, entrant)
    )
    return [
        _event(
            REINSTATED,
            now,
            version=command.version,
            reason=command.reason,
            was=entrant.disqualified,
            races_again=races_again,
        )
    ]


def deregister(season: Season, command: Deregister, now: datetime) -> list[Event]:
    """A hotkey has left: its agents do not come back with it, and its title goes back."""
    versions: list[Json] = [
        entrant.version
        for entrant in season.entrants.values()
        if entrant.hotkey == command.hotkey and not entrant.left
    ]
    if not versions:
        return []
    return [_event(DEREGISTERED, now, hotkey=command.hotkey, versions=versions)]


def select_racer(season: Season, command: SelectRacer, now: datetime) -> list[Event]:
    """Note which of its agents a hotkey wants to race; what is so already changes nothing.

    It counts at the closing of qualifying, while that agent waits for a race; else the
    latest that waits races. Raises SeasonError: `season.unknown_agent`, `season.not_owner`,
    `season.no_selection`, `season.race_locked` between the closing and the draw, and those of
    an agent that is disqualified or gone.
    """
    race = season.open
    if race is not None and race.stage is not Stage.QUALIFYING:
        raise SeasonError(
            f"who runs in {race.race_id} is settled: select again when it is drawn",
            code="season.race_locked",
        )
    before = season.selected.get(command.hotkey)
    if command.version is None:
        if before is None:
            raise SeasonError("this hotkey has selected no agent", code="season.no_selection")
    else:
        entrant = _entrant(season, command.version)
        if entrant.hotkey != command.hotkey:
            raise SeasonError(
                f"{command.version} is another hotkey's agent", code="season.not_owner"
            )
        _check_eligible(entrant)
        if before == command.version:
            return []
    return [_event(RACER_SELECTED, now, hotkey=command.hotkey, version=command.version)]


def join_validator(season: Season, command: JoinValidator, now: datetime) -> list[Event]:
    """A validator takes part; one that does already changes nothing."""
    _check_text(command.validator, LONGEST_NAME, "a name")
    if command.validator in season.validators:
        return []
    return [_event(VALIDATOR_JOINED, now, validator=command.validator)]


def leave_validator(season: Season, command: LeaveValidator, now: datetime) -> list[Event]:
    """A validator takes part no longer; one that does not changes nothing."""
    if command.validator not in season.validators:
        return []
    return [_event(VALIDATOR_LEFT, now, validator=command.validator)]


def _would_reign(season: Season, entrant: Entrant) -> bool:
    """Whether the title is its own once it is reinstated."""
    for title in reversed(season.titles):
        if title.version == entrant.version:
            return not entrant.left
        if season.entrants[title.version].eligible:
            return False
    return False


def _entrant(season: Season, version: str) -> Entrant:
    entrant = season.entrants.get(version)
    if entrant is None:
        raise SeasonError(
            f"there is no agent version {version[:80]!r}", code="season.unknown_agent"
        )
    return entrant


def _check_eligible(entrant: Entrant) -> None:
    if entrant.disqualified is not None:
        raise SeasonError(
            f"{entrant.version} is disqualified: {entrant.disqualified}", code="season.disqualified"
        )
    if entrant.left:
        raise SeasonError(
            f"the hotkey of {entrant.version} has left the metagraph", code="season.deregistered"
        )


def _check_text(text: str, limit: int, what: str) -> None:
    if not (0 < len(text) <= limit and text.isprintable() and text.strip()):
        raise SeasonError(
            f"{what} is 1 to {limit} printable characters, not {text[:40]!r}",
            code="season.bad_name",
        )


def _event(kind: str, at: datetime, **data: Json) -> Event:
    return Event(kind, at, data)
