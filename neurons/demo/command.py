"""`arena demo`: a day of the arena on a generated world, offline."""

from __future__ import annotations

import asyncio
import shutil
import sys
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from arena.problems.synthesise import split_evenly
from arena.races.running import RaceResult as LocalRace
from arena.runs.opening import SandboxKind
from arena.season.beacon import Source
from arena.season.results import RaceResult
from arena.season.rules import SeasonRules
from arena.season.state import Season
from arena.settings import ArenaSettings, load_settings
from neurons.demo import mining, watching
from neurons.demo.contenders import MEMORISER, Contender, contenders
from neurons.demo.paying import Payment, payment
from neurons.demo.story import LIMITS, VALIDATORS, Story, begin, open_problems
from sandbox.terminal import JsonFile, console, plain, write_json
from scoring.types import JsonObject
from scoring.weights import U16_MAX

app = typer.Typer(rich_markup_mode=None, add_completion=False)

OPEN_PROBLEMS = 12
THRESHOLD = 0.3
"""The least qualifying score that admits to the race."""

LESSONS = """
What to see in it
  Six processes did this: the arena's API, its calendar, two validators, Postgres, and the
  commands above. They talked over HTTP, each request signed by a hotkey.
  The gate read every file before it ran. It refused the copycat, which is react with
  other names, and found the memoriser's table. What it refused raced all the same, out of
  competition: the memoriser knows every open problem by heart, and none of those that were
  drawn from the held-out pool after qualifying had closed. The spy found nothing: a sandbox
  holds no reward, and the gateway is all it reaches. The glutton failed by its own fault.
  The score multiplies each success by a coefficient for the reasoning, which a judge
  reads from what the models wrote (here rules judge: the stand-in). The narrator decides
  as react does; its fine sentences are written by code and count for nothing.
  ASR counts strict successes: one recommendation, every constraint met, then terminate.
  Every run is a record, sealed by its validator's hotkey into a chain; the seals are the
  leaves of a tree whose root stands on chain, here a local one. Both validators set the
  same weights, byte for byte, from the standings that the records made.
  The corpus is what the gates left of the records: each row names the one it comes from.

Go on in {home}
  arena chain show chain.sqlite
  arena agent check my_agent.py --suite open.jsonl
  arena corpus stats corpus
"""


@app.command()
def demo(
    problems: Annotated[
        int, typer.Option(min=6, max=600, help="Raced, over the three buckets.")
    ] = 36,
    sandbox: Annotated[SandboxKind | None, typer.Option(help="Default: what is ready.")] = None,
    json: JsonFile = None,
) -> None:
    """A day of the arena on a generated world: no network, no keys, no downloads.

    The arena, two validators and a local chain run here; miners submit honest and dishonest
    agents, which pass the gate, qualify on open problems and race on drawn ones. Weights are
    set; the records are proven and exported as a corpus. A rule-based stand-in answers for the
    models.

    Example: arena demo --problems 36
    """
    write_json(asyncio.run(_demonstrate(load_settings(), problems, sandbox)), json)


async def _demonstrate(
    settings: ArenaSettings, problems: int, sandbox: SandboxKind | None
) -> JsonObject:
    people = _people()
    _say(people, 1, "A world, a bank of problems, a chain; an arena and two validators start")
    variables = _variables(sandbox)
    async with begin(
        settings, sandbox, people, raced=problems, opened=OPEN_PROBLEMS, variables=variables
    ) as story:
        result = await _tell(story, problems)
        people.print(LESSONS.format(home=story.home), soft_wrap=True, markup=False)
    return result


