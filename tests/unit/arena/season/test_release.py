"""What of a corpus is public: where both bank and season say so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from arena.problems.decisions import retire
from arena.problems.pools import Pool
from arena.season.release import NOTHING, Release, release_of
from tests.unit.arena.problems.banks import Banked, problem
from tests.unit.arena.season.driving import Driver

NOON = datetime(2026, 3, 4, 20, 0, tzinfo=UTC)
"""When the embargo of the driver's first race is over."""


def _bank() -> Banked:
    world = Banked()
    world.bring(Pool.OPEN, problem("open"), problem("old"))
    world.apply(retire(world.bank, ["old"], "done", world.at))
    return world


def _season() -> Driver:
    driver = Driver()
    driver.open()
    driver.enter("v1")
    driver.enter("v2")
    driver.race({"v1": 3, "v2": 1})
    return driver


def test_a_retired_problem_and_an_agent_without_embargo_are_released() -> None:
    release = release_of(_bank().bank, _season().season, NOON)
    assert release("old", "source of v1")
    assert not release("open", "source of v1")
    assert not release("old", "source of nobody")
    assert not release("unknown", "source of v1")


def test_an_embargo_holds_to_its_last_moment() -> None:
    release = release_of(_bank().bank, _season().season, NOON - timedelta(seconds=1))
    assert not release("old", "source of v1")


def test_without_a_bank_or_a_season_nothing_is_released() -> None:
    assert release_of(None, _season().season, NOON) == NOTHING
    assert release_of(_bank().bank, None, NOON) == NOTHING
    assert not NOTHING("old", "source of v1")


def test_a_public_records_export_is_released_as_a_whole() -> None:
    assert Release(everything=True)("any", "any")


def test_every_change_of_what_is_released_shows_in_the_digest() -> None:
    some = (
        NOTHING,
        Release(everything=True),
        Release(frozenset({"a"})),
        Release(frozenset(), frozenset({"a"})),
        Release(frozenset({"a", "b"})),
    )
    assert len({release.digest for release in some}) == len(some)
