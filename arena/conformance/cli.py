"""The `arena conformance` command. Reads files and a catalogue; writes only `--json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from arena.conformance.judging import Tally, judge_files, needs_catalog
from arena.conformance.vectors import Kind, VectorFile, read_vectors
from arena.exceptions import ConformanceError
from sandbox.catalog import Catalog, open_catalog
from sandbox.terminal import JsonFile, console, plain, write_json
from scoring.types import Json, JsonObject

SHOWN = 3
"""Differences shown of a kind; `--json` has more."""
_WIDTH = 300

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def conformance(
    files: Annotated[list[Path], typer.Argument(help="Vector files, JSON Lines.")],
    catalog: Annotated[
        Path | None,
        typer.Option(help="Index directory, or a catalogue's .jsonl or .jsonl.gz."),
    ] = None,
    json_file: JsonFile = None,
    only: Annotated[list[Kind] | None, typer.Option(help="Judge only this kind.")] = None,
) -> None:
    """Judge vector files and exit with 1 when one vector fails.

    Example: arena conformance vectors/*.jsonl --catalog documents.jsonl.gz
    """
    read = [read_vectors(path) for path in files]
    chosen = [file for file in read if not only or file.kind in only]
    if not chosen:
        raise ConformanceError(f"no file holds vectors of the kind {', '.join(only or ())}")
    tallies = _judge(chosen, _open(chosen, catalog))
    _show(tallies)
    write_json(_to_json(tallies), json_file)
    if any(tally.failed for tally in tallies.values()):
        raise typer.Exit(1)


def _open(files: Sequence[VectorFile], path: Path | None) -> Catalog | None:
    wanting = [file for file in files if needs_catalog(file)]
    if not wanting:
        return None
    if path is None:
        kinds = ", ".join(dict.fromkeys(file.kind.value for file in wanting))
        raise ConformanceError(
            f"{wanting[0].path}: vectors of the kind {kinds} are judged on a catalogue",
            remedy="give --catalog DIR|FILE",
        )
    with console.status(f"Opening {plain(str(path))} …"):
        return open_catalog(path)


def _judge(files: Sequence[VectorFile], catalog: Catalog | None) -> dict[Kind, Tally]:
    columns = (TextColumn("Judging"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("", total=sum(len(file.vectors) for file in files))
        return judge_files(files, catalog, lambda: progress.advance(task))


def _show(tallies: dict[Kind, Tally]) -> None:
    table = Table("kind", box=None, pad_edge=False)
    table.add_column("passed", justify="right")
    table.add_column("failed", justify="right")
    for kind, tally in tallies.items():
        table.add_row(kind.value, str(tally.passed), str(tally.failed))
    console.print(table)
    for kind, tally in tallies.items():
        for difference in tally.differences[:SHOWN]:
            place = f"{kind.value}: {plain(difference.file)}, line {difference.line}"
            expected, got = _text(difference.expected), _text(difference.got)
            console.print(f"{place}\n  expected {expected}\n  got      {got}", soft_wrap=True)


def _text(value: Json) -> str:
    return plain(json.dumps(value, ensure_ascii=False), _WIDTH)


def _to_json(tallies: dict[Kind, Tally]) -> JsonObject:
    return {
        "passed": sum(tally.passed for tally in tallies.values()),
        "failed": sum(tally.failed for tally in tallies.values()),
        "kinds": {kind.value: tally.to_json() for kind, tally in tallies.items()},
    }
