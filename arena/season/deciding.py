"""`decide(state, command, now) -> events`: the one door into a season. Pure.

Reads no clock: `now` is handed in, and one that goes back is refused. The caller appends
the events to the journal and applies them, and decides again when the journal has gone on.
"""

from __future__ import annotations

from datetime import UTC, datetime

from arena.exceptions import SeasonError
from arena.journal import Event
from arena.season import entering, racing
from arena.season.commands import (
    Appeal,
    Command,
    Deregister,
    Disqualify,
    Draw,
    JoinValidator,
    LeaveValidator,
    OpenRace,
    Qualify,
    Report,
    SelectRacer,
    SetRules,
    Submit,
    Tick,
)
from arena.season.state import Season


def decide(season: Season, command: Command, now: datetime) -> list[Event]:
    """What follows from a command at `now`, an instant with its time zone.

    No events mean that nothing is to be done. Raises SeasonError or DrawError with the
    rule that forbids it; `season.clock_went_back` until `now` has caught up again with the
    last event.
    """
    if now.tzinfo is None:
        raise SeasonError("a moment needs a time zone", code="season.no_time_zone")
    now = now.astimezone(UTC)
    if season.now is not None and now < season.now:
        raise SeasonError(
            f"the clock went back: it is {now:%F %T} UTC, and the last event was at"
            f" {season.now:%F %T}",
            code="season.clock_went_back",
            remedy="set the host's clock; nothing is decided until it has caught up",
        )
    match command:
        case Tick():
            return racing.tick(season, now)
        case Report():
            return racing.report(season, command, now)
        case Submit():
            return entering.submit(season, command, now)
        case Qualify():
            return entering.qualify(season, command, now)
        case OpenRace():
            return racing.open_race(season, command, now)
        case Draw():
            return racing.draw_race(season, command, now)
        case Deregister():
            return entering.deregister(season, command, now)
        case SelectRacer():
            return entering.select_racer(season, command, now)
        case Disqualify():
            return entering.disqualify(season, command, now)
        case Appeal():
            return entering.appeal(season, command, now)
        case JoinValidator():
            return entering.join_validator(season, command, now)
        case LeaveValidator():
            return entering.leave_validator(season, command, now)
        case SetRules():
            return entering.set_rules(season, command, now)
