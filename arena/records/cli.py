"""`arena records`: close days, export, verify, prove and show what is recorded."""

from __future__ import annotations

import typer

from arena.records.keeping_cli import close, export
from arena.records.reading_cli import prove, show, verify

app = typer.Typer(
    help="Verify, prove and show what is recorded.",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def _group() -> None:
    """Verify, prove and show what is recorded."""


for command in (verify, show, prove, close, export):
    app.command()(command)
