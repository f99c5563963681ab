"""`arena train reject`."""

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
from training.recipe import load_recipe_of
from training.rejection import RejectRecipe, mixed

if TYPE_CHECKING:
    from training.commands.rolling import Asked
    from training.on_policy import Ground
    from training.rejection import Kept
    from training.rollouts.collecting import RolloutCounts

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_SHOWN = ("loss", "held_out_loss", "learning_rate")


@app.command()
def reject(
    corpus: Corpora,
    suite: Annotated[list[Path], typer.Option(help="The problems, with rewards; may be repeated.")],
    catalog: CatalogPath,
    start: Annotated[str, typer.Option("--from", help="The model that samples and then learns.")],
    out: Out,
    recipe: RecipeName = "rejection_v2",
    partition: Partitions = None,
    title: Title = TitleMode.NONE,
    title_model: TitleModel = DEFAULT_MODEL,
    json: JsonFile = None,
) -> None:
    """Sample rollouts of a model, keep what solves strictly, and learn from it.

    The model works on the problems of the training side through the race's gateway, tools and
    scorer. What succeeds lies in OUT/kept.jsonl.zst as rows of the corpus; mixed with the
    corpus it is learnt from, and the model is written to OUT/model. Killed, the same command
    goes on.

    Example: arena train reject --recipe tiny_reject --corpus corpus/2026-11-20
    --suite bank.jsonl --catalog world --from models/sft --out models/reject
    """
    from training.commands.rolling import learning, tell
    from training.commands.showing import ShownRun
    from training.corpus import open_corpora
    from training.on_policy import open_ground
    from training.sft.running import run_sft

    chosen = load_recipe_of(RejectRecipe, recipe)
    with console.status("proving the corpus"):
        corpora = open_corpora(corpus, partition or ())
    with open_ground(
        suite, catalog, corpora[0].guard, titles=title, title_model=title_model
    ) as ground:
        kept, counts = asyncio.run(_sample(ground, start, chosen, out))
    tell(kept, counts, out)
    rows = mixed(
        kept.rows, [row for one in corpora for row in one.train()], chosen.share, chosen.seed
    )
    task = learning(rows, corpora, chosen.sft, chosen, start, out.absolute())
    with ShownRun("reject", _SHOWN) as watcher:
        report = run_sft(task, watcher)
    console.print(
        f"learnt from {len(kept.rows)} own rows and {len(rows) - len(kept.rows)} of the corpus; "
        f"the model: {plain(str(out / 'model'))}",
        soft_wrap=True,
    )
    write_json({"rollouts": counts.to_json(), "rows": kept.to_json(), "training": report}, json)


async def _sample(
    ground: Ground, start: str, recipe: RejectRecipe, out: Path
) -> tuple[Kept, RolloutCounts]:
    from training.commands.rolling import Asked, agent_of, sampled
    from training.generation.engine import EngineLimits
    from training.rollouts.collecting import asking_policy
    from training.serving.opening import load_checkpoint, open_backbone

    settings = recipe.sft.loop
    backbone = await asyncio.to_thread(
        load_checkpoint, start, device=settings.device, dtype=settings.dtype
    )
    limits = EngineLimits(batch=recipe.sample.at_once, context=recipe.sample.context)
    name = Path(start).name or "policy"
    async with open_backbone(backbone, name=name, limits=limits) as opened:
        asked: Asked = Asked(
            model=name,
            hash=backbone.base.hash,
            asking=asking_policy(opened.chat, recipe.sample.settings(recipe.seed)),
            agent=agent_of(name, backbone.base.to_json()),
        )
        return await sampled(ground, asked, recipe, recipe.sample, out)
