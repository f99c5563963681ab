"""`arena records verify`, `prove` and `show`: what a reader does, a stranger or not."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from arena.db.engine import Database, open_database
from arena.exceptions import ArenaError, Fault, ProofError
from arena.records.chain_option import SN15, ChainName, Netuid, opened_chain
from arena.records.finding import Found, found_in_database, found_in_files
from arena.records.heads import SignedHead
from arena.records.log import TransparencyLog
from arena.records.proofs import MAX_BYTES, InclusionProof
from arena.records.show import record_lines
from arena.records.verification.contents import BROKEN
from arena.records.verification.findings import Report
from arena.records.verification.show import first_findings, table_of, verdict_of
from arena.records.verification.sources import Source, open_source, read_lines
from arena.records.verification.stored import DatabaseSource
from arena.records.verification.verifier import Options, Trust, verify_proof
from arena.records.verification.verifier import verify as verify_sources
from arena.settings import load_settings
from sandbox.terminal import JsonFile, console, writable, write_json
from scoring.types import Json

_HASH = re.compile(r"[0-9a-f]{64}")


def verify(
    ctx: typer.Context,
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
    strict: Annotated[
        bool, typer.Option("--strict", help="Let notices and what cannot be checked fail, too.")
    ] = False,
    chain: ChainName = None,
    netuid: Netuid = SN15,
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
        report = asyncio.run(_verify(ctx, paths or [], options, chain, netuid))
    _show(report, strict, json)


def prove(
    name: Annotated[str, typer.Argument(metavar="ID", help="A run's id, or a record's hash.")],
    out: Annotated[
        Path | None, typer.Option(help="File for the proof; default: standard output.")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Prove that a record is in the log: its seal, its place, the path to a signed head.

    Anyone can check it with `arena records verify --proof FILE`, with nothing else at hand.

    Example: arena records prove 4f1c… --out proof.json
    """
    proof = asyncio.run(_prove(name))
    for target in {writable(out), json} - {None} or {Path("-")}:
        write_json(cast("Json", proof.to_json()), target)
    head = proof.head.head
    console.print(
        f"leaf {proof.index} of {head.size} under the head of {head.day}, {proof.head.hash}",
        soft_wrap=True,
    )


async def _prove(name: str) -> InclusionProof:
    async with _database() as database:
        return await TransparencyLog(database.engine).prove(name)


def show(
    name: Annotated[str, typer.Argument(metavar="ID", help="A run's id, or a record's hash.")],
    race: Annotated[
        Path | None, typer.Option(help="Directory of a race or an export; default: the database.")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Show a record turn by turn: prompts, thinking, calls, results, outcome and verdict.

    What the verdict cites is marked where it stands.

    Example: arena records show 4f1c… --race races/today
    """
    found = found_in_files(race, name) if race else asyncio.run(_find(name))
    people = console_for_people()
    write_json(cast("Json", found.record.value), json)
    try:
        lines = list(record_lines(found.record, found.sealed, found.in_log, found.later))
    except BROKEN as error:
        raise ArenaError(
            f"the record {found.record.hash} has a field of the wrong kind: {error!s:.200}",
            code="record.unreadable",
            fault=Fault.VALIDATOR,
            remedy="--json - prints it as it is",
        ) from error
    for line in lines:
        people.print(line, soft_wrap=True)


async def _find(name: str) -> Found:
    async with _database() as database:
        return await found_in_database(database.engine, name)


def _show(report: Report, strict: bool, json: Path | None) -> None:
    people = console_for_people()
    people.print(table_of(report))
    for line in first_findings(report):
        people.print(line, soft_wrap=True)
    people.print(verdict_of(report), soft_wrap=True)
    write_json(cast("Json", report.to_json()), json)
    unchecked = sum(tally.uncheckable.total() for tally in report.tallies.values())
    if report.failed or (strict and (report.noticed or unchecked)):
        first = next((f for f in report.findings if strict or not f.code.is_notice), None)
        raise ArenaError(
            f"{report.failed} checks failed"
            + (f", {report.noticed} notices, {unchecked} could not be made" if strict else "")
            + (f"; the first: {first.code.value} at {first.place}" if first else ""),
            code="records.not_verified",
        )


async def _verify(
    ctx: typer.Context, paths: list[Path], options: Options, network: str | None, netuid: int
) -> Report:
    async with AsyncExitStack() as stack:
        sources: list[Source] = [open_source(path) for path in paths]
        if not sources:
            database = await stack.enter_async_context(_database())
            sources = [DatabaseSource(database.engine)]
        chain = await stack.enter_async_context(opened_chain(ctx, network, netuid))
        progress = stack.enter_context(_progress())
        task = progress.add_task("checked")

        def tell(count: int) -> None:
            progress.update(task, description=f"{count:,} records checked")

        return await verify_sources(sources, replace(options, progress=tell), chain=chain)


@asynccontextmanager
async def _database() -> AsyncIterator[Database]:
    """The database of the settings, ready."""
    async with open_database(load_settings()) as database:
        await database.ready()
        yield database


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


def console_for_people() -> Console:
    """For people; wide enough for tables where there is no terminal."""
    if console.is_terminal:
        return console
    width = max(120, shutil.get_terminal_size().columns)
    return Console(file=sys.stderr, highlight=False, width=width)
