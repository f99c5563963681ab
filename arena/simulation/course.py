"""A season, day by day: simulated people and runs through the real rules.

Everything that decides is the real thing: the season's state machine, the bank with its
clusters, growth and rotation, the draw with its commitment, the gate's index of copies, the
standings and the weight vector. Deterministic for a seed.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from arena.exceptions import SeasonError
from arena.journal import Event
from arena.problems.bank import Bank
from arena.season.beacon import Source, standin_ticket, standin_value
from arena.season.commands import (
    Appeal,
    Command,
    Deregister,
    Disqualify,
    Draw,
    JoinValidator,
    OpenRace,
    Qualify,
    Report,
    SetRules,
    Submit,
    Tick,
)
from arena.season.deciding import decide
from arena.season.draw import secret_hash
from arena.season.embargo import code_public_at
from arena.season.listing import Opening, publish
from arena.season.racing import next_race
from arena.season.record import record_of
from arena.season.results import Decision, RaceResult
from arena.season.rules import SeasonRules
from arena.season.standings import paid_race
from arena.season.state import Race, Season, Stage
from arena.season.verifying import verify
from arena.simulation.agents import Agent, OpenAnswers, Runs
from arena.simulation.gate import CopyGate, Gate
from arena.simulation.leaks import leaks
from arena.simulation.miners import Kind, Miner
from arena.simulation.people import People
from arena.simulation.stock import Stock
from arena.simulation.tally import Month, Outcome, Tally
from scoring.types import Bucket
from scoring.weights import BURN_UID, weight_vector

START = datetime(2026, 1, 5, 19, 0, tzinfo=UTC)
"""A Monday, an hour before noon Pacific."""
TOP_SHARE, BURN_SHARE = 0.25, 0.75
OUTAGE = 0.05
"""Of all races: one validator of an agent's three is down, and the deadline decides."""
LEAVES_AFTER = timedelta(days=5)
APPEALS_AFTER = timedelta(days=2)
QUALIFYING = 15
"""Open problems that an agent qualifies on."""
BURN_HOTKEY = "uid 0"
AXES = {Kind.AXIS_A: "A", Kind.AXIS_B: "B"}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to simulate. `each` is a race's number of problems of each bucket, `products` how
    many new ones the catalogue gets a week."""

    days: int = 365
    seed: int = 1
    miners: int = 300
    each: int = 5
    products: int = 700
    validators: int = 5
    richness_share: float = 0.0


class Simulation:
    """One season. `bank` and `gate` may be handed in, to see that broken ones are found out."""

    def __init__(
        self, plan: Plan, *, bank: Callable[[], Bank] = Bank, gate: Gate | None = None
    ) -> None:
        self._plan = plan
        self._rng = random.Random(f"season {plan.seed}")  # noqa: S311 - no secret
        self._gate = gate or CopyGate()
        self._stock = Stock(plan.each, max(4, plan.each), plan.products, plan.seed, bank)
        self._people = People(plan.miners, plan.days, self._rng)
        self._answers = OpenAnswers()
        self._runs = Runs(self._answers, plan.seed)
        self._season = Season()
        self._events: list[Event] = []
        self._now = START
        self._tally = Tally()
        self._openings: dict[str, Opening] = {}
        self._secret = ""
        self._paid = 0
        self._disqualified: tuple[str, datetime] | None = None

    def run(self, advance: Callable[[], None] = lambda: None) -> Outcome:
        """The whole season; `advance` is called after each day."""
        self._begin()
        for day in range(self._plan.days):
            self._day(day)
            advance()
        return self._outcome()

    # --- days

    def _begin(self) -> None:
        quota = dict.fromkeys(Bucket, self._plan.each)
        share = self._plan.richness_share
        self._do(SetRules(SeasonRules(quota=quota, beacon=Source.STANDIN, richness_share=share)))
        for number in range(self._plan.validators):
            self._do(JoinValidator(f"validator {number}"))
        self._stock.begin(self._now)
        self._answers.note(self._stock.opened(), self._now)
        self._open_race()

    def _day(self, day: int) -> None:
        """From the opening of a race to its draw, while the one before it is run."""
        race, running = self._season.open, self._season.running
        assert race is not None
        night = race.closes_at - timedelta(hours=2)
        agenda: list[tuple[datetime, Callable[[], None]]] = [
            (night, lambda: self._keep_stock(day)),
            (night + timedelta(minutes=5), lambda: self._incidents(day)),
        ]
        if running is not None:
            agenda.append((self._now + timedelta(hours=3), lambda: self._report(running)))
            agenda.append((running.deadline, self._tick))
        for at, miner in self._people.arrivals(day, self._now, race.closes_at):
            agenda.append((at, lambda miner=miner: self._submit(miner)))  # type: ignore[misc]
        for at, action in sorted(agenda, key=lambda entry: entry[0]):
            self._now = max(self._now, at)
            action()
        self._now = race.closes_at
        self._tick()
        if race.stage is Stage.AWAITING_BEACON:
            self._draw(race)
        self._open_race()

    def _open_race(self) -> None:
        race_id, closes_at = next_race(self._season, self._now)
        self._secret = self._hash(f"secret/{race_id}")
        key = bytes.fromhex(self._hash(f"key/{race_id}"))
        listing, openings = publish(self._stock.candidates(), key)
        self._openings = dict(openings)
        ticket = standin_ticket(closes_at, self._season.rules.beacon_delay)
        self._do(OpenRace(secret_hash(race_id, self._secret), ticket, listing))
        self._month.drawable = len(listing)

    def _draw(self, race: Race) -> None:
        value = standin_value(race.commitment.ticket.number, str(self._plan.seed))
        self._now = value.at + timedelta(seconds=5)
        events = self._do(Draw(race.race_id, self._secret, value, self._openings))
        drawn = [problem.problem_id for problem in race.problems]
        self._stock.mark_raced(drawn, race.race_id, self._now)
        opened = next(e for e in reversed(self._events) if e.kind == "race.opened")
        record = record_of([opened, *events], race.race_id)
        if verify(record, race.commitment.hash).holds:
            self._tally.draws_verified += 1
        else:
            self._tally.draws_wrong.append(race.race_id)

    def _keep_stock(self, day: int) -> None:
        """What was raced becomes open, and the day's problems come in."""
        self._stock.rotate(day, self._now)
        self._stock.grow(day, self._now)
        self._tally.variants.update(self._stock.contribute(day, self._now))
        self._answers.note(self._stock.opened(), self._now)

    def _incidents(self, day: int) -> None:
        """A champion that leaves, and one that is disqualified and appeals."""
        title = self._season.title
        if self._disqualified is None:
            if title is not None and day >= int(self._plan.days * 0.4):
                self._disqualified = title.version, self._now
                self._do(Disqualify(title.version, "accused of hard-coded answers"))
        elif self._season.entrants[self._disqualified[0]].disqualified is not None:
            version, since = self._disqualified
            if self._now >= since + APPEALS_AFTER:
                self._do(Appeal(version, "they were the query's own words"))
        title = self._season.title
        if title is not None:
            miner = self._people.by_hotkey[self._season.entrants[title.version].hotkey]
            if miner.kind is Kind.LEAVER and self._now >= title.won_at + LEAVES_AFTER:
                miner.registered = False
                self._do(Deregister(miner.hotkey))
                self._tally.left_as_champion += 1

    # --- agents

    def _submit(self, miner: Miner) -> None:
        public = [t.version for t in self._season.titles if self._is_public(t.version)]
        agent = self._people.hand_in(miner, public, self._now)
        if agent is None:
            return
        month = self._month
        month.submissions += 1
        try:
            accepted = decide(
                self._season, Submit(agent.version, miner.hotkey, "source"), self._now
            )
        except SeasonError as error:
            if error.code != "season.too_soon":
                raise
            month.too_soon += 1
            return
        style = self._people.style(agent)
        if not self._gate.admits(agent.version, miner.hotkey, agent.work, style):
            month.refused_copies += agent.copied
            self._tally.refused_honest += not agent.copied
            return
        self._apply(accepted)
        self._people.let_in(agent)
        self._qualify(agent)

    def _is_public(self, version: str) -> bool:
        at = code_public_at(self._season, version)
        return at is not None and at <= self._now

    def _qualify(self, agent: Agent) -> None:
        """On a day's open problems, the same for everybody."""
        chooser = random.Random(f"{self._plan.seed}/open/{self._now:%F}")  # noqa: S311
        opened = self._stock.opened()
        chosen = chooser.sample(opened, min(QUALIFYING, len(opened)))
        total = 0.0
        for held in chosen:
            (outcome,) = self._runs.outcomes(agent, held, 1)
            total += outcome.coefficient if outcome.success else 0.0
            if agent.kind is Kind.MEMORISER:
                self._month.memoriser_open.add(outcome.success)
        events = self._do(Qualify(agent.version, total / len(chosen)))
        self._month.qualified += events[0].kind == "agent.qualified"

    # --- races

    def _report(self, race: Race) -> None:
        """Everybody's outcomes; in an outage one of an agent's validators says nothing."""
        held = [self._stock.bank.need(problem.problem_id) for problem in race.problems]
        validators = sorted(self._season.validators)
        down = self._rng.random() < OUTAGE
        for number, version in enumerate(race.racers):
            agent = self._people.agents[version]
            runs = {h.problem_id: self._runs.outcomes(agent, h, race.needed) for h in held}
            for turn in range(race.needed - down):
                validator = validators[(number + turn) % len(validators)]
                outcomes = {problem_id: run[turn] for problem_id, run in runs.items()}
                self._do(Report(race.race_id, version, validator, outcomes))
            self._count_runs(race, agent, [o.success for run in runs.values() for o in run])
        self._tick()

    def _count_runs(self, race: Race, agent: Agent, successes: list[bool]) -> None:
        month = self._month
        for success in successes:
            if agent.kind is Kind.MEMORISER:
                month.memoriser_held_out.add(success)
            if agent.version == race.champion:
                month.champion.add(success)

    def _tick(self) -> None:
        while self._do(Tick()):
            pass
        for result in self._season.results[self._paid :]:
            self._paid += 1
            self._note_race(result)
        for void in self._season.voids[sum(self._tally.voids.values()) :]:
            self._month.voids += 1
            self._tally.voids[void.reason.value] += 1

    def _note_race(self, result: RaceResult) -> None:
        month, tally = self._month, self._tally
        month.races += 1
        month.racers += len(result.racers)
        month.incomplete += sum(not racer.complete for racer in result.racers)
        title = result.title
        tally.decisions[title.decision.value] += 1
        if title.decision in (Decision.PROMOTED, Decision.VACANT) and title.champion:
            agent = self._people.agents[title.champion]
            month.promotions += 1
            if agent.kind in AXES:
                tally.titles_by_axis[AXES[agent.kind]] += 1
            tally.champions.append(
                {
                    "race_id": result.race_id,
                    "version": agent.version,
                    "kind": agent.kind.value,
                    "score": next(r.score for r in result.racers if r.version == agent.version),
                }
            )
        self._pay()

    def _pay(self) -> None:
        """The weights of this race, and who gets them."""
        paid = paid_race(self._season)
        if paid is None:
            return
        registered = [m.hotkey for m in self._people.miners if m.registered]
        hotkeys = [BURN_HOTKEY, *registered]
        weights = weight_vector(
            paid.finishers,
            hotkeys,
            top_share=TOP_SHARE,
            burn_share=BURN_SHARE,
            champion=paid.champion,
        )
        total, tally = sum(weights), self._tally
        ran: dict[str, list[Agent]] = {}
        for finisher in paid.finishers:
            agent = self._people.agents[finisher.agent_version_id]
            ran.setdefault(agent.hotkey, []).append(agent)
        tally.payouts["burned"] += weights[BURN_UID] / total
        for hotkey, weight in zip(hotkeys[1:], weights[1:], strict=True):
            if weight:
                agents = ran[hotkey]
                tally.payouts[agents[0].kind.value] += weight / total
                tally.paid_hotkeys.add(hotkey)
                tally.copies_paid[hotkey] += any(agent.copied for agent in agents)
                tally.memoriser_paid += agents[0].kind is Kind.MEMORISER
                if agents[0].kind in AXES:
                    tally.paid_by_axis[AXES[agents[0].kind]] += weight / total

    # --- the rest

    @property
    def _month(self) -> Month:
        return self._tally.month(f"{self._now:%Y-%m}")

    def _hash(self, what: str) -> str:
        return hashlib.sha256(f"{self._plan.seed}/{what}".encode()).hexdigest()

    def _do(self, command: Command) -> list[Event]:
        return self._apply(decide(self._season, command, self._now))

    def _apply(self, events: list[Event]) -> list[Event]:
        for event in events:
            self._season.apply(event)
        self._events += events
        return events

    def _outcome(self) -> Outcome:
        bank = self._stock.bank
        found = leaks(self._stock.events, self._events, self._stock.cluster_of())
        for leak in found:
            self._tally.month(f"{leak.drawn_at:%Y-%m}").leaks += 1
        self._tally.copies_paid = +self._tally.copies_paid
        return Outcome(
            days=self._plan.days,
            seed=self._plan.seed,
            miners=dict(Counter(miner.kind for miner in self._people.miners)),
            race_problems=3 * self._plan.each,
            problems=len(bank),
            clusters=len(self._stock.clusters),
            events=len(self._events) + len(self._stock.events),
            journal_hash=_journal_hash([*self._stock.events, *self._events]),
            leaks=tuple(found),
            tally=self._tally,
        )


def _journal_hash(events: list[Event]) -> str:
    digest = hashlib.sha256()
    for event in events:
        digest.update(f"{event.kind} {event.at.isoformat()} ".encode())
        digest.update(json.dumps(event.data, sort_keys=True).encode())
    return digest.hexdigest()
