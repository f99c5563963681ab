"""The course of a race: opened, closed to qualifiers, drawn, run, reported, ended."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from arena.api.inputs import open_evaluation
from arena.conducting import outcomes
from arena.conducting.calendar import Calendar
from arena.conducting.parts import Parts
from arena.conducting.stored_inputs import registered, suite_number
from arena.conducting.work import Work
from arena.exceptions import BankError, BeaconError, SeasonError
from arena.journal import Event
from arena.problems.bank_store import LoadedBank
from arena.problems.decisions import mark_raced
from arena.problems.holdings import NOT_DRAWABLE
from arena.problems.pools import Pool
from arena.season.beacon import Source, chain_ticket, drand_ticket, standin_ticket
from arena.season.commands import Draw, OpenRace, Report, SetRules, Tick
from arena.season.draw import Candidate, secret_hash
from arena.season.listing import publish
from arena.season.racing import next_race
from arena.season.rules import SeasonRules
from arena.season.state import Race, Stage
from arena.work.opening import evaluation_id
from arena.work.types import EvaluationKind
from scoring.types import Problem

STEP = "race"


async def set_rules(parts: Parts, calendar: Calendar, work: Work) -> None:
    """The operator's rules, when they are not those of the season; at first the defaults."""
    rules = parts.rules or (None if calendar.begun else SeasonRules())
    if rules is None or (calendar.begun and rules == calendar.season.rules):
        return
    if await calendar.decide(SetRules(rules), calendar.moment(work.now)):
        work.did("rules", "rules.set", "season")


async def open_race(parts: Parts, calendar: Calendar, work: Work) -> None:
    """Commit to the next draw and publish its listing, once the one before is drawn or void."""
    season = calendar.season
    if season.open is not None or not calendar.begun or not parts.settings.opens_races:
        return
    at = calendar.moment(work.now)
    race_id, closes_at = next_race(season, at)
    kept = await parts.secrets.keep(race_id)
    held = calendar.bank.drawable()
    candidates = [Candidate(h.problem_id, h.bucket, h.cluster) for h in held]
    listing, _ = publish(candidates, kept.listing_key)
    delay = season.rules.beacon_delay
    match season.rules.beacon:
        case Source.DRAND:
            ticket = drand_ticket(closes_at, delay)
        case Source.STANDIN:
            ticket = standin_ticket(closes_at, delay)
        case Source.CHAIN:
            ticket = chain_ticket(await _last_block(parts), at, closes_at, delay)
    order = OpenRace(secret_hash(race_id, kept.secret), ticket, listing)
    if await calendar.decide(order, at):
        work.did(STEP, "race.opened", race_id, f"{len(listing)} problems to draw from")


async def tick(calendar: Calendar, work: Work) -> None:
    """Close, void or end what is due, until nothing comes."""
    while events := await calendar.decide(Tick(), calendar.moment(work.now)):
        for event in events:
            work.did(STEP, event.kind, str(event.data["race_id"]), _told(event))


async def draw(parts: Parts, calendar: Calendar, work: Work) -> None:
    """Reveal the secret and draw, as soon as the beacon's value is there."""
    race = calendar.season.open
    waiting = race is not None and race.stage is Stage.AWAITING_BEACON
    if race is None or not waiting or calendar.season.running is not None:
        return
    beacon = await parts.beacon.value(race.commitment.ticket, race.closes_at, work.now)
    if beacon is None:
        return
    kept = await parts.secrets.need(race.race_id)
    # Every problem of the bank may open its row: the salts follow from the key.
    everything = [Candidate(h.problem_id, h.bucket, h.cluster) for h in calendar.bank]
    _, openings = publish(everything, kept.listing_key)
    order = Draw(race.race_id, kept.secret, beacon, openings)
    if await calendar.decide(order, calendar.moment(work.now)):
        work.did(STEP, "race.drawn", race.race_id)


