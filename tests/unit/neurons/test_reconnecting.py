"""The serving process connects to the chain when it asks it, and anew after a failure."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from arena.exceptions import ChainRefusedError, ChainUnavailableError
from neurons.chain import SubtensorChain
from neurons.reconnecting import ReconnectingChain
from tests.unit.neurons.chain.local import Network, network


class Line:
    """A connection that can be cut, and how often it was made."""

    def __init__(self, net: Network) -> None:
        self.net = net
        self.up = True
        self.opened = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[SubtensorChain]:
        if not self.up:
            raise ConnectionRefusedError("down")
        self.opened += 1
        yield self.net.chain("Alice")


async def test_it_connects_when_asked_and_again_after_a_failure(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        line = Line(net)
        line.up = False
        async with ReconnectingChain(line.open) as chain:
            with pytest.raises(ChainUnavailableError):
                await chain.subnet()
            line.up = True
            await net.register("Alice")
            assert len((await chain.subnet()).peers) == 1
            assert (await chain.block()).ref.number >= 1
            assert line.opened == 1
            net.ledger.close()  # whatever breaks below is an outage
            with pytest.raises(ChainUnavailableError):
                await chain.block_hash(1)
            with pytest.raises(ChainUnavailableError):
                await chain.block_hash(1)
            assert line.opened == 2


async def test_what_the_chain_refuses_is_no_outage(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        line = Line(net)
        async with ReconnectingChain(line.open) as chain:
            for _ in range(2):
                with pytest.raises(ChainRefusedError):
                    await chain.commit(b"root")  # not registered
            await net.register("Alice")
            found = await chain.commit(b"root")
            assert await chain.committed(found.address) == found
            assert line.opened == 1
