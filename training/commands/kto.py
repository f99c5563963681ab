"""`arena train kto`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, cast

import typer

from arena.problems.titles import DEFAULT_MODEL, TitleMode
from sandbox.terminal import JsonFile, console, plain, write_json
from training.commands.options import (
    GuardingCorpora,
    Out,
    Partitions,
    RecipeName,
    Scored,
    Title,
    TitleModel,
    read_scored,
)
from training.kto import KtoRecipe
from training.recipe import load_recipe_of

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_SHOWN = ("loss", "kl", "reward_margin", "recommend_rate", "learning_rate")


@app.command()
def kto(
    corpus: GuardingCorpora,
    out: Out,
    start: Annotated[
        str | None, typer.Option("--from", help="The model to begin with, and to be held to.")
    ] = None,
    recipe: RecipeName = "kto_b002",
    partition: Partitions = None,
    scored: Scored = None,
    suite: Annotated[
        list[Path] | None,
        typer.Option(help="Problems of which some watch the recommend rate; may be repeated."),
    ] = None,
    catalog: Annotated[Path | None, typer.Option(help="A product file, or a built index.")] = None,
    title: Title = TitleMode.NONE,
    title_model: TitleModel = DEFAULT_MODEL,
    json: JsonFile = None,
) -> None:
    """Learn from strictly scored trajectories which to prefer, and write the model to OUT/model.

    A trajectory that succeeded is desirable, any other is not. With --scored they are those of
    a run of rollouts, else the corpus's training rows. With --suite and --catalog the model is
    watched: the run ends when it recommends too rarely. Interrupted or killed, the same command
    goes on and comes to the same weights.

    Example: arena train kto --recipe kto_b002 --from models/teacher --corpus corpus/day
    --scored models/teacher --suite suite.jsonl --catalog documents.jsonl.gz --out models/kto
    """
    from training.commands.showing import ShownRun
    from training.corpus import open_corpora
    from training.kto.running import kto_task, run_kto, watching
    from training.on_policy import open_ground

    chosen = load_recipe_of(KtoRecipe, recipe)
    with console.status("proving the corpus"):
        corpora = open_corpora(corpus, partition or ())
    with ExitStack() as stack:
        watch = None
        if chosen.kto.recommend is not None and suite and catalog is not None:
            guard = corpora[0].guard
            ground = stack.enter_context(
                open_ground(suite, catalog, guard, titles=title, title_model=title_model)
            )
            watch = watching(chosen, ground)
        elif chosen.kto.recommend is not None:
            console.print("nobody watches the recommend rate: that needs --suite and --catalog")
        rows = read_scored(scored) if scored else None
        task = kto_task(
            corpora, chosen, start=start, out=out.absolute(), rows=rows, open_measure=watch
        )
        with ShownRun("kto", _SHOWN) as watcher:
            report = run_kto(task, watcher)
    counts = cast("dict[str, int]", report["trajectories"])
    console.print(
        f"kto: {counts['desirable']} desirable and {counts['undesirable']} undesirable"
        f" trajectories, {counts['too_long']} too long; {report['updates']} updates",
        soft_wrap=True,
    )
    if report["stopped"]:
        console.print(f"stopped early: {plain(str(report['stopped']))}", soft_wrap=True)
    console.print(f"the model: {plain(str(out / 'model'))}", soft_wrap=True)
    write_json(report, json)
