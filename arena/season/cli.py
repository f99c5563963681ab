"""`arena race verify` and `arena race simulate`; `arena/races/cli.py` mounts them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from arena.exceptions import ArenaError, DrawError, SettingsError
from arena.season.record import DrawRecord, record_of
from arena.season.verifying import Check, Verification
from arena.season.verifying import verify as verify_record
from arena.settings import load_settings
from sandbox.terminal import JsonFile, console, plain, write_json
from scoring.types import Json

LARGEST_RECORD = 64 << 20


def verify(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="The record of a draw, as published.")
    ] = None,
    race: Annotated[
        str | None, typer.Option(metavar="ID", help="Or a race of this arena's journal.")
    ] = None,
    commitment: Annotated[
        str | None,
        typer.Option(metavar="HASH", help="The commitment's hash, as it was published before."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="With --race: also write its record here, to be published.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Make the draw of a race again, and name what does not hold.

    Recomputes the pool's hash, the secret's, the beacon's (with drand's signature), the seed
    and the draw, and says what it cannot check. Exit code 0 means that nothing is wrong.

    Example: arena race verify race-2026-11-20.json --commitment 0x3f1c…
    """
    if (file is None) == (race is None):
        raise SettingsError("give a FILE or --race ID", remedy="arena race verify --help")
    if out is not None and race is None:
        raise SettingsError("--out goes with --race")
    record = _read(file) if file is not None else asyncio.run(_from_journal(race or ""))
    if out is not None:
        write_json(record.to_json(), out)
    result = verify_record(record, commitment)
    _show(result)
    write_json(result.to_json(), json_file)
    if not result.holds:
        names = ", ".join(check.name for check in result.wrong)
        raise ArenaError(
            f"the draw of {result.race_id[:80]} does not hold: {names}", code="draw.does_not_hold"
        )


def simulate(
    days: Annotated[int, typer.Option(min=1, max=3650, help="How long.")] = 365,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same season.")] = 1,
    miners: Annotated[int, typer.Option(min=6, max=5000, help="How many hotkeys.")] = 300,
    problems: Annotated[
        int, typer.Option(min=1, max=30, help="Problems of each bucket in a race.")
    ] = 5,
    json_file: JsonFile = None,
) -> None:
    """Simulate a season of daily races, with copies, sybils, a memoriser and a leaver.

    Bank, clusters, rotation, draw, gate for copies, races, standings and weights are the
    real ones; only the runs of agents are drawn. Exit code 0 means that no copy was paid,
    nothing leaked and every draw could be made again.

    Example: arena race simulate --days 365 --seed 1 --json season.json
    """
    # Imported here: verifying a draw needs none of it.
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    from arena.simulation.course import Plan, Simulation
    from arena.simulation.show import findings, tables

    simulation = Simulation(Plan(days=days, seed=seed, miners=miners, each=problems))
    columns = (
        TextColumn("Simulating days"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("", total=days)
        outcome = simulation.run(lambda: progress.advance(task))
    console.print(tables(outcome))
    console.print()
    for line in findings(outcome):
        console.print(line, soft_wrap=True)
    write_json(outcome.to_json(), json_file)
    if not outcome.sound:
        raise ArenaError(
            f"the season is not sound: {len(outcome.tally.copies_paid)} hotkeys paid for copies,"
            f" {len(outcome.leaks)} leaks, {len(outcome.tally.draws_wrong)} draws that do not hold",
            code="simulation.unsound",
        )


def _read(file: Path) -> DrawRecord:
    try:
        if file.stat().st_size > LARGEST_RECORD:
            raise DrawError(f"{file}: too large for a draw's record", code="draw.bad_record")
        value: Json = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DrawError(f"{file}: not JSON: {error!s:.200}", code="draw.bad_record") from None
    try:
        return DrawRecord.from_json(value)
    except DrawError as error:
        raise DrawError(f"{file}: {error.message}", code=error.code) from None


async def _from_journal(race_id: str) -> DrawRecord:
    # Imported here: a FILE needs no database.
    from arena.problems.bank_store import open_journal
    from arena.season.state import STREAM

    async with open_journal(load_settings()) as journal:
        entries = await journal.read(STREAM)
    return record_of((entry.event for entry in entries), race_id)


def _show(result: Verification) -> None:
    for check in result.checks:
        console.print(f"  {_mark(check)} {check.name}: {plain(check.detail)}", soft_wrap=True)
    unsure = sum(check.holds is None for check in result.checks)
    what = "[bold red]does not hold[/]" if not result.holds else "[green]holds[/]"
    console.print(
        f"the draw of {plain(result.race_id, 80)} {what}"
        + (f"; {unsure} not checked" if unsure else "")
    )


def _mark(check: Check) -> str:
    if check.holds is None:
        return "[yellow]not checked[/]"
    return "[green]holds[/]" if check.holds else "[bold red]wrong[/]"
