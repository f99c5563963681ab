"""The option `--scored`: rows of rollouts that were made and scored before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from scoring.types import JsonObject
from training.rejection import SCORED

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
