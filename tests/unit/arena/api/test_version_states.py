"""What a version's state follows from."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from arena.api.version_states import (
    VersionState,
    elimination,
    not_selectable,
    race_score,
    version_state,
)
from arena.season.commands import Appeal, Deregister, Disqualify, Qualify, Submit
from arena.work.types import Evaluation, EvaluationKind, EvaluationState
from arena.work.views import EvaluationView
from tests.unit.arena.season.driving import Driver

NOW = datetime(2026, 3, 2, tzinfo=UTC)


def evaluation(
    state: EvaluationState,
    *,
    taken: int = 0,
    finished: int = 0,
    kind: EvaluationKind = EvaluationKind.QUALIFYING,
) -> EvaluationView:
    wanted = Evaluation(UUID(int=1), UUID(int=2), kind, None, ("p",), 2)
    ended = None if state is EvaluationState.OPEN else NOW
    return EvaluationView(wanted, state, taken, finished, NOW, ended)


OPEN = evaluation(EvaluationState.OPEN)
HELD = evaluation(EvaluationState.OPEN, taken=1)
CLOSED = evaluation(EvaluationState.CLOSED, taken=2, finished=2)
CANCELLED = evaluation(EvaluationState.CANCELLED)


@pytest.fixture
def driver() -> Driver:
    driver = Driver()
    driver.do(Submit("v", "hk", "source"))
    return driver


def state(driver: Driver, *evaluations: EvaluationView) -> VersionState:
    return version_state(driver.season.entrants.get("v"), evaluations)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (None, VersionState.RECEIVED),
        (OPEN, VersionState.QUEUED),
        (HELD, VersionState.RUNNING),
        (CLOSED, VersionState.RUNNING),
        (CANCELLED, VersionState.CANCELLED),
    ],
)
def test_before_it_is_decided_the_queue_says_it(
    driver: Driver, view: EvaluationView | None, expected: VersionState
) -> None:
    assert state(driver, *([view] if view else [])) is expected


def test_a_race_evaluation_alone_is_no_qualifying(driver: Driver) -> None:
    race = evaluation(EvaluationState.OPEN, kind=EvaluationKind.RACE)
    assert state(driver, race) is VersionState.RECEIVED


@pytest.mark.parametrize(
    ("score", "expected"), [(0.9, VersionState.ELIGIBLE), (0.0, VersionState.DISCARDED)]
)
def test_then_the_season_does(driver: Driver, score: float, expected: VersionState) -> None:
    driver.do(Qualify("v", score))
    assert state(driver, CLOSED) is expected


def test_the_disqualified_are_discarded_and_come_back_on_appeal(driver: Driver) -> None:
    driver.do(Qualify("v", 0.9))
    driver.do(Disqualify("v", "copied"))
    assert state(driver, CLOSED) is VersionState.DISCARDED
    assert not_selectable(driver.season, driver.season.entrants["v"]) == "discarded"
    driver.do(Appeal("v", "it was not"))
    assert state(driver, CLOSED) is VersionState.ELIGIBLE


def test_who_leaves_is_cancelled(driver: Driver) -> None:
    driver.do(Deregister("hk"))
    assert state(driver, OPEN) is VersionState.CANCELLED


def test_an_evaluation_of_nobody_the_season_knows() -> None:
    assert version_state(None, [OPEN]) is VersionState.QUEUED


def test_who_raced_and_did_not_win_is_out() -> None:
    driver = Driver()
    race = driver.open()
    driver.enter("a")
    driver.enter("b")
    assert not_selectable(driver.season, driver.season.entrants["b"]) is None
    driver.race({"a": 6, "b": 3})
    assert elimination(driver.season, "a") is None
    out = elimination(driver.season, "b")
    assert out is not None
    assert (out.race_id, out.at) == (race, driver.season.results[-1].closed_at)
    assert not_selectable(driver.season, driver.season.entrants["b"]) == "eliminated"
    assert race_score(driver.season, "b") == 0.5
    assert race_score(driver.season, "nobody") is None


def test_why_a_version_cannot_be_selected(driver: Driver) -> None:
    entrant = driver.season.entrants["v"]
    assert not_selectable(driver.season, None) == "not_eligible"
    assert not_selectable(driver.season, entrant) == "not_eligible"
    driver.do(Qualify("v", 0.0))
    assert not_selectable(driver.season, entrant) == "below_threshold"
