"""`arena doctor`: what this machine has and lacks, each lack with the command that mends it."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from arena.db.engine import open_database
from arena.runs.opening import http_address
from arena.settings import ArenaSettings, load_settings
from sandbox.exceptions import ArenaError, IsolationError
from sandbox.isolation import checks as isolation_checks
from sandbox.isolation import open_isolation, workers_that_fit
from sandbox.isolation.interface import Check, SandboxLimits
from sandbox.models import ModelSettings, discover
from sandbox.terminal import JsonFile, console, plain, write_json
from scoring.types import Json

app = typer.Typer(rich_markup_mode=None, add_completion=False)

ENOUGH_DISK_BYTES = 2 << 30
"""An index of the public catalogue takes about 1.5 GB, a day of races a few hundred MB."""


def check_memory() -> Check:
    """How many sandboxes fit at once; none is a lack."""
    limits = SandboxLimits()
    workers = workers_that_fit(limits)
    each = limits.memory_bytes / (1 << 30)
    detail = f"{workers} sandboxes of {each:.0f} GiB fit at once ({os.cpu_count()} cores)"
    return Check("memory", workers > 0, detail, None if workers else "free memory, or add some")


def check_disk(data_dir: Path) -> Check:
    """Free space where races, indices and the embedded database are kept."""
    there = data_dir.resolve()
    while not there.exists():
        there = there.parent
    free = shutil.disk_usage(there).free
    return Check(
        "disk",
        free >= ENOUGH_DISK_BYTES,
        f"{free / (1 << 30):.1f} GiB free for {data_dir}",
        None if free >= ENOUGH_DISK_BYTES else "free some, or set ARENA_DATA_DIR to a larger disk",
    )


async def check_database(settings: ArenaSettings) -> Check:
    """Start or reach the database and migrate it, as a race would."""
    async with open_database(settings) as database:
        try:
            await database.ready()
        except ArenaError as error:
            remedy = error.remedy or "start it, or unset ARENA_DATABASE_URL to use an embedded one"
            return Check("database", False, error.message, remedy)
        how = f"; {database.guard.sentence}" if database.guard else ""
        return Check("database", True, f"{database.where}{how}")


async def check_model_server(url: str | None) -> Check:
    """Ask the model server which models it lists, as a race would."""
    settings = ModelSettings()
    address = url or settings.model_url
    if address is None:
        table = ", ".join(sorted({route.model for route in settings.routes()}))
        detail = f"listed: {table}" if table else "none given: the stand-in models will answer"
        return Check("model server", True, detail)
    try:
        routes = await discover(http_address(address), api_key=settings.model_key)
    except ArenaError as error:
        return Check("model server", False, f"{address}: {error.message}", error.remedy)
    shown = ", ".join(route.model for route in routes[:5]) + (" …" if len(routes) > 5 else "")
    return Check("model server", True, f"{address}: {shown}")


async def check_isolation() -> Check:
    """Whether agents can be confined at all, and by what."""
    try:
        isolation = await open_isolation(None)
    except IsolationError as error:
        return Check("isolation", False, error.message, error.remedy)
    await isolation.close()
    return Check("isolation", True, f"races will run under {isolation.name}")


def _run(name: str, check: Callable[[], Check | Coroutine[Any, Any, Check]]) -> Check:
    """A check that cannot be made is a lack of its own, never a traceback."""
    try:
        found = check()
        return found if isinstance(found, Check) else asyncio.run(found)
    except (ArenaError, OSError) as error:
        return Check(name, False, str(error))


def _show(title: str, lines: list[Check]) -> None:
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 1))
    for line in lines:
        table.add_row("[green]✓[/]" if line.ok else "[red]✗[/]", line.name, plain(line.detail))
        if line.remedy and not line.ok:
            table.add_row("", "", f"to mend it: {plain(line.remedy)}")
    console.print(table)


def _as_json(lines: list[Check]) -> Json:
    return [
        {"name": c.name, "ok": c.ok, "detail": c.detail, "remedy": None if c.ok else c.remedy}
        for c in lines
    ]


@app.command()
def doctor(
    model_url: Annotated[
        str | None, typer.Option(help="An OpenAI-compatible server to ask, ending in /v1.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Say what this machine has and lacks for a race, and the command that mends each lack.

    Exits with 1 when a race cannot run here. One isolation is enough: a missing second
    one is shown, and does not count.

    Example: arena doctor --model-url http://127.0.0.1:8000/v1
    """
    settings = load_settings()
    details = isolation_checks()
    needed = [
        _run("isolation", check_isolation),
        _run("memory", check_memory),
        _run("disk", lambda: check_disk(settings.data_dir)),
        _run("database", lambda: check_database(settings)),
        _run("model server", lambda: check_model_server(model_url)),
    ]
    _show("What a race needs", needed)
    _show("Isolations", details)
    ready = all(check.ok for check in needed)
    write_json(
        {"ready": ready, "needed": _as_json(needed), "isolation": _as_json(details)}, json_file
    )
    if not ready:
        console.print("[red]A race cannot run here yet.[/]")
        raise typer.Exit(1)
    console.print("A race can run here: [bold]arena demo[/]")