async def _tell(story: Story, problems: int) -> JsonObject:
    people, open_ids = story.people, open_problems(story.bank)
    open_suite = story.suite("open", open_ids)
    rules = SeasonRules(
        quota=split_evenly(problems),
        validators=len(VALIDATORS),
        quorum=len(VALIDATORS),
        qualifying_threshold=THRESHOLD,
        minimum_qualifying_hours=0,
        beacon=Source.STANDIN,
        beacon_delay_seconds=0,
    )
    everybody = contenders(story.home, open_suite)
    for contender in everybody:
        story.network.join(contender.name)
    _start(story, rules)

    _say(people, 2, "Miners submit; the gate reads every file before anything runs")
    answers = await _submit_all(story, everybody)
    refused = [c for c in everybody if answers[c.name].version is None]

    _say(people, 3, "Qualifying: validators claim the agents and race them on the open problems")
    season = await watching.qualified(story)
    network, calendar = story.network, story.network.members["calendar"]
    network.start_calendar(watching.closing_soon(rules, datetime.now(UTC), calendar.ready_s))
    # While qualifying is about to close.
    memoriser = [c for c in everybody if c.name == MEMORISER]
    known = await story.race_outside(memoriser, open_suite)

    _say(people, 4, "The race, on problems that are drawn from the held-out pool")
    race = await watching.drawn(story)
    drawn_ids = [problem.problem_id for problem in race.problems]
    people.print(f"  {len(drawn_ids)} problems are drawn for {len(race.racers)} agents")
    season, result = await watching.decided(story)
    _show_result(people, season, result, story)

    _say(people, 5, "Out of competition: what the gate refused, on the same problems")
    outside = [c for c in refused if c.name != "copycat"]
    raced = await story.race_outside(outside, story.suite("race", drawn_ids))
    memory = {"open": _asr(known, MEMORISER), "held_out": _asr(raced, MEMORISER)}
    _show_outside(people, raced, memory)

    _say(people, 6, "Weights on chain, from the standings")
    paid = story.network.wait(
        lambda: payment(story.network, season, dict(story.validators)), None, "weights"
    )
    _show_payment(people, story, season, paid)

    _say(people, 7, "The draw, the records and the corpus, by commands that anyone can run")
    _prove(story, result.race_id)
    return {
        "home": str(story.home),
        "gate": {name: answer.to_json() for name, answer in answers.items()},
        "season": {
            "race_id": result.race_id,
            "champion": story.versions.get(season.champion or ""),
            "title": result.title.to_json(),
            "racers": {story.versions[r.version]: r.to_json() for r in result.racers},
        },
        "outside": raced.to_json(),
        "memoriser": dict(memory),
        "weights": paid.to_json(),
    }


def _variables(sandbox: SandboxKind | None) -> dict[str, str]:
    """Everything looks more often than in an arena whose day is a day."""
    found = {
        "ARENA_CONDUCTOR_EVERY": "1",
        "ARENA_CONDUCTOR_CHAIN_EVERY": "2",
        "ARENA_CONDUCTOR_QUALIFYING_PROBLEMS": str(OPEN_PROBLEMS),
        "ARENA_CONDUCTOR_QUALIFYING_VALIDATORS": str(len(VALIDATORS)),
        "ARENA_API_METAGRAPH_REFRESH": "2",
        "ARENA_VALIDATOR_POLL_SECONDS": "1",
        "ARENA_VALIDATOR_CHAIN_SECONDS": "5",
        "ARENA_VALIDATOR_WEIGHTS_SECONDS": "5",
        "ARENA_VALIDATOR_SANDBOX_SECONDS": f"{LIMITS.wall_s:g}",
        "ARENA_VALIDATOR_SANDBOX_MEMORY_MIB": str(LIMITS.memory_bytes >> 20),
        "ARENA_VALIDATOR_SANDBOX_PIDS": str(LIMITS.pids),
    }
    return found | ({"ARENA_VALIDATOR_SANDBOX": sandbox.value} if sandbox else {})


def _start(story: Story, rules: SeasonRules) -> None:
    people, network = story.people, story.network
    held = len(story.bank.drawable())
    people.print(f"  {len(open_problems(story.bank))} problems are open, {held} held out")
    # React, which everybody may build on elsewhere, is somebody's own here.
    policy = story.home / "admission.toml"
    policy.write_text("public_bases = []\n", encoding="utf-8")
    network.start_arena("arena", "--no-conductor", ARENA_API_ADMISSION_POLICY=str(policy))
    people.print(f"  the arena answers at {network.url}; its log is logs/arena.log")
    network.start_calendar(rules, ARENA_CONDUCTOR_OPENS_RACES="false")
    for name in VALIDATORS:
        network.start_validator(name)
        people.print(f"  {name} starts; its log is logs/{name}.log")


