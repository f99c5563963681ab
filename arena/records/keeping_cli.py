"""`arena records close` and `export`: what the operator of a log does."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from arena.chain import Chain
from arena.db.engine import open_database
from arena.db.journal import PostgresJournal
from arena.exceptions import ArenaError, ChainRefusedError, ChainUnavailableError, Fault
from arena.records.chain_option import SN15, ChainName, Netuid, opened_chain
from arena.records.export import Exported, export_day
from arena.records.log import Closed, StoredCommitment, TransparencyLog
from arena.season.release import current_release
from arena.settings import load_settings
from arena.wallets import open_hotkey
from sandbox.terminal import JsonFile, console, plain, write_json
from scoring.types import Json

Day = Annotated[str | None, typer.Option("--day", help="YYYY-MM-DD in UTC, today or yesterday.")]


def close(
    ctx: typer.Context,
    day: Day = None,
    chain: ChainName = None,
    netuid: Netuid = SN15,
    json: JsonFile = None,
) -> None:
    """Close a day: enter what is stored into the log, sign its head, put it on chain.

    By default yesterday. Again changes nothing, but puts on chain what is not there yet.
    What is stored later goes into the next day's head. Without --chain nothing is put on
    chain, which is said and can be made up for. Exit code 0 means that the day is closed
    and, with --chain, that its head is on chain.

    Example: arena records close --day 2026-11-20 --chain finney
    """
    when = read_day(day, datetime.now(UTC))
    closed, commitment = asyncio.run(_close(ctx, when, chain, netuid))
    head = closed.head.head
    done = "was closed before" if closed.already else "is closed"
    console.print(
        f"{when} {done}: {closed.entered:,} seals, {head.size:,} in all, root {head.root.hex()}",
        soft_wrap=True,
    )
    console.print(f"head {closed.head.hash}, signed by {head.log}", soft_wrap=True)
    if chain is None:
        console.print("no --chain was given: the head is signed, and not on any chain")
    elif commitment is None:
        console.print("its head, or a later one, is on chain already")
    else:
        console.print(f"on chain since block {commitment.commitment.block}")
    write_json(cast("Json", _closed_json(closed, commitment)), json)


async def _close(
    ctx: typer.Context, day: date, network: str | None, netuid: int
) -> tuple[Closed, StoredCommitment | None]:
    settings = load_settings()
    hotkey = await asyncio.to_thread(open_hotkey, settings)
    if hotkey.local:
        console.print(f"heads are signed by a local key, {hotkey.signer.address}")
    async with open_database(settings) as database:
        await database.ready()
        log = TransparencyLog(database.engine)
        async with opened_chain(ctx, network, netuid, hotkey.signer) as chain:
            block = (await chain.block()).ref if chain is not None else None
            closed = await log.close(day, hotkey.signer, now=datetime.now(UTC), block=block)
            return closed, await _commit(log, chain)


async def _commit(log: TransparencyLog, chain: Chain | None) -> StoredCommitment | None:
    if chain is None:
        return None
    try:
        return await log.commit(chain)
    except (ChainUnavailableError, ChainRefusedError) as error:
        raise ArenaError(
            f"the day is closed, and its head is not on chain: {error.message}",
            code=error.code,
            fault=error.fault,
            remedy="the same command again puts it there",
        ) from error


def export(
    out: Annotated[Path, typer.Option(help="New directory for the files.")],
    day: Day = None,
    public: Annotated[
        bool,
        typer.Option("--public", help="Withhold what is not released; seals are always there."),
    ] = False,
    json: JsonFile = None,
) -> None:
    """Export a closed day: all that a stranger needs to check it, as files.

    Without --public everything is in it, problems with their rewards and agents' sources
    too: for the operator's own use. With it, records that are not released are withheld, and
    only their seals are there. Written whole or not at all.

    Example: arena records export --day 2026-11-20 --out exports/2026-11-20 --public
    """
    when = read_day(day, datetime.now(UTC))
    exported = asyncio.run(_export(when, out, public=public))
    console.print(
        f"{when}: {exported.seals:,} seals, {exported.records:,} records,"
        f" {exported.withheld:,} withheld, in {plain(str(out), 300)}",
        soft_wrap=True,
    )
    if not public:
        console.print("[yellow]not public[/]: it holds problems, rewards and agents' sources")
    value = {
        "day": when.isoformat(),
        "directory": str(out),
        "public": public,
        "head": exported.head,
        "seals": exported.seals,
        "records": exported.records,
        "withheld": exported.withheld,
    }
    write_json(cast("Json", value), json)


async def _export(day: date, out: Path, *, public: bool) -> Exported:
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = progress.add_task("exporting")
    async with open_database(load_settings()) as database:
        await database.ready()
        release = await current_release(PostgresJournal(database.engine), datetime.now(UTC))
        with progress:
            return await export_day(
                database.engine,
                day,
                out,
                public=public,
                release=release,
                progress=lambda n: progress.update(task, description=f"{n:,} seals written"),
            )


def read_day(text: str | None, now: datetime) -> date:
    """A day as options name it; yesterday when none is named. Raises ArenaError (the caller's)."""
    today = now.astimezone(UTC).date()
    if text in (None, "yesterday"):
        return today - timedelta(days=1)
    if text == "today":
        return today
    try:
        return date.fromisoformat(text or "")
    except ValueError:
        raise ArenaError(
            f"--day {text}: no day", code="arena.bad_day", fault=Fault.CALLER,
            remedy="it looks like 2026-11-20",
        ) from None  # fmt: skip


def _closed_json(closed: Closed, commitment: StoredCommitment | None) -> dict[str, object]:
    return {
        "day": closed.head.head.day.isoformat(),
        "already": closed.already,
        "entered": closed.entered,
        "head_hash": closed.head.hash,
        **closed.head.to_json(),
        "commitment": None
        if commitment is None
        else {
            "address": commitment.commitment.address,
            "block": commitment.commitment.block,
            "data": commitment.commitment.data.decode("ascii"),
        },
    }
