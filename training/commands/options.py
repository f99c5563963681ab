"""Options that several commands of `arena train` have, each said once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from arena.problems.titles import TitleMode
from scoring.types import JsonObject
from training.rejection import SCORED

Corpora = Annotated[
    list[Path],
    typer.Option("--corpus", metavar="DIR", help="An exported corpus; may be repeated."),
]
GuardingCorpora = Annotated[
    list[Path],
    typer.Option(
        "--corpus",
        metavar="DIR",
        help="An exported corpus, whose partition guards; may be repeated.",
    ),
]
Partitions = Annotated[
    list[Path] | None,
    typer.Option(
        "--partition", help="What it holds for evaluation is refused, too; may be repeated."
    ),
]
Out = Annotated[Path, typer.Option("--out", help="Directory of the run; the same again goes on.")]
RecipeName = Annotated[str, typer.Option("--recipe", help="A shipped recipe's name, or a file.")]
CatalogPath = Annotated[Path, typer.Option("--catalog", help="A product file, or a built index.")]
Title = Annotated[TitleMode, typer.Option("--title", help="How titles are compared.")]
TitleModel = Annotated[
    str,
    typer.Option(
        "--title-model",
        help="For --title embedding: a sentence-transformers name or folder.",
    ),
]
Scored = Annotated[
    list[Path] | None,
    typer.Option(
        "--scored",
        metavar="FILE|DIR",
        help="Scored rollouts: what `arena train teacher` or `reject` left; may be repeated.",
    ),
]


def read_scored(paths: Sequence[Path]) -> list[JsonObject]:
    """The rows of some files, or of the runs in some directories. Raises CheckpointError."""
    from training.rollouts.rows import read_rows

    files = [path / SCORED if path.is_dir() else path for path in paths]
    return [row for path in files for row in read_rows(path)]
