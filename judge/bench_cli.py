"""The `arena judge bench` command. Reads labelled traces, asks judge models, writes `--json`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from judge.bench import FACTS, UNJUDGED, Score, score_facts, score_judge
from judge.bench_set import SHIPPED, Labelled, read_labelled
from judge.exceptions import Fault, JudgeError
from judge.opening import STANDIN_JUDGE, open_judge
from judge.settings import JudgeSettings
from judge.verdict import Gate
from sandbox.terminal import JsonFile, console, plain, write_json
from scoring.types import Json

SHOWN = 10
"""Disagreements shown of a judge; `--json` has all."""

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def bench(
    file: Annotated[
        Path, typer.Argument(help="Labelled traces.", show_default="the shipped set")
    ] = SHIPPED,
    models: Annotated[
        str | None,
        typer.Option(help="Judge models, commas between them. [ARENA_JUDGE_MODELS]"),
    ] = None,
    panel: Annotated[
        int | None, typer.Option(help="Judge also by the median of so many of them.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Hold judges against a labelled set: agreement, confusion between gates, cost.

    Each model judges all traces alone; what code can tell without one stands beside it.
    Without a named model the rule-based stand-in judges. Nothing is cached. Exits with 1
    when a trace stayed unjudged.

    Example: arena judge bench --models judge-a,judge-b --panel 2 --json figures.json
    """
    items = list(read_labelled(file))
    if not items:
        raise JudgeError(
            f"{file.name} holds no traces", code="judge.bad_labelled_set", fault=Fault.CALLER
        )
    given = {"models": models, "panel": panel}
    settings = JudgeSettings(**{k: v for k, v in given.items() if v is not None})
    scores = [score_facts(items), *asyncio.run(_scores(settings, items))]
    _show(scores, items)
    written: Json = {"file": file.name, "judges": [score.to_json() for score in scores]}
    write_json(written, json_file)
    if any(score.unjudged for score in scores):
        raise typer.Exit(1)


def rows(settings: JudgeSettings) -> Iterator[tuple[str, JudgeSettings]]:
    """What is judged by: each model alone, then the panel when it is more than one."""
    models = tuple(dict.fromkeys(settings.models)) or (STANDIN_JUDGE,)
    for name in models:
        yield name, settings.model_copy(update={"models": (name,), "panel": 1, "cache_dir": None})
    if settings.panel > 1:
        yield f"median of {settings.panel}", settings.model_copy(update={"cache_dir": None})


async def _scores(settings: JudgeSettings, items: Sequence[Labelled]) -> list[Score]:
    scores = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        for name, chosen in rows(settings):
            task = progress.add_task(plain(name, 60), total=len(items))
            async with open_judge(chosen) as opened:
                tick = partial(progress.advance, task)
                scores.append(await score_judge(name, opened.judge, items, tick))
    return scores


def _show(scores: Sequence[Score], items: Sequence[Labelled]) -> None:
    console.print(f"{len(items)} labelled traces")
    table = Table(box=None)
    table.add_column("judge", overflow="fold")
    for head in ("agrees", "too high", "too low", "capped", "unjudged", "calls", "USD / 1,000"):
        table.add_column(head, justify="right")
    for score in scores:
        asked = score.judge != FACTS
        table.add_row(
            plain(score.judge, 60),
            f"{score.agreement:.1%}",
            str(score.too_high),
            str(score.too_low),
            str(score.capped) if asked else "-",
            str(score.unjudged),
            str(score.calls) if asked else "-",
            f"{score.usd_per_thousand:.2f}" if asked else "-",
        )
    console.print(table)
    for score in scores[1:]:
        _show_confusion(score)


def _show_confusion(score: Score) -> None:
    table = Table(box=None, title=f"{plain(score.judge, 60)}: label by verdict", title_style="")
    table.add_column("label")
    columns: list[Gate | None] = [*Gate, None]
    for gate in columns:
        table.add_column(gate.value if gate else UNJUDGED, justify="right")
    for label in Gate:
        counts = [score.confusion[label, gate] for gate in columns]
        table.add_row(label.value, *(str(n) if n else "·" for n in counts))
    console.print(table)
    tokens = (score.prompt_tokens + score.completion_tokens) / max(score.calls, 1)
    console.print(f"  {score.calls} calls, {tokens:,.0f} tokens each")
    for name, label, given in score.differ[:SHOWN]:
        said = given.value if given else UNJUDGED
        console.print(f"  {plain(name, 80)}: labelled {label.value}, judged {said}")
    if len(score.differ) > SHOWN:
        console.print(f"  … and {len(score.differ) - SHOWN} more")
