"""`arena records`: close days, export, verify, prove and show what is recorded."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from arena.exceptions import ArenaError, ProofError
from arena.records.heads import SignedHead
from arena.records.proofs import MAX_BYTES, InclusionProof
from arena.records.verification.findings import Report
from arena.records.verification.show import first_findings, table_of, verdict_of
from arena.records.verification.sources import Source, open_source, read_lines
from arena.records.verification.verifier import Options, Trust, verify_proof
from arena.records.verification.verifier import verify as verify_sources
from arena.settings import load_settings
from sandbox.terminal import JsonFile, console, plain, write_json
from scoring.types import Json

app = typer.Typer(
    help="Verify, prove and show what is recorded.",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
)
_HASH = re.compile(r"[0-9a-f]{64}")


@app.callback()
def _group() -> None:
    """Verify, prove and show what is recorded."""


@app.command()
def verify(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DIR]...", help="Exports or races; without one, the database."),
    ] = None,
    proof: Annotated[
        Path | None, typer.Option(help="Check a proof of inclusion instead, from `prove`.")
    ] = None,
    validator: Annotated[
        list[str] | None, typer.Option(help="SS58 address that may seal; may be repeated.")
    ] = None,
    operator: Annotated[str | None, typer.Option(help="SS58 address of the log.")] = None,
    head: Annotated[
        str | None, typer.Option(help="A head you have: its SHA-256, or a file of heads.")
    ] = None,
    suite: Annotated[
        list[Path] | None, typer.Option(help="Problems to recompute with; may be repeated.")
    ] = None,
    catalog: Annotated[
        Path | None, typer.Option(help="Catalogue to recompute outcomes with.")
    ] = None,
    recompute: Annotated[
        bool, typer.Option(help="Decide outcome, axis and citations again from the traces.")
    ] = True,
    strict: Annotated[bool, typer.Option("--strict", help="Let notices fail, too.")] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes when there is much; default: all cores.")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Check records, seals and the log, trusting nobody who made them.

    Exit code 0 means that nothing failed. What could not be checked is counted with its
    reason, and is not verified.

    Example: arena records verify export-2026-11-20 --catalog documents.jsonl.gz
    """
    hash_, heads = _given_head(head)
    trust = Trust(frozenset(validator or ()), operator, hash_)
    if proof is not None:
        report = verify_proof(_read_proof(proof), trust, heads)
    else:
        if hash_ is None and heads:
            trust = Trust(trust.validators, operator, heads[-1].hash)
        options = Options(
            trust=trust,
            suites=tuple(suite or ()),
            catalog=catalog,
            recompute=recompute,
            jobs=jobs or os.cpu_count() or 1,
        )
        report = asyncio.run(_verify(paths or [], options))
    _show(report, strict, json)


def _show(report: Report, strict: bool, json: Path | None) -> None:
    people = _people()
    people.print(table_of(report))
    for line in first_findings(report):
        people.print(line, soft_wrap=True)
    people.print(verdict_of(report), soft_wrap=True)
    write_json(cast("Json", report.to_json()), json)
    if report.failed or (strict and report.noticed):
        first = next((f for f in report.findings if strict or not f.code.is_notice), None)
        raise ArenaError(
            f"{report.failed} checks failed"
            + (f" and {report.noticed} notices" if strict else "")
            + (f"; the first: {first.code.value} at {first.place}" if first else ""),
            code="records.not_verified",
        )


async def _verify(paths: list[Path], options: Options) -> Report:
    async with AsyncExitStack() as stack:
        sources: list[Source] = [open_source(path) for path in paths]
        if not sources:
            sources = [await stack.enter_async_context(_database())]
        progress = stack.enter_context(_progress())
        task = progress.add_task("checked")
        told = Options(
            options.trust,
            options.suites,
            options.catalog,
            options.recompute,
            options.jobs,
            lambda count: progress.update(task, description=f"{count:,} records checked"),
        )
        return await verify_sources(sources, told)


@asynccontextmanager
async def _database() -> AsyncIterator[Source]:
    from arena.db.engine import open_database
    from arena.records.verification.stored import DatabaseSource

    async with open_database(load_settings()) as database:
        await database.ready()
        yield DatabaseSource(database.engine)


def _given_head(text: str | None) -> tuple[str | None, list[SignedHead]]:
    """A head by its hash, or the heads of a file. Raises ArenaError when it is neither."""
    if text is None:
        return None, []
    if _HASH.fullmatch(text):
        return text, []
    return None, [SignedHead.from_line(line) for line in read_lines(Path(text))]


def _read_proof(path: Path) -> InclusionProof:
    if path.stat().st_size > MAX_BYTES:
        raise ProofError(f"{path} is too large for a proof")
    return InclusionProof.from_bytes(path.read_bytes())


def _progress() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _people() -> Console:
    """The console for people; wide enough for tables where there is no terminal."""
    if console.is_terminal:
        return console
    width = max(120, shutil.get_terminal_size().columns)
    return Console(file=sys.stderr, highlight=False, width=width)


_ = plain
