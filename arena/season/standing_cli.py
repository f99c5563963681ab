"""`arena race standings`, `disqualify` and `appeal`: a season's journal, read and ruled on.

`arena/races/cli.py` mounts them. What is ruled stands in the journal with its reason, and
stays there.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from arena.journal import Journal
from arena.problems.bank_store import open_journal
from arena.season import standings
from arena.season.commands import Appeal, Command, Disqualify
from arena.season.standings import Row
from arena.season.state import Season
from arena.season.store import command, load_season
from arena.settings import load_settings
from sandbox.terminal import JsonFile, console, plain, write_json

Version = Annotated[str, typer.Argument(metavar="VERSION", help="The agent's version id.")]
Reason = Annotated[str, typer.Option(help="Why; everyone will read it.")]


def standings_command(json: JsonFile = None) -> None:
    """Show champion, last race and all-time standings of this arena's season.

    Example: arena race standings
    """
    season = asyncio.run(_load())
    last = season.results[-1] if season.results else None
    champion = season.champion or "nobody"
    console.print(f"champion: {plain(champion)}", soft_wrap=True)
    if last is not None:
        decided = last.title.decision.value
        console.print(f"\n{last.race_id}, closed {last.closed_at:%F %H:%M} UTC: {decided}")
        console.print(_table(standings.race_standings(season, last)))
    console.print("\nall races")
    console.print(_table(standings.all_time(season)))
    write_json(standings.to_json(season), json)


def disqualify(version: Version, reason: Reason, json: JsonFile = None) -> None:
    """Take an agent out of races, title and pay; its history stays.

    Example: arena race disqualify 7c1e… --reason "copied from 19ab…, found on appeal"
    """
    _rule(Disqualify(version, reason), version, "disqualified", json)


def appeal(version: Version, reason: Reason, json: JsonFile = None) -> None:
    """Reopen the case of a disqualified agent: it stands as before, and may race again.

    Example: arena race appeal 7c1e… --reason "the earlier file was its own, by another hotkey"
    """
    _rule(Appeal(version, reason), version, "reinstated", json)


def _rule(order: Command, version: str, done: str, json: Path | None) -> None:
    season = asyncio.run(_decide(order))
    champion = season.champion
    console.print(
        f"{plain(version)} is {done}; champion: {plain(champion or 'nobody')}", soft_wrap=True
    )
    write_json({"version": version, "ruling": done, "champion": champion}, json)


async def _load() -> Season:
    async with open_journal(load_settings()) as journal:
        return (await load_season(journal)).season


async def _decide(order: Command) -> Season:
    async with open_journal(load_settings()) as journal:
        return await ruled(journal, order)


async def ruled(journal: Journal, order: Command) -> Season:
    """The season after an order of now. Raises SeasonError for one that is refused."""
    loaded = await load_season(journal)
    await command(journal, loaded, order, datetime.now(UTC))
    return loaded.season


def _table(rows: tuple[Row, ...]) -> Table:
    table = Table("rank", "agent", "score", "ASR", "races", box=None, pad_edge=False)
    for row in rows:
        asr = "" if row.asr is None else f"{row.asr:.1%}"
        rank = "" if row.rank is None else str(row.rank)
        score = "incomplete" if row.score is None else f"{row.score:.3f}"
        table.add_row(rank, plain(row.version), score, asr, str(row.races))
    return table
