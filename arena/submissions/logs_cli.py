"""`arena agent logs`: why a version's problems went as they did."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any
from uuid import UUID

import typer

from arena.runs.cli import app
from arena.submissions.logs_show import show_logs
from arena.submissions.miner_options import (
    Account,
    ArenaUrl,
    WalletHotkey,
    WalletName,
    WalletPath,
    account,
    open_client,
)
from arena.submissions.submit_cli import newest_version
from sandbox.terminal import JsonFile, write_json
from scoring.types import JsonObject


@app.command("logs")
def logs_command(
    version: Annotated[
        UUID | None, typer.Argument(help="The version; default: the newest one.")
    ] = None,
    problem: Annotated[UUID | None, typer.Option(metavar="ID", help="One problem alone.")] = None,
    url: ArenaUrl = None,
    wallet_name: WalletName = None,
    wallet_hotkey: WalletHotkey = None,
    wallet_path: WalletPath = None,
    json: JsonFile = None,
) -> None:
    """Show, for each problem of an evaluation that is over, what failed, what the judge said and
    the end of your agent's log.

    Of problems that are still raced only codes and numbers are told: what an agent printed may
    be their text. It is told once they are open or retired.

    Example: arena agent logs --problem 9b1f… --arena.url https://arena.example --wallet.name me
    """
    who = account(url, wallet_name, wallet_hotkey, wallet_path)
    found = asyncio.run(_logs(who, version, problem))
    show_logs(found["logs"])  # type: ignore[arg-type]
    write_json(found, json)


async def _logs(who: Account, version: UUID | None, problem: UUID | None) -> JsonObject:
    async with open_client(who) as client:
        version = version or await newest_version(client)
        logs: Any = await client.logs(version, problem)
    return {"agent_version_id": str(version), "logs": logs}
