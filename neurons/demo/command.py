"""`arena demo`: a day of the arena on a generated world, offline."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from arena.problems.synthesise import split_evenly
from arena.races.cli import show
from arena.runs.opening import SandboxKind
from arena.season.commands import ProblemOutcome
from arena.season.results import RaceResult as SeasonResult
from arena.settings import ArenaSettings, load_settings
from arena.submissions.process import Reader
from arena.wallets import open_hotkey
from neurons.demo.contenders import MEMORISER, Contender, contenders
from neurons.demo.day import Day, begin_day, mean_score, outcomes_of
from neurons.demo.gatekeeping import Gate, told
from neurons.demo.story import CHAIN, Story, begin, begin_chain, open_problems
from sandbox.terminal import JsonFile, console, plain, write_json
from scoring.types import JsonObject

app = typer.Typer(rich_markup_mode=None, add_completion=False)

OPEN_PROBLEMS = 12
THRESHOLD = 0.3
"""The least qualifying score that admits to the race."""

LESSONS = """
What to see in it
  The gate read every file before it ran. It refused the copycat, which is react with
  other names, and found the memoriser's table. The memoriser raced all the same, out of
  competition, to show that the bank beats it: it knows every open problem by heart, and
  none of those that were drawn from the held-out pool after qualifying had closed.
  The score multiplies each success by a coefficient for the reasoning, which a judge
  reads from what the models wrote (here rules judge: the stand-in). The narrator decides
  as react does; its fine sentences are written by code and count for nothing.
  ASR counts strict successes: one recommendation, every constraint met, then terminate.
  axis A is the share of runs in which the model itself made the calls: only those are
  trained on. The ventriloquist's calls do stand in completions, but it dictated them.
  The spy found nothing: a sandbox holds no reward, and the gateway is all it reaches. The
  glutton failed by its own fault, and nobody beside it noticed.
  Every run is a record, sealed by the validator's hotkey into a chain; the seals are the
  leaves of a tree whose root stands on chain, here a local one. The corpus is what the
  gates left of them: each row names the record it comes from.

Go on in {home}
  arena race run my_agent.py react --suite race.jsonl --catalog world.jsonl.gz
  arena agent check my_agent.py --suite open.jsonl
  arena corpus stats corpus
