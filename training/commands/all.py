"""`arena train all`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markdown import Markdown

from sandbox.terminal import JsonFile, console, plain, write_json
from training.exceptions import NothingToLearnError
from training.path.recipe import PathRecipe
from training.recipe import load_recipe_of

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("all")
def everything(
    ctx: typer.Context,
    out: Annotated[Path, typer.Option(help="Directory of it all; the same again goes on.")],
    recipe: Annotated[str, typer.Option(help="A shipped recipe's name, or a file.")] = "tiny",
    json: JsonFile = None,
) -> None:
    """From a generated world to a race: corpus, every stage, evaluations, the race at the end.

    Offline; the stand-in shopper races and teaches. Each step is a command of its own, whose
    words stand in OUT/logs. What is done is passed over, and interrupted or killed, the same
    command goes on. OUT/summary.md, .json and .svg say what came of it.

    Exit code 0 means that every stage learnt something, and everybody was evaluated and raced.

    Example: arena train all --recipe tiny --out runs/tiny
    """
    from training.path.running import Way
    from training.path.steps import Layout
    from training.path.summary import SUMMARY, markdown, write_summary

    def tell(line: str) -> None:
        console.print(plain(line), soft_wrap=True)

    way = Way(
        load_recipe_of(PathRecipe, recipe),
        Layout(out.absolute()),
        (ctx.obj or {}).get("shipped_agents", {}),
        tell,
    )
    try:
        way.run()
    except KeyboardInterrupt:
        console.print(f"interrupted; go on with the same command and --out {plain(str(out))}")
        raise typer.Exit(130) from None
    finally:
        found = write_summary(way)
    console.print(Markdown(markdown(found)))
    console.print(f"the summary: {plain(str(out / f'{SUMMARY}.md'))}", soft_wrap=True)
    write_json(found, json)
    if idle := way.idle():
        raise NothingToLearnError(
            f"nothing was learnt by {', '.join(idle)}: no rollout or no label told them anything",
            remedy="a longer sft, or more problems for their rollouts",
        )