async def _submit_all(story: Story, everybody: tuple[Contender, ...]) -> dict[str, mining.Answer]:
    answers: dict[str, mining.Answer] = {}
    for contender in everybody:
        answer = answers[contender.name] = await mining.submit(story.network, contender)
        if answer.version is not None:
            story.versions[answer.version] = contender.name
        story.people.print(f"  [bold]{contender.name:14}[/]{contender.what}", soft_wrap=True)
        told = answer.told
        for version, name in story.versions.items():
            told = told.replace(version, name)
        story.people.print(f"  {'':14}{plain(told, 110)}", soft_wrap=True)
    return answers


def _show_result(people: Console, season: Season, result: RaceResult, story: Story) -> None:
    table = Table("agent", "score", "ASR", "by bucket", box=None, pad_edge=False)
    for racer in sorted(result.racers, key=lambda r: -(r.score or 0.0)):
        buckets = ", ".join(f"{b.value} {s:.2f}" for b, s in racer.by_bucket.items())
        score = "incomplete" if racer.score is None else f"{racer.score:.3f}"
        asr = "" if racer.asr is None else f"{racer.asr:.1%}"
        table.add_row(plain(story.versions[racer.version]), score, asr, buckets)
    people.print(table)
    champion = story.versions.get(season.champion or "", "nobody")
    people.print(
        f"{result.race_id}: {result.title.decision.value}; champion: {plain(champion)}",
        soft_wrap=True,
    )


def _show_outside(people: Console, raced: LocalRace, memory: dict[str, float]) -> None:
    for agent in raced.agents:
        people.print(f"  {plain(agent.name):14} ASR {agent.asr or 0.0:.1%}", soft_wrap=True)
    people.print(
        f"  {MEMORISER} solved {memory['open']:.0%} of the open problems and"
        f" {memory['held_out']:.0%} of the drawn ones",
        soft_wrap=True,
    )


def _show_payment(people: Console, story: Story, season: Season, paid: Payment) -> None:
    miners = {season.entrants[v].hotkey: name for v, name in story.versions.items()}
    table = Table("uid", "who", "weight", "share", box=None, pad_edge=False)
    whole = sum(paid.vector)
    for neuron, weight in zip(paid.neurons, paid.vector, strict=True):
        if weight:
            who = miners.get(neuron.hotkey, "burned" if neuron.uid == 0 else "")
            table.add_row(str(neuron.uid), plain(who), str(weight), f"{weight / whole:.4%}")
    people.print(table)
    people.print(
        f"set by {' and '.join(paid.set_by)}, byte for byte the same ({U16_MAX} is the largest)"
    )


def _prove(story: Story, race_id: str) -> None:
    """Every command must succeed: each of them proves something."""
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    story.type("race", "standings")
    story.type("race", "verify", "--race", race_id)
    chain = ("--chain", story.network.chain)
    story.type("records", "close", "--day", today, *chain)
    validators = [part for key in story.validators.values() for part in ("--validator", key)]
    trusted = ("--strict", *validators, "--operator", story.operator, *chain)
    story.type("records", "verify", "--catalog", "world.jsonl.gz", *trusted)
    story.type(
        *("corpus", "export", "--day", today, "--catalog", "world.jsonl.gz"),
        *("--min-coefficient", "0.5", "--out", "corpus"),
    )
    story.type("corpus", "verify", "corpus", "--catalog", "world.jsonl.gz")
    story.type("corpus", "stats", "corpus")


def _asr(race: LocalRace, name: str) -> float:
    """An agent's strict success rate in a race out of competition."""
    return next(agent.asr or 0.0 for agent in race.agents if agent.name == name)


def _say(people: Console, number: int, text: str) -> None:
    people.print(f"\n[bold]{number}  {text}[/]", soft_wrap=True)


def _people() -> Console:
    """The console for people; wide enough for tables where there is no terminal."""
    if console.is_terminal:
        return console
    width = max(120, shutil.get_terminal_size().columns)
    return Console(file=sys.stderr, highlight=False, width=width)