async def note_raced(calendar: Calendar, work: Work) -> None:
    """Note in the bank what the race that runs has drawn: nothing of it is drawn again."""
    race = calendar.season.running
    if race is None:
        return
    ids = [problem.problem_id for problem in race.problems]
    if all(race.race_id in calendar.bank.need(problem_id).raced for problem_id in ids):
        return

    def decide(loaded: LoadedBank, at: datetime) -> list[Event]:
        bank = loaded.bank
        fit: list[str] = []
        spoiled: list[str] = []
        for problem_id in ids:
            holding = bank.need(problem_id)
            cluster = bank.cluster(holding.cluster)
            fresh = holding.pool is Pool.HELD_OUT and cluster is not None and not cluster.exposed
            known = race.race_id in holding.raced
            (fit if fresh or known else spoiled).append(problem_id)
        unfit.extend(spoiled)
        return mark_raced(bank, fit, race.race_id, at)

    unfit: list[str] = []
    if await calendar.change_bank(decide, work.now):
        work.did(STEP, "problems.raced", race.race_id, f"{len(ids) - len(unfit)} problems")
    if unfit:
        raise BankError(
            f"{len(unfit)} problems of {race.race_id} left held-out between its opening and its"
            " draw: somebody knew them",
            code=NOT_DRAWABLE,
        )


async def open_evaluations(parts: Parts, calendar: Calendar, work: Work) -> None:
    """Want validators for every racer of the race that runs."""
    race = calendar.season.running
    if race is None or work.now >= race.deadline:
        return
    racers = [v for v in race.racers if calendar.season.entrants[v].eligible]
    ids = {v: evaluation_id(UUID(v), EvaluationKind.RACE, race.race_id) for v in racers}
    opened = await outcomes.evaluations(parts.engine, ids.values())
    for version in racers:
        if ids[version] not in opened:
            with work.trying(STEP, version):
                await _open_evaluation(parts, calendar, work, race, version)


async def report(parts: Parts, calendar: Calendar, work: Work) -> None:
    """Enter the outcomes of every validator that has all of a racer's, as of when it had."""
    race = calendar.season.running
    if race is None:
        return
    ids = {evaluation_id(UUID(v), EvaluationKind.RACE, race.race_id): v for v in race.racers}
    for sheet in await outcomes.complete_sheets(parts.engine, list(ids)):
        version, validator = ids[sheet.evaluation_id], sheet.validator
        known = race.sheets.get(version, {}).get(validator)
        if known is not None and len(known.outcomes) == len(race.problems):
            continue
        at = calendar.moment(work.now, sheet.at)
        if at >= race.deadline or validator not in calendar.season.validators:
            continue
        with work.trying(STEP, f"{version} by {validator}"):
            told = await outcomes.outcomes(parts.engine, sheet.evaluation_id, validator)
            if await calendar.decide(Report(race.race_id, version, validator, told), at):
                work.did(STEP, "outcomes.reported", version, f"{validator}: {len(told)}")


async def _open_evaluation(
    parts: Parts, calendar: Calendar, work: Work, race: Race, version: str
) -> None:
    which = UUID(version)
    wanted = evaluation_id(which, EvaluationKind.RACE, race.race_id)
    problems = await registered(parts, wanted) or _drawn(calendar, race)
    found = await parts.versions.version(which)
    if found is None:
        raise SeasonError(f"version {version} is not stored", code="season.unknown_agent")
    await open_evaluation(
        parts.queue,
        parts.inputs,
        which,
        EvaluationKind.RACE,
        race.race_id,
        name=found.name,
        source=await parts.versions.source(which),
        problems=problems,
        suite=suite_number(race.closes_at),
        needed=race.needed,
        at=work.now,
    )
    work.did(STEP, "evaluation.opened", version, race.race_id)


def _drawn(calendar: Calendar, race: Race) -> list[Problem]:
    """The problems of a race, in the order of the draw, as they were when they were drawn."""
    drawn = (calendar.bank.problem(problem.problem_id) for problem in race.problems)
    return [replace(problem, pool=Pool.HELD_OUT.value) for problem in drawn]


async def _last_block(parts: Parts) -> int:
    if parts.chain is None:
        raise BeaconError("the rules draw by a block's hash, and there is no chain")
    return (await parts.chain.block()).ref.number


def _told(event: Event) -> str:
    """The part of an event that people ask for."""
    return str(event.data.get("reason", ""))
