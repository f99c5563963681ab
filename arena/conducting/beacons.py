"""The values of beacons, when they are there: drand's over HTTPS, a block's hash, a stand-in's.

Nobody who hands a value over is believed: the draw checks drand's signature
(`arena.season.beacon.check_value`), and so does this before it takes a server's answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import httpx
import structlog

from arena.chain import Chain
from arena.exceptions import BeaconError, DrawError
from arena.season.beacon import (
    QUICKNET_CHAIN,
    BeaconValue,
    Source,
    Ticket,
    check_value,
    drand_value,
    quicknet_time,
    standin_value,
)

_log = structlog.get_logger(__name__)

TIMEOUT_S = 10.0
_LARGEST_ANSWER = 4_096


class Beacon(Protocol):
    """Gives the one value that a ticket names."""

    async def value(self, ticket: Ticket, closes_at: datetime, now: datetime) -> BeaconValue | None:
        """The value; None while it is not made. Raises BeaconError when it cannot be had."""
        ...


class Beacons:
    """The beacon of each source."""

    def __init__(
        self, servers: Sequence[str], standin_seed: str, chain: Chain | None = None
    ) -> None:
        self._servers = servers
        self._seed = standin_seed
        self._chain = chain

    async def value(self, ticket: Ticket, closes_at: datetime, now: datetime) -> BeaconValue | None:
        """As `Beacon.value`; also raises ChainUnavailableError."""
        if ticket.source is Source.CHAIN:
            return await self._block(ticket, closes_at, now)
        if now < quicknet_time(ticket.number):
            return None
        if ticket.source is Source.STANDIN:
            return standin_value(ticket.number, self._seed)
        return await self._round(ticket, closes_at)

    async def _block(
        self, ticket: Ticket, closes_at: datetime, now: datetime
    ) -> BeaconValue | None:
        if self._chain is None:
            raise BeaconError("the rules draw by a block's hash, and there is no chain")
        block = await self._chain.block()
        if block.ref.number < ticket.number:
            return None
        found = await self._chain.block_hash(ticket.number)
        if found is None:
            return None
        # When it was made the chain says of the last block alone: this is when it was read.
        return BeaconValue(Source.CHAIN, ticket.number, found.removeprefix("0x").lower(), now)

    async def _round(self, ticket: Ticket, closes_at: datetime) -> BeaconValue:
        """The round from the first server whose answer holds."""
        async with httpx.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False) as client:
            for server in self._servers:
                try:
                    value = await _ask(client, server, ticket.number)
                    check_value(ticket, value, closes_at)
                except (httpx.HTTPError, httpx.InvalidURL, ValueError, DrawError) as error:
                    _log.warning(
                        "a drand server gives no round",
                        server=server,
                        round=ticket.number,
                        error=f"{error!r:.200}",
                    )
                else:
                    return value
        raise BeaconError(
            f"no server gives drand's round {ticket.number}",
            remedy="name others: ARENA_CONDUCTOR_DRAND_SERVERS",
        )


async def _ask(client: httpx.AsyncClient, server: str, number: int) -> BeaconValue:
    """A round as a server has it (drand HTTP API). Raises httpx.HTTPError or ValueError."""
    url = f"{server}/{QUICKNET_CHAIN}/public/{number}"
    content = b""
    async with client.stream("GET", url) as response:
        response.raise_for_status()
        async for piece in response.aiter_bytes():
            content += piece
            if len(content) > _LARGEST_ANSWER:
                raise ValueError("an answer that is no round")
    answer = json.loads(content)
    if not isinstance(answer, dict) or answer.get("round") != number:
        raise ValueError("another round")
    return drand_value(number, str(answer.get("signature")))
