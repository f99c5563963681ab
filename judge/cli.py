"""The `arena judge` commands. Reads traces and asks judge models; writes only `--json`."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from typer.core import TyperGroup
from typer.main import get_command

from judge.exceptions import Fault, JudgeError
from judge.facts import read_facts
from judge.judging import Judge, infrastructure_failure
from judge.opening import open_judge
from judge.settings import JudgeSettings
from judge.show import lines
from judge.stored import Stored, read_traces
from judge.verdict import Judgement, Verdict
from sandbox.terminal import console, plain, write_json
from scoring.coefficient import coefficient
from scoring.types import Json, JsonObject

DEFAULT_LIMIT = 20
_BENCH = "judge.bench_cli"
COMMANDS = {
    "trace": "Judge traces; the command's name may be left out.",
    "bench": "Measure how well judges agree with a labelled set.",
}


class _JudgeGroup(TyperGroup):
    """`arena judge FILE` is `arena judge trace FILE`; `bench` is imported when it is used.

    Typer carries its own copy of click and exports no types of it: hence `Any`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Put the default command in front of a file's name."""
        named = next((arg for arg in args if not arg.startswith("-")), None)
        if named is not None and named not in self.list_commands(ctx):
            args = ["trace", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """Names, the default first."""
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command; `bench` from its own module."""
        if cmd_name != "bench":
            return super().get_command(ctx, cmd_name)
        command = get_command(importlib.import_module(_BENCH).app)
        command.name = cmd_name
        return command


app = typer.Typer(
    cls=_JudgeGroup,
    help="Judge how agents reasoned: `arena judge TRACE`, and how good judges are: `bench`.",
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
)


@app.callback()
def _root() -> None:
    """Judge how agents reasoned."""


@app.command("trace")
def trace_command(
    files: Annotated[
        list[Path], typer.Argument(help="Traces (.json) or records (.jsonl, .jsonl.zst).")
    ],
    models: Annotated[
        str | None,
        typer.Option(help="Judge models, commas between them. [ARENA_JUDGE_MODELS]"),
    ] = None,
    panel: Annotated[
        int | None, typer.Option(help="Models that judge each trace; the median decides.")
    ] = None,
    run: Annotated[
        list[str] | None, typer.Option(help="Only records whose name or run id holds this.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Traces judged at most.")] = DEFAULT_LIMIT,
    facts: Annotated[
        bool, typer.Option("--facts", help="Ask no model: only what code can tell.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the verdicts here; - is standard output.")
    ] = None,
) -> None:
    """Judge traces and print each verdict with the cited spans marked in the text.

    Without a named model the rule-based stand-in judges.

    Example: arena judge var/races/RACE/records.jsonl.zst --run react --limit 3
    """
    chosen = list(islice(_chosen(files, run), limit))
    if not chosen:
        raise JudgeError("no trace to judge", code="judge.bad_input", fault=Fault.CALLER)
    if facts:
        _show_facts(chosen, json_file)
        return
    named: dict[str, Any] = {"models": models, "panel": panel}
    settings = JudgeSettings(**{k: v for k, v in named.items() if v is not None})
    judged = asyncio.run(_judge(chosen, settings))
    for stored, judgement in zip(chosen, judged, strict=True):
        for line in lines(stored.name, stored.trace, judgement):
            console.print(line, soft_wrap=True)
    _sum_up(judged)
    write_json([_to_json(s, j) for s, j in zip(chosen, judged, strict=True)], json_file)
    if not all(isinstance(judgement, Verdict) for judgement in judged):
        raise typer.Exit(1)


def _chosen(files: list[Path], wanted: list[str] | None) -> Iterator[Stored]:
    for path in files:
        for stored in read_traces(path):
            if not wanted or any(part in stored.name for part in wanted):
                yield stored


async def _judge(chosen: list[Stored], settings: JudgeSettings) -> list[Judgement]:
    columns = (TextColumn("Judging"), BarColumn(), MofNCompleteColumn())
    async with open_judge(settings) as opened:
        if opened.standin:
            console.print("A rule-based stand-in judges: set ARENA_JUDGE_MODELS for a real one.")
        with Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        ) as progress:
            task = progress.add_task("", total=len(chosen))

            async def one(judge: Judge, stored: Stored) -> Judgement:
                judgement = await judge.judge(stored.trace, stored.query, stored.dialogue)
                progress.advance(task)
                return judgement

            return list(await asyncio.gather(*(one(opened.judge, stored) for stored in chosen)))


def _sum_up(judged: list[Judgement]) -> None:
    verdicts = [j for j in judged if isinstance(j, Verdict)]
    text = f"{len(verdicts)} judged, {len(judged) - len(verdicts)} unjudged"
    if verdicts:
        qualities = sum(v.quality for v in verdicts) / len(verdicts)
        worth = sum(coefficient(v.quality) for v in verdicts) / len(verdicts)
        text += f"; mean quality {qualities:.3f}, mean coefficient {worth:.3f}"
    console.print(text)
    if infrastructure_failure(judged):
        console.print("More than half of the calls failed: look at the providers and judge again.")


def _show_facts(chosen: list[Stored], json_file: Path | None) -> None:
    values: list[Json] = []
    for stored in chosen:
        facts = read_facts(stored.trace, stored.query, stored.dialogue)
        console.print(
            f"{plain(stored.name, 200)}: at most {facts.ceiling:g} (gate {facts.gate.value}), "
            f"{facts.completions} completions, {facts.narrated_by_code} thoughts written by code",
            soft_wrap=True,
        )
        values.append({"name": stored.name, "facts": facts.to_json()})
    write_json(values, json_file)


def _to_json(stored: Stored, judgement: Judgement) -> Json:
    value: JsonObject = {"name": stored.name, **judgement.to_json()}
    if isinstance(judgement, Verdict):
        value["coefficient"] = coefficient(judgement.quality)
    return value
