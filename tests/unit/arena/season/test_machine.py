"""Whatever is asked of a season, in whatever order: its rules hold, and its journal says all."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from arena.exceptions import ArenaError
from arena.season.commands import (
    Appeal,
    Command,
    Deregister,
    Disqualify,
    Draw,
    JoinValidator,
    LeaveValidator,
    ProblemOutcome,
    Qualify,
    Report,
    SelectRacer,
    Submit,
    Tick,
)
from arena.season.results import Decision
from arena.season.standings import all_time, by_bucket, paid_race, race_standings, to_json
from arena.season.state import Season, Stage
from scoring.types import Bucket
from scoring.weights import weight_vector
from tests.unit.arena.season.driving import Driver, pool

VERSIONS = st.sampled_from([f"v{i}" for i in range(6)])
HOTKEYS = st.sampled_from([f"hk{i}" for i in range(4)])
VALIDATORS = st.sampled_from(["val-a", "val-b", "val-c", "val-d"])


class SeasonMachine(RuleBasedStateMachine):
    """Commands at random, allowed and forbidden ones, while the clock goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.submitted: dict[str, list[object]] = {}
        self.results = 0

    @property
    def season(self) -> Season:
        return self.driver.season

    def try_(self, command: Command) -> None:
        """A refusal has a code, and changes nothing."""
        before, code = len(self.driver.events), None
        try:
            self.driver.do(command)
        except ArenaError as error:
            code = error.code
        if code is not None:
            assert code.startswith(("season.", "draw."))
            assert len(self.driver.events) == before

    @rule(hotkey=HOTKEYS, version=st.one_of(st.none(), VERSIONS))
    def select(self, hotkey: str, version: str | None) -> None:
        self.try_(SelectRacer(hotkey, version))

    @rule(minutes=st.sampled_from([0, 1, 30, 300, 720, 1500]))
    def time_goes_on(self, minutes: int) -> None:
        self.driver.now += timedelta(minutes=minutes)

    @rule()
    def tick(self) -> None:
        self.driver.settle()
        assert self.driver.do(Tick()) == []

    @rule(small=st.booleans())
    def open(self, small: bool) -> None:
        code = None
        try:
            self.driver.open(pool(1 if small else 3))
        except ArenaError as error:
            code = error.code
        assert code in {None, "season.race_open", "draw.pool_too_small"}
        assert code != "draw.pool_too_small" or small

    @rule(version=VERSIONS, hotkey=HOTKEYS, score=st.sampled_from([0.0, 0.3, 0.9]))
    def enter(self, version: str, hotkey: str, score: float) -> None:
        before = self.season.last_submission.get(hotkey)
        new = version not in self.season.entrants
        self.try_(Submit(version, hotkey, "source"))
        if new and version in self.season.entrants and before is not None:
            assert self.driver.now - before >= timedelta(hours=12)
        self.try_(Qualify(version, score))

    @precondition(lambda self: self.season.open is not None)
    @rule(soon=st.booleans())
    def draw(self, soon: bool) -> None:
        race = self.season.open
        assert race is not None
        if soon and race.stage is Stage.AWAITING_BEACON:
            self.driver.now = max(self.driver.now, self.driver.beacon().at)
        self.try_(
            Draw(race.race_id, self.driver.secret, self.driver.beacon(), self.driver.openings)
        )

    @precondition(lambda self: self.season.running is not None)
    @rule(version=VERSIONS, validator=VALIDATORS, solved=st.integers(0, 6), part=st.booleans())
    def report(self, version: str, validator: str, solved: int, part: bool) -> None:
        race = self.season.running
        assert race is not None
        outcomes = {
            p.problem_id: ProblemOutcome(i < solved, 0.8) for i, p in enumerate(race.problems)
        }
        if part:
            outcomes.popitem()
        self.try_(Report(race.race_id, version, validator, outcomes))

    @precondition(lambda self: self.season.running is not None)
    @rule(solved=st.integers(0, 6))
    def report_everything(self, solved: int) -> None:
        race = self.season.running
        assert race is not None
        for i, version in enumerate(race.racers):
            for validator in self.season.validators:
                outcomes = {
                    p.problem_id: ProblemOutcome(j < (solved + i) % 7, 1.0)
                    for j, p in enumerate(race.problems)
                }
                self.try_(Report(race.race_id, version, validator, outcomes))
        self.driver.settle()

    @rule(version=VERSIONS)
    def disqualify(self, version: str) -> None:
        self.try_(Disqualify(version, "a reason"))

    @rule(version=VERSIONS)
    def appeal(self, version: str) -> None:
        self.try_(Appeal(version, "a reason"))

    @rule(hotkey=HOTKEYS)
    def leave(self, hotkey: str) -> None:
        self.try_(Deregister(hotkey))

    @rule(validator=VALIDATORS, joins=st.booleans())
    def validators_change(self, validator: str, joins: bool) -> None:
        self.try_(JoinValidator(validator) if joins else LeaveValidator(validator))

    @invariant()
    def the_champion_may_hold_the_title(self) -> None:
        champion = self.season.champion
        if champion is not None:
            entrant = self.season.entrants[champion]
            assert entrant.eligible
            assert entrant.raced

    @invariant()
    def who_waits_is_eligible_and_qualified(self) -> None:
        for version in self.season.waiting:
            entrant = self.season.entrants[version]
            assert entrant.eligible
            assert entrant.qualified

    @invariant()
    def races_do_not_overlap(self) -> None:
        race, running = self.season.open, self.season.running
        assert race is None or race.stage in (Stage.QUALIFYING, Stage.AWAITING_BEACON)
        assert running is None or running.stage is Stage.RACING
        if race is not None and running is not None:
            assert running.deadline < race.closes_at
        ids = [r.race_id for r in self.season.results] + [v.race_id for v in self.season.voids]
        assert len(set(ids)) == len(ids)

    @invariant()
    def a_racer_has_one_place_a_hotkey(self) -> None:
        for race in (self.season.open, self.season.running):
            if race is not None and race.racers:
                challengers = [v for v in race.racers if v != race.champion]
                hotkeys = [self.season.entrants[v].hotkey for v in challengers]
                assert len(set(race.racers)) == len(race.racers)
                assert len(set(hotkeys)) == len(hotkeys)

    @invariant()
    def a_draw_is_stratified(self) -> None:
        race = self.season.running
        if race is not None:
            for bucket in Bucket:
                assert sum(p.bucket is bucket for p in race.problems) == race.rules.quota[bucket]

    @invariant()
    def results_are_whole_and_titles_deserved(self) -> None:
        for result in self.season.results[self.results :]:
            scores = {r.version: r.score for r in result.racers if r.score is not None}
            assert all(r.validators >= 2 for r in result.racers if r.complete)
            title = result.title
            if title.decision is Decision.PROMOTED:
                assert title.champion is not None
                assert title.required is not None
                assert scores[title.champion] >= title.required
            if title.decision is Decision.VACANT:
                assert title.champion is not None
                assert scores[title.champion] > 0
        self.results = len(self.season.results)

    @invariant()
    def standings_and_weights_can_always_be_made(self) -> None:
        rows = [
            *all_time(self.season),
            *(r for rows in by_bucket(self.season).values() for r in rows),
        ]
        for race in self.season.results:
            rows += race_standings(self.season, race)
        assert all(self.season.entrants[row.version].disqualified is None for row in rows)
        to_json(self.season)
        paid = paid_race(self.season)
        if paid is not None:
            weights = weight_vector(
                paid.finishers,
                ["burn", "hk0", "hk1"],
                top_share=0.25,
                burn_share=0.75,
                champion=paid.champion,
            )
            assert any(weights)

    def teardown(self) -> None:
        """The journal alone gives the same state."""
        again = Season.folded(self.driver.events)
        assert again.entrants == self.season.entrants
        assert again.waiting == self.season.waiting
        assert again.results == self.season.results
        assert again.titles == self.season.titles
        assert again.voids == self.season.voids
        assert again.open == self.season.open
        assert again.running == self.season.running


SeasonMachine.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestSeasonMachine = SeasonMachine.TestCase
