"""The calendar's rules, one by one: what is refused, what is resolved, and how."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from arena.exceptions import ArenaError, DrawError, SeasonError
from arena.season.beacon import chain_ticket
from arena.season.commands import (
    Appeal,
    Deregister,
    Disqualify,
    Draw,
    LeaveValidator,
    OpenRace,
    ProblemOutcome,
    Qualify,
    Report,
    SetRules,
    Submit,
    Tick,
)
from arena.season.deciding import decide
from arena.season.draw import Candidate
from arena.season.embargo import code_public_at, embargo_over, records_public_at
from arena.season.listing import publish
from arena.season.results import Decision
from arena.season.standings import all_time, by_bucket, paid_race, race_standings
from arena.season.state import Season, Stage, Void
from scoring.types import Bucket
from tests.unit.arena.season.driving import RULES, START, VALIDATORS, Driver, pool


def refused(driver: Driver, command: object, code: str) -> ArenaError:
    """The command is refused with this code, and changes nothing."""
    before = len(driver.events)
    with pytest.raises(ArenaError) as error:
        driver.do(command)  # type: ignore[arg-type]
    assert error.value.code == code
    assert len(driver.events) == before
    return error.value


@pytest.fixture
def driver() -> Driver:
    return Driver()


# --- the course of a race


def test_a_race_runs_from_its_commitment_to_a_champion(driver: Driver) -> None:
    race_id = driver.open()
    assert race_id == "race-2026-03-03"
    driver.enter("v1")
    driver.enter("v2")
    driver.race({"v1": 3, "v2": 4})
    result = driver.season.results[0]
    assert result.race_id == race_id
    assert result.on_time
    assert result.title.decision is Decision.VACANT
    assert driver.season.champion == "v2"
    scores = {r.version: r.score for r in result.racers}
    assert scores == {"v1": pytest.approx(0.5), "v2": pytest.approx(4 / 6)}
    assert Season.folded(driver.events).champion == "v2"


def test_the_commitment_stands_in_the_journal_before_anybody_can_qualify(driver: Driver) -> None:
    driver.open()
    opened = driver.events[-1]
    assert opened.kind == "race.opened"
    assert driver.secret not in str(opened.data)
    assert driver.season.open is not None
    assert opened.data["commitment_hash"] == driver.season.open.commitment.hash


def test_closings_are_a_day_apart_that_may_have_23_hours(driver: Driver) -> None:
    closings: list[datetime] = []
    for day in range(8):
        driver.open()
        assert driver.season.open is not None
        closings.append(driver.season.open.closes_at)
        driver.enter(f"v{day}")
        driver.race({f"v{i}": 3 for i in range(day + 1)})
    hours = [(b - a) / timedelta(hours=1) for a, b in pairwise(closings)]
    assert sorted(set(hours)) == [23, 24]
    assert len({r.race_id for r in driver.season.results}) == 8


def test_a_race_that_opens_right_before_noon_closes_the_next_day(driver: Driver) -> None:
    driver.now = START.replace(hour=19, minute=59) + timedelta(days=1)
    assert driver.open() == "race-2026-03-04"


def test_two_races_are_never_in_qualifying(driver: Driver) -> None:
    driver.open()
    with pytest.raises(SeasonError) as error:
        driver.open()
    assert error.value.code == "season.race_open"


def test_the_next_race_qualifies_while_one_runs(driver: Driver) -> None:
    driver.open()
    driver.enter("v1")
    driver.close()
    driver.draw()
    assert driver.open() == "race-2026-03-04"
    driver.enter("v2")
    assert driver.season.running is not None
    assert "v2" not in driver.season.running.racers


def test_what_qualifies_after_the_closing_waits_for_the_next_race(driver: Driver) -> None:
    driver.open()
    driver.enter("v1")
    assert driver.season.open is not None
    driver.now = driver.season.open.closes_at  # nobody has ticked yet
    driver.enter("v2")
    driver.settle()
    assert driver.season.open.racers == ("v1",)
    assert list(driver.season.waiting) == ["v2"]


# --- refusals


def test_a_clock_that_goes_back_is_refused_until_it_has_caught_up(driver: Driver) -> None:
    driver.open()
    driver.now -= timedelta(seconds=1)
    refused(driver, Tick(), "season.clock_went_back")
    driver.now = START
    assert driver.do(Tick()) == []


def test_a_moment_without_a_zone_is_refused(driver: Driver) -> None:
    with pytest.raises(SeasonError) as error:
        decide(driver.season, Tick(), datetime(2026, 3, 3))
    assert error.value.code == "season.no_time_zone"


def test_a_journal_whose_times_go_back_is_refused(driver: Driver) -> None:
    driver.now += timedelta(hours=1)
    driver.enter("v1")
    with pytest.raises(SeasonError) as error:
        Season.folded([*driver.events, driver.events[0]])
    assert error.value.code == "season.clock_went_back"


def test_a_pool_too_small_for_the_draw_opens_no_race(driver: Driver) -> None:
    with pytest.raises(DrawError) as error:
        driver.open(pool(1))
    assert error.value.code == "draw.pool_too_small"
    assert "product has 1 of 2" in error.value.message
    # Two variants of one problem are one question.
    twins = [Candidate(f"p{b}{i}", b, f"c{b}") for b in Bucket for i in range(2)]
    with pytest.raises(DrawError):
        driver.open(twins)
    assert driver.season.open is None


def test_a_second_submission_waits_twelve_hours(driver: Driver) -> None:
    driver.do(Submit("v1", "hk", "s1"))
    driver.now += timedelta(hours=12) - timedelta(seconds=1)
    error = refused(driver, Submit("v2", "hk", "s2"), "season.too_soon")
    assert "2026-03-03 08:30:00 UTC" in error.message
    driver.do(Submit("v3", "other", "s2"))
    driver.now += timedelta(seconds=1)
    driver.do(Submit("v2", "hk", "s2"))


def test_twelve_hours_are_twelve_over_the_change_of_the_clocks(driver: Driver) -> None:
    driver.now = datetime(2026, 3, 8, 7, 0, tzinfo=UTC)  # 23:00 in winter time
    driver.do(Submit("v1", "hk", "s1"))
    driver.now = datetime(2026, 3, 8, 18, 30, tzinfo=UTC)  # 11:30 in summer time
    refused(driver, Submit("v2", "hk", "s2"), "season.too_soon")
    driver.now = datetime(2026, 3, 8, 19, 0, tzinfo=UTC)
    driver.do(Submit("v2", "hk", "s2"))


def test_what_cannot_be_submitted_or_qualified(driver: Driver) -> None:
    driver.do(Submit("v1", "hk", "s1"))
    refused(driver, Submit("v1", "hk2", "s1"), "season.twice_submitted")
    refused(driver, Submit("", "hk2", "s1"), "season.bad_name")
    refused(driver, Submit("v\x00", "hk2", "s1"), "season.bad_name")
    refused(driver, Qualify("v9", 0.5), "season.unknown_agent")
    refused(driver, Qualify("v1", None), "season.incomplete")
    for score in (math.nan, math.inf, -0.1, 1.1):
        refused(driver, Qualify("v1", score), "season.bad_score")
    driver.do(Qualify("v1", 0.5))
    refused(driver, Qualify("v1", 0.6), "season.twice_qualified")


def test_the_threshold_admits(driver: Driver) -> None:
    driver.enter("v1", score=0.3)
    driver.enter("v2", score=0.2999)
    assert list(driver.season.waiting) == ["v1"]


def test_another_secret_round_or_opening_draws_nothing(driver: Driver) -> None:
    race_id = driver.open()
    driver.enter("v1")
    beacon = driver.beacon()
    refused(driver, Draw(race_id, driver.secret, beacon, driver.openings), "season.no_such_race")
    driver.close()
    early = Draw(race_id, driver.secret, beacon, driver.openings)
    refused(driver, early, "draw.early_beacon")
    driver.now = beacon.at
    refused(driver, Draw(race_id, "0" * 64, beacon, driver.openings), "draw.other_secret")
    _, others = publish(pool(), b"x" * 32)
    refused(driver, Draw(race_id, driver.secret, beacon, others), "draw.bad_opening")
    refused(driver, Draw("race-1999-01-01", driver.secret, beacon, {}), "season.no_such_race")
    assert driver.season.open is not None
    assert driver.season.open.stage is Stage.AWAITING_BEACON
    driver.draw()


def test_a_beacon_that_the_rules_do_not_name_is_refused(driver: Driver) -> None:
    listing, _ = publish(pool(), b"k" * 32)
    ticket = chain_ticket(100, driver.now, START + timedelta(days=1), timedelta(0))
    refused(driver, OpenRace("0" * 64, ticket, listing), "draw.bad_beacon")


# --- rules that resolve


def test_a_race_without_a_qualifier_is_void_and_draws_nothing(driver: Driver) -> None:
    driver.open()
    driver.enter("v1", score=0.1)
    driver.close()
    assert driver.season.open is None
    assert driver.season.voids[0].reason is Void.NO_QUALIFIER
    assert driver.open() == "race-2026-03-04"


def test_the_champion_alone_does_not_race(driver: Driver) -> None:
    driver.open()
    driver.enter("v1")
    driver.race({"v1": 3})
    driver.open()
    driver.close()
    assert driver.season.voids[0].reason is Void.NO_QUALIFIER
    assert driver.season.champion == "v1"


def test_one_qualifier_takes_a_vacant_title_only_above_zero(driver: Driver) -> None:
    driver.open()
    driver.enter("v1")
    driver.race({"v1": 0})
    assert driver.season.results[-1].title.decision is Decision.NOTHING_SOLVED
    assert driver.season.champion is None
    driver.open()
    driver.enter("v2")
    driver.race({"v2": 1})
    assert driver.season.champion == "v2"
    paid = paid_race(driver.season)
    assert paid is not None
    assert len(paid.finishers) == 1  # too few for anybody to be paid: all burns


def test_ties_go_to_the_champion_and_then_to_the_first_version_id(driver: Driver) -> None:
    driver.open()
    for version in ("v3", "v1", "v2"):
        driver.enter(version)
    driver.race({"v1": 4, "v2": 4, "v3": 4})
    assert driver.season.champion == "v1"
    driver.open()
    driver.enter("a0")
    driver.race({"v1": 4, "a0": 4})
    assert driver.season.champion == "v1"
    assert driver.season.results[-1].title.decision is Decision.DEFENDED


def test_a_challenger_has_to_be_ahead_by_the_margin() -> None:
    rules = RULES.model_copy(
        update={"quota": dict.fromkeys(Bucket, 20), "margin_half_life_days": 1000.0}
    )
    driver = Driver(rules)
    driver.open(pool(20))
    driver.enter("v1")
    driver.race({"v1": 30})  # 0.5; a challenger needs 0.55, which is 33 of 60
    driver.open(pool(20))
    driver.enter("v2")
    driver.race({"v1": 30, "v2": 32})
    title = driver.season.results[-1].title
    assert title.decision is Decision.DEFENDED
    assert title.required == pytest.approx(0.55, abs=0.001)
    driver.open(pool(20))
    driver.enter("v3")
    driver.race({"v1": 30, "v3": 33})
    assert driver.season.champion == "v3"


def test_too_few_validators_void_a_race_and_its_qualifiers_wait(driver: Driver) -> None:
    driver.open()
    driver.enter("v1")
    driver.do(LeaveValidator("val-a"))
    driver.do(LeaveValidator("val-b"))
    driver.close()
    assert driver.season.voids[0].reason is Void.TOO_FEW_VALIDATORS
    assert list(driver.season.waiting) == ["v1"]


def test_a_race_that_is_not_drawn_in_time_is_void_and_its_racers_wait(driver: Driver) -> None:
    driver.open()
    driver.enter("v1")
    driver.close()
    race = driver.season.open
    assert race is not None
    driver.now = race.draw_until
    late = Draw(race.race_id, driver.secret, driver.beacon(), driver.openings)
    refused(driver, late, "season.too_late")
    driver.settle()
    assert driver.season.voids[0].reason is Void.NOT_DRAWN
    assert list(driver.season.waiting) == ["v1"]
    driver.open()
    driver.race({"v1": 2})
    assert driver.season.champion == "v1"


def test_who_is_disqualified_does_not_wait_for_another_race(driver: Driver) -> None:
    driver.open()
    driver.enter("v1")
    driver.enter("v2")
    driver.close()
    driver.do(Disqualify("v2", "a copy"))
    assert driver.season.open is not None
    driver.now = driver.season.open.draw_until
    driver.settle()
    assert list(driver.season.waiting) == ["v1"]


def test_a_validator_that_never_answers_leaves_the_quorum_to_decide(driver: Driver) -> None:
    driver.open()
    driver.enter("v1")
    driver.enter("v2")
    driver.close()
    driver.draw()
    race = driver.season.running
    assert race is not None
    for validator in VALIDATORS[:2]:
        driver.report("v1", validator, 3)
    driver.report("v2", VALIDATORS[0], 6)
    assert driver.settle() == []
    driver.now = race.deadline - timedelta(seconds=1)
    assert driver.settle() == []
    driver.now = race.deadline
    refused(
        driver,
        Report(race.race_id, "v2", VALIDATORS[1], {}),
        "season.too_late",
    )
    driver.settle()
    result = driver.season.results[0]
    assert not result.on_time
    scores = {r.version: r.score for r in result.racers}
    assert scores == {"v1": pytest.approx(0.5), "v2": None}
    assert driver.season.champion == "v1"
    assert list(driver.season.waiting) == ["v2"]  # it races again, by no fault of its own
    assert [row.rank for row in race_standings(driver.season, result)] == [1, None]


def test_an_agent_is_carried_over_so_often_and_no_more() -> None:
    driver = Driver(RULES.model_copy(update={"carries": 1}))
    driver.enter("v1")
    for _ in range(2):
        driver.open()
        driver.close()
        driver.draw()
        race = driver.season.running
        assert race is not None
        driver.now = race.deadline
        driver.settle()
    assert driver.events[-1].data["set_aside"] == ["v1"]
    assert not driver.season.waiting
    assert driver.season.results[-1].title.decision is Decision.NO_FINISHER


def test_the_score_is_the_median_over_validators(driver: Driver) -> None:
    driver.open()
    driver.enter("v1")
    driver.close()
    driver.draw()
    for validator, solved in zip(VALIDATORS, (0, 3, 6), strict=True):
        driver.report("v1", validator, solved, coefficient=0.8)
    driver.settle()
    (racer,) = driver.season.results[0].racers
    assert racer.score == pytest.approx(0.4)
    assert racer.asr == pytest.approx(0.5)
    assert racer.validators == 3


def test_outcomes_may_come_in_parts_and_twice_but_not_otherwise(driver: Driver) -> None:
    race_id = driver.open()
    driver.enter("v1")
    driver.close()
    driver.draw()
    race = driver.season.running
    assert race is not None
    first, second = race.problems[:2]
    part = {first.problem_id: ProblemOutcome(True, 1.0)}
    assert driver.do(Report(race_id, "v1", "val-a", part))
    assert driver.do(Report(race_id, "v1", "val-a", part)) == []
    other = {first.problem_id: ProblemOutcome(False, 1.0)}
    refused(driver, Report(race_id, "v1", "val-a", other), "season.outcome_changed")
    both = part | {second.problem_id: ProblemOutcome(True, 0.3)}
    (event,) = driver.do(Report(race_id, "v1", "val-a", both))
    assert event.data["outcomes"] == {second.problem_id: [1, 0.3, 0.0]}


def test_reports_that_are_refused(driver: Driver) -> None:
    race_id = driver.open()
    driver.enter("v1")
    driver.close()
    driver.draw()
    race = driver.season.running
    assert race is not None
    problem_id = race.problems[0].problem_id
    fine = {problem_id: ProblemOutcome(True, 1.0)}
    refused(driver, Report("race-0", "v1", "val-a", fine), "season.no_such_race")
    refused(driver, Report(race_id, "v2", "val-a", fine), "season.not_racing")
    refused(driver, Report(race_id, "v1", "val-x", fine), "season.unknown_validator")
    stray = {"p-elsewhere": ProblemOutcome(True, 1.0)}
    refused(driver, Report(race_id, "v1", "val-a", stray), "season.not_drawn")
    for bad in (math.nan, -0.1, 1.5):
        wrong = {problem_id: ProblemOutcome(True, bad)}
        refused(driver, Report(race_id, "v1", "val-a", wrong), "season.bad_score")
        wrong = {problem_id: ProblemOutcome(True, 1.0, bad)}
        refused(driver, Report(race_id, "v1", "val-a", wrong), "season.bad_score")


def test_only_the_latest_agent_of_a_hotkey_races(driver: Driver) -> None:
    driver.open()
    driver.enter("v1", "hk")
    driver.now += timedelta(hours=12)
    driver.enter("v2", "hk")
    driver.close()
    assert driver.season.open is not None
    assert driver.season.open.racers == ("v2",)
    assert not driver.season.waiting


def test_half_an_answer_is_no_score_at_the_deadline_either(driver: Driver) -> None:
    driver.open()
    driver.enter("v1")
    driver.close()
    driver.draw()
    race = driver.season.running
    assert race is not None
    driver.report("v1", VALIDATORS[0], 6)
    half = {p.problem_id: ProblemOutcome(True, 1.0) for p in race.problems[:-1]}
    for validator in VALIDATORS[1:]:
        driver.do(Report(race.race_id, "v1", validator, half))
    driver.now = race.deadline
    driver.settle()
    (racer,) = driver.season.results[0].racers
    assert (racer.score, racer.asr, racer.validators) == (None, None, 1)


def test_who_looks_late_finds_the_new_champion_in_the_next_race(driver: Driver) -> None:
    """Nobody ticked for a day: the race that ran is decided first, then who races next."""
    driver.open()
    driver.enter("v1")
    driver.close()
    driver.draw()
    driver.open()
    driver.enter("v2")
    for validator in VALIDATORS:
        driver.report("v1", validator, 3)
    driver.close()
    assert driver.season.champion == "v1"
    assert driver.season.open is not None
    assert driver.season.open.racers == ("v2", "v1")


# --- titles, disqualification, appeal


def two_champions(driver: Driver) -> None:
    """v1 wins, then v2 takes the title from it."""
    driver.open()
    driver.enter("v1")
    driver.race({"v1": 3})
    driver.open()
    driver.enter("v2")
    driver.race({"v1": 3, "v2": 6})
    assert driver.season.champion == "v2"


def test_a_disqualified_champion_gives_the_title_back(driver: Driver) -> None:
    two_champions(driver)
    driver.do(Disqualify("v2", "hard-coded answers"))
    assert driver.season.champion == "v1"
    assert [r.version for r in driver.season.results[-1].racers] == ["v2", "v1"]  # history stays
    assert {row.version for row in all_time(driver.season)} == {"v1"}
    paid = paid_race(driver.season)
    assert paid is not None
    assert [f.agent_version_id for f in paid.finishers] == ["v1"]
    assert paid.champion == "v1"


def test_an_appeal_gives_the_title_back_unless_it_was_won_since(driver: Driver) -> None:
    two_champions(driver)
    driver.do(Disqualify("v2", "hard-coded answers"))
    driver.do(Appeal("v2", "they were the query's own words"))
    assert driver.season.champion == "v2"
    assert not driver.season.waiting
    driver.do(Disqualify("v2", "again"))
    driver.open()
    driver.enter("v3")
    driver.race({"v1": 3, "v3": 6})
    driver.do(Appeal("v2", "no"))
    assert driver.season.champion == "v3"
    assert list(driver.season.waiting) == ["v2"]  # it may race for it


def test_disqualification_and_appeal_want_a_reason_and_a_case(driver: Driver) -> None:
    driver.enter("v1")
    refused(driver, Disqualify("v1", " "), "season.bad_name")
    refused(driver, Disqualify("v9", "why"), "season.unknown_agent")
    refused(driver, Appeal("v1", "why"), "season.not_disqualified")
    driver.do(Disqualify("v1", "why"))
    assert not driver.season.waiting
    refused(driver, Disqualify("v1", "why"), "season.twice_disqualified")
    refused(driver, Appeal("v1", ""), "season.bad_name")


def test_a_racer_disqualified_on_the_way_is_not_waited_for_and_cannot_win(driver: Driver) -> None:
    driver.open()
    driver.enter("v1")
    driver.enter("v2")
    driver.close()
    driver.draw()
    for validator in VALIDATORS:
        driver.report("v1", validator, 2)
        if validator != VALIDATORS[0]:
            driver.report("v2", validator, 6)
    driver.do(Disqualify("v2", "a copy"))
    driver.settle()
    assert driver.season.champion == "v1"


def test_a_champion_that_leaves_gives_the_title_back_for_good(driver: Driver) -> None:
    two_champions(driver)
    driver.do(Deregister("hk-v2"))
    assert driver.season.champion == "v1"
    driver.do(Deregister("hk-v1"))
    assert driver.season.champion is None
    assert driver.do(Deregister("hk-v1")) == []
    driver.now += timedelta(hours=12)
    driver.open()
    driver.enter("v4", "hk-v2")  # registered anew: a new agent like any other
    driver.race({"v4": 1})
    assert driver.season.champion == "v4"
    assert driver.season.results[-1].title.decision is Decision.VACANT


def test_no_title_changes_in_a_race_that_its_holder_did_not_run(driver: Driver) -> None:
    two_champions(driver)
    driver.open()
    driver.enter("v3")
    driver.close()
    driver.draw()
    for version in ("v2", "v3"):
        for validator in VALIDATORS:
            driver.report(version, validator, 6 if version == "v3" else 1)
    driver.do(Disqualify("v2", "why"))
    driver.settle()
    assert driver.season.results[-1].title.decision is Decision.CHAMPION_ABSENT
    assert driver.season.champion == "v1"


def test_code_is_public_from_noon_of_the_weekday_after_it_won(driver: Driver) -> None:
    driver.open()
    driver.enter("v1")
    driver.enter("v2")
    driver.race({"v1": 3, "v2": 1})  # won on a Tuesday, minutes after noon
    public = code_public_at(driver.season, "v1")
    assert public == datetime(2026, 3, 4, 20, 0, tzinfo=UTC)
    assert code_public_at(driver.season, "v2") is None
    driver.do(Disqualify("v1", "why"))
    assert code_public_at(driver.season, "v1") == public


def test_records_of_a_loser_are_free_from_noon_of_the_weekday_after_its_race(
    driver: Driver,
) -> None:
    driver.enter("v0", score=0.0)
    driver.open()
    driver.enter("v1")
    driver.enter("v2")
    driver.race({"v1": 3, "v2": 1})
    noon = datetime(2026, 3, 4, 20, 0, tzinfo=UTC)
    assert records_public_at(driver.season, "v1") == noon
    assert records_public_at(driver.season, "v2") == noon
    assert records_public_at(driver.season, "v0") is None
    before = embargo_over(driver.season, noon - timedelta(seconds=1))
    after = embargo_over(driver.season, noon)
    assert [before(f"source of {v}") for v in ("v0", "v1", "v2")] == [False, False, False]
    assert [after(f"source of {v}") for v in ("v0", "v1", "v2")] == [False, True, True]
    assert not after("a source that nobody submitted")
    driver.open()
    driver.enter("v3")  # while it waits for its race, nobody reads what its code did before
    driver.do(Submit("v4", "hk-v4", "source of v1"))
    assert not embargo_over(driver.season, noon)("source of v1")


def test_standings_by_bucket_and_over_all_races(driver: Driver) -> None:
    two_champions(driver)
    rows = all_time(driver.season)
    assert [(row.rank, row.version, row.races, row.champion) for row in rows] == [
        (1, "v2", 1, True),
        (2, "v1", 2, False),
    ]
    buckets = by_bucket(driver.season)
    # The first three of six solved: both of product, one of shop, none of voucher.
    v1 = {b: next(r.score for r in rows if r.version == "v1") for b, rows in buckets.items()}
    assert v1 == {Bucket.PRODUCT: 1.0, Bucket.SHOP: 0.5, Bucket.VOUCHER: 0.0}


def test_a_race_keeps_the_rules_with_which_it_opened(driver: Driver) -> None:
    driver.open()
    driver.enter("v1")
    driver.do(SetRules(RULES.model_copy(update={"quota": {Bucket.SHOP: 1}, "quorum": 3})))
    driver.race({"v1": 6})
    assert len(driver.season.results[0].racers) == 1
    assert driver.season.champion == "v1"
    driver.open()
    assert driver.season.open is not None
    assert driver.season.open.commitment.quota[Bucket.PRODUCT] == 0


def test_richness_weighs_a_success_by_its_agentic_share() -> None:
    driver = Driver(RULES.model_copy(update={"richness_share": 0.5}))
    race_id = driver.open()
    driver.enter("axis-a")
    driver.enter("axis-b")
    driver.close()
    driver.draw()
    race = driver.season.running
    assert race is not None
    for version, ratio in (("axis-a", 1.0), ("axis-b", 0.0)):
        for validator in VALIDATORS:
            outcomes = {p.problem_id: ProblemOutcome(True, 0.8, ratio) for p in race.problems}
            driver.do(Report(race_id, version, validator, outcomes))
    driver.settle()
    scores = {r.version: r.score for r in driver.season.results[0].racers}
    assert scores == {"axis-a": pytest.approx(0.8), "axis-b": pytest.approx(0.4)}
