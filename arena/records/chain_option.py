"""`--chain` of the commands that ask one: who opens it is told from above this room."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, cast

import typer

from arena.chain import Chain
from arena.exceptions import SettingsError
from arena.runs.signing import Signer

OpenChain = Callable[[str, int, Signer | None], AbstractAsyncContextManager[Chain]]
"""Opens a chain by the network's name and the subnet, to write with the signer's key."""

SN15 = 15
"""The subnet of the public network."""
ChainName = Annotated[
    str | None,
    typer.Option(
        "--chain", help="Network of the log's commitments: finney, an address, local-chain:FILE."
    ),
]
Netuid = Annotated[int, typer.Option(min=0, help="Subnet of the commitments.")]


@asynccontextmanager
async def opened_chain(
    ctx: typer.Context, network: str | None, netuid: int, signer: Signer | None = None
) -> AsyncIterator[Chain | None]:
    """The chain that was asked for; None when none was.

    Raises SettingsError where nothing opens chains, and what the chain raises.
    """
    if network is None:
        yield None
        return
    opener = cast("OpenChain | None", (ctx.obj or {}).get("open_chain"))
    if opener is None:
        raise SettingsError("no chain can be opened here", remedy="use the `arena` command")
    async with opener(network, netuid, signer) as chain:
        yield chain
