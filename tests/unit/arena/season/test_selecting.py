"""A hotkey says which of its agents races."""

from __future__ import annotations

from datetime import timedelta

import pytest

from arena.exceptions import SeasonError
from arena.season.commands import Disqualify, Qualify, SelectRacer, Submit
from arena.season.state import Season
from tests.unit.arena.season.driving import Driver

HOTKEY = "hk"


@pytest.fixture
def driver() -> Driver:
    """A race in qualifying; `old` and `new` of one hotkey, and `other`, wait for it."""
    driver = Driver()
    driver.open()
    driver.enter("old", HOTKEY)
    driver.now += timedelta(hours=13)
    driver.do(Submit("new", HOTKEY, "source of new"))
    driver.do(Qualify("new", 0.9))
    driver.enter("other")
    return driver


def racers(driver: Driver) -> set[str]:
    driver.close()
    assert driver.season.open is not None
    return set(driver.season.open.racers)


def refused(driver: Driver, command: SelectRacer) -> str:
    with pytest.raises(SeasonError) as error:
        driver.do(command)
    return error.value.code


def test_without_a_selection_the_latest_races(driver: Driver) -> None:
    assert racers(driver) == {"new", "other"}


def test_the_selected_one_races_and_the_others_of_its_hotkey_do_not(driver: Driver) -> None:
    driver.do(SelectRacer(HOTKEY, "old"))
    assert racers(driver) == {"old", "other"}
    assert "new" not in driver.season.waiting


def test_a_selection_that_is_cleared_counts_no_more(driver: Driver) -> None:
    driver.do(SelectRacer(HOTKEY, "old"))
    driver.do(SelectRacer(HOTKEY, None))
    assert racers(driver) == {"new", "other"}


def test_a_selected_agent_that_cannot_race_gives_way_to_the_latest(driver: Driver) -> None:
    driver.do(SelectRacer(HOTKEY, "old"))
    driver.do(Disqualify("old", "copied"))
    assert racers(driver) == {"new", "other"}


def test_selecting_again_changes_nothing_and_the_journal_gives_the_selection(
    driver: Driver,
) -> None:
    assert driver.do(SelectRacer(HOTKEY, "old"))
    assert driver.do(SelectRacer(HOTKEY, "old")) == []
    assert Season.folded(driver.events).selected == {HOTKEY: "old"}


def test_what_may_not_be_selected(driver: Driver) -> None:
    assert refused(driver, SelectRacer(HOTKEY, "nobody")) == "season.unknown_agent"
    assert refused(driver, SelectRacer(HOTKEY, "other")) == "season.not_owner"
    assert refused(driver, SelectRacer(HOTKEY, None)) == "season.no_selection"
    driver.do(Disqualify("old", "copied"))
    assert refused(driver, SelectRacer(HOTKEY, "old")) == "season.disqualified"


def test_between_closing_and_draw_nothing_is_selected(driver: Driver) -> None:
    driver.do(SelectRacer(HOTKEY, "old"))
    driver.close()
    assert refused(driver, SelectRacer(HOTKEY, "new")) == "season.race_locked"
    assert refused(driver, SelectRacer(HOTKEY, None)) == "season.race_locked"
    driver.draw()
    driver.do(SelectRacer(HOTKEY, None))
