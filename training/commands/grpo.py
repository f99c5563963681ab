"""`arena train grpo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

from arena.problems.titles import DEFAULT_MODEL, TitleMode
from sandbox.terminal import JsonFile, console, plain, write_json
from training.commands.options import (
    CatalogPath,
    GuardingCorpora,
    Out,
    Partitions,
    RecipeName,
    Title,
    TitleModel,
    read_scored,
)
from training.dr_grpo import GrpoRecipe
from training.recipe import load_recipe_of

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_SHOWN = ("reward", "success", "groups_learnt", "kl", "mismatch_kl", "truncation_rate")


@app.command()
def grpo(
    corpus: GuardingCorpora,
    suite: Annotated[list[Path], typer.Option(help="Problems to roll out on; may be repeated.")],
    catalog: CatalogPath,
    out: Out,
    start: Annotated[
        str | None, typer.Option("--from", help="The model to begin with, and to be held to.")
    ] = None,
    recipe: RecipeName = "drgrpo_v17",
    teacher: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE|DIR",
            help="For `tool_match`: scored rollouts of a teacher; may be repeated.",
        ),
    ] = None,
    head: Annotated[
        Path | None, typer.Option(help="For `process`: what `arena train head` wrote.")
    ] = None,
    partition: Partitions = None,
    title: Title = TitleMode.NONE,
    title_model: TitleModel = DEFAULT_MODEL,
    json: JsonFile = None,
) -> None:
    """Dr. GRPO on rollouts of many turns, and write the model to OUT/model.

    Rollouts go through the race's gateway, tools and strict scorer, on problems of the
    training side alone. Interrupted or killed, the same command goes on from the last
    checkpoint, with the rollouts that were made.

    Example: arena train grpo --recipe drgrpo_v17 --from models/teacher --corpus corpus/day
    --suite suite.jsonl --catalog documents.jsonl.gz --out models/grpo
    """
    from training.commands.showing import ShownRun
    from training.corpus import open_corpora
    from training.dr_grpo.running import grpo_task, run_grpo
    from training.on_policy import open_ground

    chosen = load_recipe_of(GrpoRecipe, recipe)
    with console.status("proving the corpus"):
        corpora = open_corpora(corpus, partition or ())
    guard = corpora[0].guard
    with open_ground(suite, catalog, guard, titles=title, title_model=title_model) as ground:
        task = grpo_task(
            corpora,
            chosen,
            ground,
            start=start,
            out=out.absolute(),
            teachers=read_scored(teacher or ()),
            head=head,
            tell=lambda line: console.print(plain(line), soft_wrap=True),
        )
        with ShownRun("grpo", _SHOWN, every=1) as watcher:
            report = run_grpo(task, watcher)
    measured = cast("dict[str, float]", report["measured"])
    told = ", ".join(
        f"{key.replace('_', ' ')} {measured[key]:.3g}" for key in _SHOWN if key in measured
    )
    console.print(f"grpo: {report['updates']} updates; at the end {told}", soft_wrap=True)
    if report["stopped"]:
        console.print(f"stopped early: {plain(str(report['stopped']))}", soft_wrap=True)
    console.print(f"the model: {plain(str(out / 'model'))}", soft_wrap=True)
    write_json(report, json)
