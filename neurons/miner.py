"""`python -m neurons.miner`: watch an agent's file, submit it when it may, tell how it fares."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from arena.settings import load_settings
from arena.submissions.miner_options import (
    Account,
    ArenaUrl,
    WalletHotkey,
    WalletName,
    WalletPath,
    account,
    open_client,
)
from neurons.exceptions import ArenaError, NotRegisteredError
from sandbox.terminal import console, one_line_errors, plain

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command()
def mine(
    agent: Annotated[
        Path, typer.Argument(metavar="FILE|DIR", help="The agent's file, or a folder of them.")
    ],
    name: Annotated[str | None, typer.Option(help="The agent's name; default: the file's.")] = None,
    artefact: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A model that validators serve with it.")
    ] = None,
    url: ArenaUrl = None,
    netuid: Annotated[int, typer.Option(min=0, help="The subnet.")] = 15,
    network: Annotated[
        str,
        typer.Option(
            "--subtensor.network",
            envvar="BT_NETWORK",
            help="finney, test, an address, or local-chain:FILE.",
        ),
    ] = "finney",
    wallet_name: WalletName = None,
    wallet_hotkey: WalletHotkey = None,
    wallet_path: WalletPath = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where it remembers what it submitted.")
    ] = None,
    every: Annotated[
        float, typer.Option(min=1, max=3_600, help="Seconds between two looks.")
    ] = 15.0,
    once: Annotated[
        bool, typer.Option("--once", help="Submit what may be submitted now, and end.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    """Submit a file whenever it changed and the cooldown is over, and follow how it fares.

    In a folder the newest Python file counts. Ctrl-C ends it; nothing is lost.

    Example: python -m neurons.miner my_agent.py --netuid 15 --subtensor.network test
    --wallet.name me --wallet.hotkey miner --arena.url https://arena.example
    """
    with one_line_errors(debug=lambda: debug):
        who = account(url, wallet_name, wallet_hotkey, wallet_path)
        root = (data_dir or load_settings().data_dir) / "miner"
        memory = root / f"{who.address}.json"
        try:
            asyncio.run(_mine(who, agent, memory, name, artefact, network, netuid, every, once))
        except KeyboardInterrupt:
            console.print("ended")


async def _mine(
    who: Account,
    agent: Path,
    memory: Path,
    name: str | None,
    artefact: Path | None,
    network: str,
    netuid: int,
    every: float,
    once: bool,
) -> None:
    from neurons.mining.watching import Watcher

    await check_registered(network, netuid, who.address)
    async with open_client(who) as client:
        watcher = Watcher(client, agent, memory, name=name, artefact=artefact)
        await watcher.look(datetime.now(UTC))
        # The second look finds the file as the first did, and submits.
        while not once:
            await asyncio.sleep(every)
            await watcher.look(datetime.now(UTC))
        await watcher.look(datetime.now(UTC))


async def check_registered(network: str, netuid: int, address: str) -> None:
    """One clear line for a hotkey that may not submit. Raises NotRegisteredError.

    A chain that does not answer is no reason to stay away: the arena knows who may.
    """
    from neurons.chain import open_chain  # seconds to import

    try:
        async with open_chain(network, netuid) as chain:
            subnet = await chain.subnet()
    except ArenaError as error:
        console.print(
            f"not checked on chain whether {address} is registered: {plain(error.message)}",
            soft_wrap=True,
        )
        return
    peer = subnet.peer(address)
    if peer is None:
        raise NotRegisteredError(
            f"hotkey {address} is not registered on subnet {netuid} of {network}",
            remedy=f"register it: btcli subnet register --netuid {netuid}",
        )
    console.print(f"registered as uid {peer.uid} on subnet {netuid}", soft_wrap=True)


if __name__ == "__main__":
    app()
