"""A simulated season is sound, is the same for a seed, and finds it out when a guard is broken."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import cast

import pytest
from typer.testing import CliRunner

from arena.exceptions import ArenaError, BankError
from arena.problems.bank import Bank
from arena.problems.holdings import Holding
from arena.problems.pools import Pool
from arena.races.cli import app
from arena.simulation.course import Plan, Simulation
from arena.simulation.miners import Kind
from arena.simulation.sources import Work
from arena.simulation.tally import Outcome
from scoring.types import JsonObject

PLAN = Plan(days=16, seed=3, miners=40, each=2, products=300)
SHORT = Plan(days=5, seed=3, miners=20, each=1, products=200)


@pytest.fixture(scope="module")
def season() -> Outcome:
    return Simulation(PLAN).run()


def test_a_season_is_sound(season: Outcome) -> None:
    assert season.sound
    assert not season.leaks
    assert not season.tally.copies_paid
    assert season.tally.draws_verified >= 12
    assert sum(month.races for month in season.tally.months) >= 12
    assert season.promotions >= 1
    assert set(season.miners) == set(Kind)


def test_who_stores_every_open_answer_gains_nothing_from_it(season: Outcome) -> None:
    assert season.memoriser("open").asr == 1.0
    held_out = season.memoriser("held_out")
    assert held_out.runs > 200
    assert held_out.asr is not None
    assert held_out.asr < 0.2


def test_copies_come_and_are_refused_and_honest_files_are_not(season: Outcome) -> None:
    assert sum(month.refused_copies for month in season.tally.months) >= 1
    assert season.tally.refused_honest == 0
    assert sum(month.too_soon for month in season.tally.months) >= 1


def test_the_champion_that_leaves_has_won_before(season: Outcome) -> None:
    assert season.tally.left_as_champion == 1
    kinds = [row["kind"] for row in season.tally.champions]
    assert "leaver" in kinds


def test_variants_stay_with_their_problems(season: Outcome) -> None:
    variants = season.tally.variants
    assert variants["meets_held_out"] == PLAN.days
    assert variants["meets_open"] + variants["meets_exposed"] == PLAN.days
    assert season.clusters < season.problems


def test_the_same_seed_gives_the_same_season_and_another_seed_another() -> None:
    one, two = Simulation(SHORT).run(), Simulation(SHORT).run()
    assert one.to_json() == two.to_json()
    assert Simulation(replace(SHORT, seed=4)).run().journal_hash != one.journal_hash


class ForgetfulBank(Bank):
    """Broken on purpose: what was raced stays held out, and is drawn again."""

    def drawable(self) -> tuple[Holding, ...]:
        raced = (h for c in self.clusters(Pool.HELD_OUT) for h in map(self.need, c.live))
        return tuple(sorted(raced, key=lambda held: held.problem_id))

    def _race(self, data: JsonObject, at: datetime) -> None:
        """Marks nothing: rotation leaves it where it is."""


def test_raced_problems_that_come_back_are_found() -> None:
    season = Simulation(replace(SHORT, days=9), bank=ForgetfulBank).run()
    assert not season.sound
    assert {leak.shared for leak in season.leaks} == {"cluster", "product"}
    assert sum(month.leaks for month in season.tally.months) == len(season.leaks)


class ReturningBank(Bank):
    """Broken on purpose: offers what was raced to the next race; its refusals are whole."""

    drawable = ForgetfulBank.drawable


def test_the_bank_itself_refuses_to_race_a_problem_again() -> None:
    with pytest.raises(BankError) as refused:
        Simulation(replace(SHORT, days=9), bank=ReturningBank).run()
    assert refused.value.code == "bank.not_drawable"


class OpenGate:
    """Broken on purpose: lets every file in."""

    def admits(self, version: str, hotkey: str, work: Work, style: int) -> bool:
        return True


def test_copies_that_a_broken_gate_lets_in_are_found_when_they_are_paid() -> None:
    season = Simulation(PLAN, gate=OpenGate()).run()
    assert season.tally.copies_paid
    assert not season.sound


def test_the_command_prints_and_writes_what_came_of_it() -> None:
    asked = "--days 3 --seed 1 --miners 12 --problems 1 --json -"
    result = CliRunner().invoke(app, ["simulate", *asked.split()])
    assert result.exit_code == 0
    value = cast("JsonObject", json.loads(result.stdout))
    assert value["cluster_leaks"] == 0
    assert value["copies_paid"] == 0
    assert "cluster leaks: none" in result.stderr


def test_the_command_fails_for_an_unsound_season(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = partial(Simulation, bank=ForgetfulBank)
    monkeypatch.setattr("arena.simulation.course.Simulation", broken)
    asked = "--days 9 --seed 3 --miners 20 --problems 1"
    result = CliRunner().invoke(app, ["simulate", *asked.split()])
    assert isinstance(result.exception, ArenaError)
    assert result.exception.code == "simulation.unsound"
