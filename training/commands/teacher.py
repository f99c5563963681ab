"""`arena train teacher`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arena.problems.titles import DEFAULT_MODEL, TitleMode
from sandbox.terminal import JsonFile, console, plain, write_json
from training.commands.options import (
    CatalogPath,
    Corpora,
    Out,
    Partitions,
    RecipeName,
    Title,
    TitleModel,
)
from training.exceptions import NothingToLearnError
from training.recipe import load_recipe_of
from training.teacher import TeacherRecipe

if TYPE_CHECKING:
    from training.on_policy import Ground
    from training.rejection import Kept
    from training.rollouts.collecting import RolloutCounts

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_SHOWN = ("loss", "held_out_loss", "learning_rate")


@app.command()
def teacher(
    corpus: Corpora,
    suite: Annotated[list[Path], typer.Option(help="The problems, with rewards; may be repeated.")],
    catalog: CatalogPath,
    out: Out,
    teacher_url: Annotated[
        str, typer.Option(help="The teacher's server, http://…/v1; standin is the rule-based one.")
    ],
    start: Annotated[
        str | None, typer.Option("--from", help="The model that learns; the recipe's by default.")
    ] = None,
    teacher: Annotated[
        str | None, typer.Option("--teacher", help="The teacher's name on its server.")
    ] = None,
    recipe: RecipeName = "opd_sonnet",
    partition: Partitions = None,
    title: Title = TitleMode.NONE,
    title_model: TitleModel = DEFAULT_MODEL,
    json: JsonFile = None,
) -> None:
    """Let a stronger model work on the training problems, and learn from what it solves.

    What passes strictly lies in OUT/kept.jsonl.zst as rows of the corpus, all that was scored
    in OUT/scored.jsonl.zst (KTO learns from both), and the model in OUT/model. Killed, the same
    command goes on; a server that dies loses nothing that is done.

    Example: arena train teacher --recipe tiny_teacher --teacher-url standin
    --corpus corpus/2026-11-20 --suite bank.jsonl --catalog world --from models/reject
    --out models/teacher
    """
    from training.commands.rolling import learning, tell
    from training.commands.showing import ShownRun
    from training.corpus import open_corpora
    from training.on_policy import open_ground
    from training.sft.running import run_sft

    chosen = load_recipe_of(TeacherRecipe, recipe)
    with console.status("proving the corpus"):
        corpora = open_corpora(corpus, partition or ())
    with open_ground(
        suite, catalog, corpora[0].guard, titles=title, title_model=title_model
    ) as ground:
        kept, counts = asyncio.run(
            _sample(ground, teacher_url, teacher or chosen.teacher, chosen, out)
        )
    tell(kept, counts, out)
    if not kept.rows:
        raise NothingToLearnError(
            "the teacher solved no problem: there is nothing to learn from",
            remedy="choose another --teacher, or look at OUT/scored.jsonl.zst",
        )
    task = learning(kept.rows, corpora, chosen.sft, chosen, start, out.absolute())
    with ShownRun("teacher", _SHOWN) as watcher:
        report = run_sft(task, watcher)
    console.print(f"the model: {plain(str(out / 'model'))}", soft_wrap=True)
    write_json({"rollouts": counts.to_json(), "rows": kept.to_json(), "training": report}, json)


async def _sample(
    ground: Ground, url: str, name: str | None, recipe: TeacherRecipe, out: Path
) -> tuple[Kept, RolloutCounts]:
    from sandbox.models import ModelClient
    from training.commands.rolling import Asked, agent_of, sampled
    from training.evaluation.target import open_target

    async with open_target(url, name, lambda line: console.print(plain(line))) as target:
        client = ModelClient(target.routes)
        try:
            asked = Asked(
                model=target.model,
                hash=target.checkpoint or "",
                asking=lambda _: client,
                agent=agent_of(target.label, {"model": target.model, "url": url}),
            )
            return await sampled(ground, asked, recipe, recipe.sample, out)
        finally:
            await client.close()
