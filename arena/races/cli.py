"""`arena race`: race agents on suites of problems."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from arena.exceptions import ArenaError
from arena.problems.titles import DEFAULT_MODEL, TitleMode
from arena.races.inputs import judge_name
from arena.races.later import judge_race
from arena.races.running import RaceOptions, RaceResult, run_race
from arena.races.show import duration, tables, verdict
from arena.runs.opening import SandboxKind, WorldOptions
from arena.runs.options import JudgeModels, JudgeOption, WalletHotkey, WalletName, WalletPath
from arena.season import cli as season
from arena.season import standing_cli
from arena.settings import ArenaSettings, load_settings
from judge.opening import STANDIN
from sandbox.terminal import JsonFile, console, plain, write_json

EXIT_INTERRUPTED = 128 + signal.SIGINT
EXIT_TERMINATED = 128 + signal.SIGTERM

app = typer.Typer(
    help="Race agents on suites of problems.",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def _group() -> None:
    """Race agents on suites of problems."""


@app.command()
def run(
    ctx: typer.Context,
    agents: Annotated[
        list[str], typer.Argument(metavar="AGENT...", help="A shipped agent's name, or a file.")
    ],
    suite: Annotated[list[Path], typer.Option(help="A suite of problems; may be repeated.")],
    catalog: Annotated[Path, typer.Option(help="A product file, or a built index.")],
    model_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible server; without one, the stand-in.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model that agents are told of.")] = None,
    sandbox: Annotated[SandboxKind | None, typer.Option(help="Default: what is ready.")] = None,
    judge: JudgeOption = None,
    judge_model: JudgeModels = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Runs at once; default from memory and cores.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the first so many problems of each suite.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Directory of the race; the same again goes on with it.")
    ] = None,
    title: Annotated[TitleMode, typer.Option(help="How titles are compared.")] = TitleMode.NONE,
    title_model: Annotated[
        str, typer.Option(help="For --title embedding: a sentence-transformers name or folder.")
    ] = DEFAULT_MODEL,
    wallet_name: WalletName = None,
    wallet_hotkey: WalletHotkey = None,
    wallet_path: WalletPath = None,
    json: JsonFile = None,
) -> None:
    """Race agents: every agent on every problem, scored, stored and ranked.

    Interrupted, it goes on where it stopped when started again with the same --out.
    Exit code 0 means that every problem of every agent has an outcome.

    Example: arena race run react my_agent.py --suite product.jsonl --catalog documents.jsonl.gz
    """
    settings = _with_wallet(load_settings(), wallet_name, wallet_hotkey, wallet_path)
    options = RaceOptions(
        agents=agents,
        suites=suite,
        world=WorldOptions(
            catalog,
            model_url,
            model,
            sandbox,
            title,
            title_model,
            judge=True if judge_model else judge,
            judge_models=tuple(judge_model or ()),
        ),
        shipped=(ctx.obj or {}).get("shipped_agents", {}),
        workers=workers,
        limit=limit,
        out=out,
    )
    race_and_show(options, settings, json)


@app.command()
def judge(
    out: Annotated[Path, typer.Option(help="Directory of the race.")],
    model_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible server; without one, the stand-in.")
    ] = None,
    judge_model: JudgeModels = None,
    wallet_name: WalletName = None,
    wallet_hotkey: WalletHotkey = None,
    wallet_path: WalletPath = None,
    json: JsonFile = None,
) -> None:
    """Judge the runs of a race that have no verdict, from their stored traces.

    Each verdict becomes a record of its own that links to its run's. Exit code 0 means
    that every run of every agent has an outcome and a verdict.

    Example: arena race judge --out races/today
    """
    settings = _with_wallet(load_settings(), wallet_name, wallet_hotkey, wallet_path)
    # No catalogue is opened: the traces are there.
    options = WorldOptions(Path(), model_url, judge=True, judge_models=tuple(judge_model or ()))
    people = _people()
    _finish(judge_race(out, options, settings, people), people, json)


def _with_wallet(
    settings: ArenaSettings, name: str | None, hotkey: str | None, path: Path | None
) -> ArenaSettings:
    """The settings, with what the command line says of the wallet."""
    given = {"wallet_name": name, "wallet_hotkey": hotkey, "wallet_path": path}
    return settings.model_copy(update={k: v for k, v in given.items() if v is not None})


app.command()(season.verify)
app.command()(season.simulate)
app.command("standings")(standing_cli.standings_command)
app.command()(standing_cli.disqualify)
app.command()(standing_cli.appeal)


def race_and_show(options: RaceOptions, settings: ArenaSettings, json: Path | None) -> None:
    """Run a race as a command does: to its tables, its JSON and its exit code.

    Raises typer.Exit when interrupted, and ArenaError when it did not do all that was asked.
    """
    people = _people()
    _finish(run_race(options, settings, people), people, json)


def _finish(work: Coroutine[Any, Any, RaceResult], people: Console, json: Path | None) -> None:
    """Do the work, show what came of it, and raise for what was asked and not done."""
    try:
        result = asyncio.run(_until_terminated(work))
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except asyncio.CancelledError:
        raise typer.Exit(EXIT_TERMINATED) from None
    show(result, people)
    write_json(result.to_json(), json)
    check_complete(result)


def show(result: RaceResult, people: Console) -> None:
    """Print the tables and what to know of them."""
    people.print()
    people.print(tables(result.agents))
    people.print(plain(verdict(result.agents), 1000))
    standin = result.model_server == STANDIN
    asked = f"the rule-based stand-in {result.model}" if standin else result.model
    people.print(
        f"models: {plain(asked)}; scoring: {plain(result.scoring)}; took {duration(result.wall_s)}"
    )
    people.print(_said_of_judging(result))
    for agent in result.agents:
        if agent.judging_failed:
            people.print(
                f"judging {plain(agent.name, 40)} failed as infrastructure: more than half of"
                " its calls to judge models failed",
                soft_wrap=True,
            )
    people.print(f"results: {plain(str(result.out))}", soft_wrap=True)


def _said_of_judging(result: RaceResult) -> str:
    if result.judge is None:
        return "judge: nobody; there is no score"
    name = plain(judge_name(result.judge))
    who = f"the rule-based stand-in {name}" if result.standin_judge else name
    return f"judge: {who}" + (f"; {result.unjudged} runs unjudged" if result.unjudged else "")


def check_complete(result: RaceResult) -> None:
    """Raises ArenaError with the reason when the race did not do all that was asked."""
    again = f"start it again with --out {result.out}"
    if result.stopped is not None:
        raise result.stopped
    if not result.complete:
        raise ArenaError(
            f"{result.open} of {result.problems * len(result.agents)} runs have no outcome,"
            " by no fault of the agents; their ASR is incomplete",
            code="race.incomplete",
            remedy=again,
        )
    if result.judge is not None and result.unjudged:
        raise ArenaError(
            f"{result.unjudged} runs are unjudged, by no fault of the agents; their score is"
            " not known yet",
            code="race.unjudged",
            remedy=f"arena race judge --out {result.out}",
        )
    if result.waiting:
        raise ArenaError(
            f"{result.waiting} results are on disk and not in the database",
            code="race.not_stored",
            remedy=again,
        )


async def _until_terminated(work: Coroutine[Any, Any, RaceResult]) -> RaceResult:
    """`work`, cancelled in good order by SIGTERM and a closed terminal as it is by Ctrl-C."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await work


def _people() -> Console:
    """The console for people; wide enough for tables where there is no terminal."""
    if console.is_terminal:
        return console
    width = max(120, shutil.get_terminal_size().columns)
    return Console(file=sys.stderr, highlight=False, width=width)