"""

Outcomes = Mapping[str, Mapping[str, ProblemOutcome]]
"""By agent and problem id."""


@app.command()
def demo(
    problems: Annotated[
        int, typer.Option(min=6, max=600, help="Raced, over the three buckets.")
    ] = 36,
    sandbox: Annotated[SandboxKind | None, typer.Option(help="Default: what is ready.")] = None,
    json: JsonFile = None,
) -> None:
    """A day of the arena on a generated world: no network, no keys, no downloads.

    Honest and dishonest agents pass the gate, qualify on open problems and race on drawn ones;
    their records are sealed, proven and exported as a corpus. A rule-based stand-in answers
    for the models.

    Example: arena demo --problems 36
    """
    write_json(asyncio.run(_demonstrate(load_settings(), problems, sandbox)), json)


async def _demonstrate(
    settings: ArenaSettings, problems: int, sandbox: SandboxKind | None
) -> JsonObject:
    people = _people()
    _say(people, 1, "A world of its own, and a bank of problems, open and held out")
    async with begin(settings, sandbox, people, raced=problems, opened=OPEN_PROBLEMS) as story:
        result = await _tell(story, problems)
        people.print(LESSONS.format(home=story.home), soft_wrap=True, markup=False)
    return result


async def _tell(story: Story, problems: int) -> JsonObject:
    people, open_ids = story.people, open_problems(story.bank)
    open_suite = story.suite("open", open_ids)
    people.print(f"  {len(open_ids)} problems are open, {len(story.bank.drawable())} held out")
    everybody = contenders(story.home, open_suite)

    _say(people, 2, "The gate reads every file before anything runs")
    with Reader() as reader:
        gate = Gate.over(reader, open_suite)
        for contender in everybody:
            verdict = plain(told(gate.read(contender)), 200)
            people.print(f"  [bold]{contender.name:14}[/]{contender.what}")
            people.print(f"  {'':14}{verdict}")
    racing = [c for c in everybody if not gate.verdicts[c.name].copies]
    entered = [c for c in racing if gate.verdicts[c.name].admitted]

    _say(people, 3, "Qualifying on the open pool, the draw committed to before it closes")
    validator = open_hotkey(story.settings).signer.address
    day = await begin_day(story.journal, story.bank)
    quota = split_evenly(problems)
    race_id = await day.open(quota, validator, THRESHOLD)
    for contender in entered:
        await day.submit(contender.name, gate.verdicts[contender.name].sha256)
    qualifying = await story.race(racing, open_suite, "qualifying")
    known = outcomes_of(qualifying.out)
    scores = {c.name: mean_score(known[c.name].values(), len(open_ids)) for c in entered}
    racers = await day.qualify(scores)
    raced_ids = await day.draw()
    story.bank = day.bank
    _show_qualifying(people, scores, racers)

    _say(people, 4, f"The race on {len(raced_ids)} problems, drawn from the held-out pool")
    race = await story.race(racing, story.suite("race", raced_ids), "race")
    show(race, people)
    outcomes = outcomes_of(race.out)
    season = await day.report(validator, outcomes)
    _show_season(people, season, racing, day)
    memory = _memory(known, outcomes)
    people.print(
        f"{MEMORISER} solved {memory['open']:.0%} of the open problems and"
        f" {memory['held_out']:.0%} of the drawn ones",
        soft_wrap=True,
    )

    _say(people, 5, "The draw, the records and the corpus, by commands that anyone can run")
    begin_chain(story.home / CHAIN, validator)
    _close_the_day(story, race_id, validator)
    return {
        "home": str(story.home),
        "gate": gate.to_json(),
        "qualifying": qualifying.to_json(),
        "race": race.to_json(),
        "season": {
            "race_id": season.race_id,
            "title": season.title.to_json(),
            "racers": [racer.to_json() for racer in season.racers],
        },
        "memoriser": dict(memory),
    }


def _close_the_day(story: Story, race_id: str, key: str) -> None:
    """Every command must succeed: each of them proves something. `key` validates and operates."""
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    story.type("race", "standings")
    story.type("race", "verify", "--race", race_id)
    chain = ("--chain", f"local-chain:{CHAIN}")
    story.type("records", "close", "--day", today, *chain)
    trusted = ("--strict", "--validator", key, "--operator", key, *chain)
    story.type("records", "verify", "--catalog", "world.jsonl.gz", *trusted)
    story.type(
        *("corpus", "export", "--day", today, "--catalog", "world.jsonl.gz"),
        *("--min-coefficient", "0.5", "--out", "corpus"),
    )
    story.type("corpus", "verify", "corpus", "--catalog", "world.jsonl.gz")
    story.type("corpus", "stats", "corpus")


def _memory(known: Outcomes, outcomes: Outcomes) -> dict[str, float]:
    """The memoriser's strict success rate on what it had seen, and on what was drawn."""

    def asr(found: Mapping[str, ProblemOutcome]) -> float:
        return sum(outcome.success for outcome in found.values()) / len(found)

    return {"open": asr(known[MEMORISER]), "held_out": asr(outcomes[MEMORISER])}


def _show_qualifying(
    people: Console, scores: Mapping[str, float | None], racers: Sequence[str]
) -> None:
    ranked = sorted(scores.items(), key=lambda item: (-(item[1] or 0.0), item[0]))
    line = ", ".join(
        f"{plain(name)} {score:.3f}{'' if name in racers else ' (not qualified)'}"
        for name, score in ranked
        if score is not None
    )
    people.print(f"qualifying, at least {THRESHOLD:g}: {line}", soft_wrap=True)


def _show_season(
    people: Console, season: SeasonResult, racing: Sequence[Contender], day: Day
) -> None:
    table = Table("season", "score", "by bucket", box=None, pad_edge=False)
    for racer in season.racers:
        buckets = ", ".join(f"{b.value} {s:.2f}" for b, s in racer.by_bucket.items())
        score = "incomplete" if racer.score is None else f"{racer.score:.3f}"
        table.add_row(plain(racer.version), score, buckets)
    people.print(table)
    outside = [c.name for c in racing if c.name not in {r.version for r in season.racers}]
    champion = day.season.champion
    people.print(
        f"{season.race_id}: {season.title.decision.value}; champion: {plain(str(champion))};"
        f" out of competition: {', '.join(outside)}",
        soft_wrap=True,
    )


def _say(people: Console, number: int, text: str) -> None:
    people.print(f"\n[bold]{number}  {text}[/]", soft_wrap=True)


def _people() -> Console:
    """The console for people; wide enough for tables where there is no terminal."""
    if console.is_terminal:
        return console
    width = max(120, shutil.get_terminal_size().columns)
    return Console(file=sys.stderr, highlight=False, width=width)
