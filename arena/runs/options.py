"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

JudgeOption = Annotated[
    bool | None,
    typer.Option(
        "--judge/--no-judge",
        help="Judge the reasoning; default: when a judge model is named, and with the stand-in.",
        show_default=False,
    ),
]
JudgeModels = Annotated[
    list[str] | None,
    typer.Option("--judge-model", help="A model that judges; may be repeated."),
]
