"""What a command shows a person: one-line errors, tables, progress, `--json`.

Standard error carries everything for people, standard output what a machine or a
pipe may take. Untrusted text must be passed through `plain`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from sandbox.exceptions import ArenaError
from scoring.types import Json

console = Console(stderr=True, highlight=False)
"""For people. Standard output stays free for `--json -`."""


def plain(text: str, limit: int = 500) -> str:
    """Untrusted text, bounded and harmless to a terminal: no control characters, no markup."""
    shown = "".join(c if c.isprintable() else "�" for c in text[:limit])
    return escape(shown + ("…" if len(text) > limit else ""))


def write_json(value: Json, target: Path | None) -> None:
    """Write `--json FILE`; `-` is standard output; None writes nothing."""
    if target is None:
        return
    text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    if str(target) == "-":
        sys.stdout.write(text)
    else:
        target.write_text(text, encoding="utf-8")


@contextmanager
def one_line_errors(*, debug: bool = False) -> Iterator[None]:
    """Turn an `ArenaError` into one line on standard error and exit code 1.

    With `debug` it is raised as it is, with its traceback.
    """
    try:
        yield
    except ArenaError as error:
        if debug:
            raise
        shown = f"[bold red]error[/] {plain(error.code)}: {plain(error.message, 2000)}"
        console.print(shown, soft_wrap=True)
        if error.remedy:
            console.print(f"  to mend it: {plain(error.remedy)}", soft_wrap=True)
        # Not typer.Exit: this may stand around typer, where nothing would catch that.
        raise SystemExit(1) from None
