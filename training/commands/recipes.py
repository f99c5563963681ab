"""`arena train recipes`: what is shipped."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from sandbox.terminal import JsonFile, console, plain, write_json
from scoring.types import Json
from training.exceptions import TrainingError
from training.recipe import SHIPPED, load_recipe, shipped_recipes

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def recipes(
    name: Annotated[str | None, typer.Argument(help="One to show, with its comments.")] = None,
    json: JsonFile = None,
) -> None:
    """List the shipped recipes, or show one.

    Example: arena train recipes tiny_sft
    """
    if name is not None:
        recipe = load_recipe(name)
        if json is None and name in shipped_recipes():
            typer.echo((SHIPPED / f"{name}.yaml").read_text(encoding="utf-8"), nl=False)
        write_json(recipe.model_dump(mode="json"), json)
        return
    table = Table("recipe", "stage", "about", box=None, pad_edge=False)
    found: dict[str, Json] = {}
    for known in shipped_recipes():
        try:
            recipe = load_recipe(known)
        except TrainingError as error:
            table.add_row(known, "–", plain(error.message))
            continue
        found[known] = recipe.model_dump(mode="json")
        table.add_row(known, recipe.stage.value, plain(recipe.about))
    console.print(table)
    write_json(found, json)
