"""What a command shows a person: one-line errors, tables, progress, `--json`.

Standard error carries everything for people, standard output what a machine or a
pipe may take. Untrusted text must be passed through `plain`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from sandbox.exceptions import ArenaError, Fault
from scoring.types import Json

console = Console(stderr=True, highlight=False)
"""For people. Standard output stays free for `--json -`."""


def plain(text: str, limit: int = 500) -> str:
    """Untrusted text, bounded and harmless to a terminal: no control characters, no markup."""
    shown = "".join(c if c.isprintable() else "�" for c in text[:limit])
    return escape(shown + ("…" if len(text) > limit else ""))


def write_json(value: Json, target: Path | None) -> None:
    """Write `--json FILE`; `-` is standard output; None writes nothing.

    Raises ArenaError (the caller's) when the file cannot be written.
    """
    if target is None:
        return
    text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    if str(target) == "-":
        sys.stdout.write(text)
        return
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _unwritable(target, error.strerror or type(error).__name__) from error


def writable(target: Path | None) -> Path | None:
    """`target`, looked at before the work begins: hours later is too late to hear of it."""
    if target is None or str(target) == "-":
        return target
    directory = target.absolute().parent
    if not directory.is_dir():
        raise _unwritable(target, "there is no such directory")
    if target.is_dir():
        raise _unwritable(target, "it is a directory")
    if not os.access(target if target.exists() else directory, os.W_OK):
        raise _unwritable(target, "it may not be written")
    return target


def _unwritable(target: Path, reason: str) -> ArenaError:
    return ArenaError(
        f"--json {target}: {reason}", code="arena.unwritable_output", fault=Fault.CALLER
    )


JsonFile = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        callback=writable,
        help="Write the result as JSON; - is standard output.",
    ),
]
"""The option `--json` of every command."""


@contextmanager
def one_line_errors(*, debug: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Turn an exception into one line on standard error and exit code 1.

    With `debug` it is raised as it is, with its traceback.
    """
    try:
        yield
    except Exception as error:
        if debug():
            raise
        known = error if isinstance(error, ArenaError) else _unexpected(error)
        shown = f"[bold red]error[/] {plain(known.code)}: {plain(known.message, 2000)}"
        console.print(shown, soft_wrap=True)
        if known.remedy:
            console.print(f"  to mend it: {plain(known.remedy)}", soft_wrap=True)
        # Not typer.Exit: this may stand around typer, where nothing would catch that.
        raise SystemExit(1) from None


def _unexpected(error: Exception) -> ArenaError:
    """What nobody foresaw, in one line as well."""
    if isinstance(error, OSError) and error.strerror:
        place = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        return ArenaError(f"{place}{error.strerror}", code="arena.os_error", fault=Fault.CALLER)
    return ArenaError(
        f"{type(error).__name__}: {' '.join(str(error).split())}",
        code="arena.unexpected",
        remedy="this is a fault of sn15-arena itself; `arena --debug` and the same command"
        " shows where, for a report",
    )
