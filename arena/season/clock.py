"""Times of day where the arena's people live, as instants.

Everything else in this package reckons in UTC. A local time is turned into an instant by
the rule of RFC 5545, section 3.3.5: one that the clocks skip is read with the offset
before the change (02:30 becomes 03:30 on the day that summer time begins), one that they
show twice is its first showing. Days of 23 and 25 hours follow from that. Pure: nobody
here looks at a clock.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from arena.exceptions import SeasonError

PACIFIC = "America/Los_Angeles"
NOON = time(12)

_SATURDAY = 5


@lru_cache
def zone(name: str) -> ZoneInfo:
    """The zone of this name. Raises SeasonError (`season.unknown_zone`)."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise SeasonError(
            f"{name[:60]!r} is not a time zone of the IANA database",
            code="season.unknown_zone",
            remedy=f"name one as {PACIFIC}",
        ) from None


def instant(day: date, at: time, where: ZoneInfo) -> datetime:
    """The moment, in UTC, at which the clocks of `where` show `at` on `day`."""
    return datetime.combine(day, at, where).astimezone(UTC)


def next_daily(after: datetime, at: time, where: ZoneInfo) -> datetime:
    """The first moment strictly after `after` at which it is `at` o'clock there, in UTC."""
    return _next(after, at, where, weekdays_only=False)


def next_weekday(after: datetime, at: time, where: ZoneInfo) -> datetime:
    """The same on a Monday to Friday. Holidays count as the days that they are."""
    return _next(after, at, where, weekdays_only=True)


def local_day(moment: datetime, where: ZoneInfo) -> date:
    """The date that a calendar shows there."""
    return moment.astimezone(where).date()


def _next(after: datetime, at: time, where: ZoneInfo, *, weekdays_only: bool) -> datetime:
    # From the day before: where a zone skips a day, its time of day falls on the next one.
    day = local_day(after, where) - timedelta(days=1)
    while True:
        found = instant(day, at, where)
        if found > after and not (weekdays_only and day.weekday() >= _SATURDAY):
            return found
        day += timedelta(days=1)
