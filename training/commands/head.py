"""`arena train head`: a process-reward head on the rule axes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sandbox.terminal import JsonFile, console, plain, write_json
from training.commands.options import GuardingCorpora, Partitions, Scored, read_scored

if TYPE_CHECKING:
    from training.rewards.process import Measured

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def head(
    corpus: GuardingCorpora,
    out: Annotated[Path, typer.Option(help="Directory of the head; what is there is replaced.")],
    start: Annotated[
        str, typer.Option("--from", help="The model that the head reads: where GRPO will begin.")
    ],
    scored: Scored = None,
    partition: Partitions = None,
    width: Annotated[int, typer.Option(min=1, help="Of the head's one hidden layer.")] = 128,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over all turns.")] = 30,
    held_out: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of clusters to measure the head on.")
    ] = 0.2,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longer trajectories are left out.")] = (
        16_384
    ),
    seed: Annotated[int, typer.Option(min=0, help="Of weights, order and clusters held out.")] = 0,
    json: JsonFile = None,
) -> None:
    """Train a head that foretells, after each turn, which rule axes a trajectory will meet.

    It reads the frozen model's hidden states, learns from the outcomes of scored trajectories
    (--scored, else the corpus's training rows), and is measured on clusters it never saw. Dr.
    GRPO takes it with --head for the reward `process`.

    Example: arena train head --from models/teacher --corpus corpus/day
    --scored models/teacher --out models/head
    """
    from training.corpus import open_corpora
    from training.rewards.learning import HeadTask, run_head
    from training.rewards.process import HeadSettings

    with console.status("proving the corpus"):
        corpora = open_corpora(corpus, partition or ())
    rows = read_scored(scored) if scored else [row for one in corpora for row in one.train()]
    task = HeadTask(
        rows=rows,
        guard=corpora[0].guard,
        start=start,
        settings=HeadSettings(width=width, epochs=epochs, held_out=held_out, seed=seed),
        max_tokens=max_tokens,
        out=out.absolute(),
    )
    with console.status("reading hidden states, training the head"):
        report, measured = run_head(task)
    console.print(_told(measured), soft_wrap=True)
    console.print(f"the head: {plain(str(out))}", soft_wrap=True)
    write_json(report, json)


def _told(measured: Measured | None) -> str:
    if measured is None:
        return "nothing was held out: how good the head is was not measured"
    ranked = "–" if measured.auc is None else f"{measured.auc:.3f}"
    return (
        f"on {measured.turns} turns of held-out clusters: AUC {ranked}, Brier score"
        f" {measured.brier:.3f} ({measured.constant:.3f} for the constant rate)"
    )
