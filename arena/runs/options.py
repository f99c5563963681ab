"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
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
WalletName = Annotated[
    str | None,
    typer.Option("--wallet.name", help="Wallet whose hotkey signs; without one, a local key."),
]
WalletHotkey = Annotated[
    str | None, typer.Option("--wallet.hotkey", help="Its hotkey that signs; default: default.")
]
WalletPath = Annotated[Path | None, typer.Option("--wallet.path", help="Where wallets lie.")]
