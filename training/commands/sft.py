"""`arena train sft`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.table import Table

from sandbox.terminal import JsonFile, console, plain, write_json
from scoring.types import Json, JsonObject
from training.commands.options import Corpora, Out, Partitions, RecipeName
from training.recipe import load_recipe_of
from training.sft import SftRecipe

if TYPE_CHECKING:
    from training.sft.running import Task

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_SHOWN = ("loss", "held_out_loss", "held_out_recommended_digits", "learning_rate")


@app.command()
def sft(
    corpus: Corpora,
    out: Out,
    recipe: RecipeName = "sft",
    start: Annotated[
        str | None,
        typer.Option("--from", help="A model's directory or name, instead of the recipe's base."),
    ] = None,
    partition: Partitions = None,
    matched: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Another corpus to compare with: both are learnt from at the same size.",
        ),
    ] = None,
    json: JsonFile = None,
) -> None:
    """Learn to say what a corpus's assistant says, and write the model to OUT/model.

    The corpus is proven first, and nothing that stands on the side of evaluation is learnt
    from. Interrupted or killed, the same command goes on and comes to the same weights.

    With --matched, a filtered and an unfiltered corpus are compared: as many rows of each
    bucket from the one as from the other, one model each, in OUT/corpus and OUT/matched.

    Example: arena train sft --recipe tiny_sft --corpus corpus/2026-11-20 --out models/tiny
    """
    from training.corpus import open_corpora
    from training.sft.running import corpus_task, matched_tasks

    chosen = load_recipe_of(SftRecipe, recipe)
    with console.status("proving the corpus"):
        corpora = open_corpora([*corpus, *([matched] if matched else [])], partition or ())
    task = corpus_task(
        corpora[: len(corpus)],
        chosen.sft,
        base=chosen.base,
        start=start,
        seed=chosen.seed,
        out=out.absolute(),
        recipe=cast("JsonObject", chosen.model_dump(mode="json")),
    )
    if matched is None:
        report = _run(task, "sft")
        console.print(f"the model: {plain(str(out / 'model'))}", soft_wrap=True)
        write_json(report, json)
        return
    reports: dict[str, Json] = {}
    for name, one in matched_tasks(task, corpora[-1]).items():
        reports[name] = _run(one, name)
    _compare(cast("dict[str, JsonObject]", reports))
    write_json(reports, json)


def _run(task: Task, name: str) -> JsonObject:
    from training.commands.showing import ShownRun
    from training.optimising.parallel import together
    from training.sft.running import run_sft

    with together(), ShownRun(name, _SHOWN) as watcher:
        report = run_sft(task, watcher)
    rows = cast("dict[str, dict[str, int]]", report["rows"])["learnt"]
    measured = cast("dict[str, float]", report["measured"])
    told = ", ".join(
        f"{key.replace('_', ' ')} {measured[key]:.4g}"
        for key in measured
        if key.startswith("held_out")
    )
    console.print(
        f"{plain(name)}: {rows['samples']} samples of {rows['tokens']} tokens,"
        f" {rows['too_long']} too long; learning rate {report['learning_rate']:g}; {told}",
        soft_wrap=True,
    )
    return report


def _compare(reports: dict[str, JsonObject]) -> None:
    table = Table("", *reports, box=None, pad_edge=False)
    measured = {n: cast("dict[str, float]", r["measured"]) for n, r in reports.items()}
    names = sorted({key for values in measured.values() for key in values if "held_out" in key})
    for name in names:
        cells = [f"{values[name]:.4g}" if name in values else "–" for values in measured.values()]
        table.add_row(name.replace("_", " "), *cells)
    console.print(table)
