"""Local times become instants by one rule, on days of 23, 24 and 25 hours."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.exceptions import SeasonError
from arena.season.clock import NOON, PACIFIC, instant, next_daily, next_weekday, zone

LOS_ANGELES = zone(PACIFIC)

moments = st.datetimes(
    datetime(2020, 1, 1),
    datetime(2035, 1, 1),
    timezones=st.just(UTC),
)
zones = st.sampled_from(
    [PACIFIC, "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kolkata", "UTC"]
).map(zone)
times = st.times().map(lambda t: t.replace(second=0, microsecond=0, fold=0))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("2026-11-20 19:59", "2026-11-20 20:00"),  # winter: noon is 20:00 UTC
        ("2026-11-20 20:00", "2026-11-21 20:00"),  # strictly after
        ("2026-07-01 20:00", "2026-07-02 19:00"),  # summer: 19:00 UTC
        ("2026-03-07 20:00", "2026-03-08 19:00"),  # 23 hours later
        ("2026-10-31 19:00", "2026-11-01 20:00"),  # 25 hours later
    ],
)
def test_noon_pacific_follows_summer_time(after: str, expected: str) -> None:
    assert next_daily(utc(after), NOON, LOS_ANGELES) == utc(expected)


def test_a_time_that_the_clocks_skip_is_read_with_the_offset_before() -> None:
    assert instant(date(2026, 3, 8), time(2, 30), LOS_ANGELES) == utc("2026-03-08 10:30")


def test_a_time_that_the_clocks_show_twice_is_its_first_showing() -> None:
    assert instant(date(2026, 11, 1), time(1, 30), LOS_ANGELES) == utc("2026-11-01 08:30")
    again = next_daily(utc("2026-11-01 08:30"), time(1, 30), LOS_ANGELES)
    assert again == utc("2026-11-02 09:30")


def test_a_day_that_a_zone_skips_has_no_closing_of_its_own() -> None:
    apia = zone("Pacific/Apia")  # no 30 December 2011 there
    first = next_daily(utc("2011-12-29 00:00"), NOON, apia)
    seen = [first]
    for _ in range(3):
        seen.append(next_daily(seen[-1], NOON, apia))
    assert seen == [utc(f"2011-12-{day} 22:00") for day in (29, 30, 31)] + [utc("2012-01-01 22:00")]


@pytest.mark.parametrize(
    ("won", "public"),
    [
        ("2026-11-20 05:00", "2026-11-20 20:00"),  # Thursday evening there: Friday noon
        ("2026-11-20 20:00", "2026-11-23 20:00"),  # Friday noon: Monday
        ("2026-11-22 21:00", "2026-11-23 20:00"),  # Sunday
        ("2026-03-06 21:00", "2026-03-09 19:00"),  # over the change of the clocks
    ],
)
def test_an_embargo_ends_at_noon_of_a_weekday(won: str, public: str) -> None:
    assert next_weekday(utc(won), NOON, LOS_ANGELES) == utc(public)


@given(moments, times, zones)
def test_the_next_time_of_day_is_the_first_one(after: datetime, at: time, where: ZoneInfo) -> None:
    found = next_daily(after, at, where)
    assert after < found <= after + timedelta(hours=48)
    # No closing lies between: the one before, found from two days back, is not after.
    earlier = next_daily(after - timedelta(hours=50), at, where)
    while (following := next_daily(earlier, at, where)) <= after:
        earlier = following
    assert following == found


@given(moments, times, zones)
def test_a_weekday_is_one_there(after: datetime, at: time, where: ZoneInfo) -> None:
    found = next_weekday(after, at, where)
    shown = found.astimezone(where)
    assert after < found <= after + timedelta(days=4)
    # A skipped time is shown later, over midnight at most.
    assert shown.weekday() < 5 or shown.time() < time(3)


def test_an_unknown_zone_is_refused() -> None:
    for name in ("Atlantis/Capital", "../etc/passwd", ""):
        with pytest.raises(SeasonError) as refused:
            zone(name)
        assert refused.value.code == "season.unknown_zone"
