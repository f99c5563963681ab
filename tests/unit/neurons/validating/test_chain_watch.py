"""What was seen of the chain last stays, with its age."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from arena.exceptions import ChainRefusedError, ChainUnavailableError
from neurons.chain import SubtensorChain
from neurons.validating.chain_watch import ChainWatch
from tests.unit.neurons.chain.local import network
from tests.unit.neurons.validating.wire import Time


async def test_before_the_chain_answers_nothing_is_known() -> None:
    @asynccontextmanager
    async def away() -> AsyncIterator[SubtensorChain]:
        raise ChainUnavailableError("no route")
        yield

    watch = ChainWatch(away, Time())
    assert await watch.look() is None
    assert (watch.block(), watch.age_s(), watch.subnet) == (None, None, None)


async def test_the_last_block_stays_while_the_chain_is_away(tmp_path: Path) -> None:
    time, down = Time(), False
    async with network(tmp_path) as net:

        @asynccontextmanager
        async def opened() -> AsyncIterator[SubtensorChain]:
            if down:
                raise OSError("no route")
            yield net.chain()

        watch = ChainWatch(opened, time)
        net.clock.blocks(5)
        assert await watch.look() is not None
        seen = watch.block()
        assert seen is not None
        assert seen == (await net.chain().block()).ref
        await watch.__aexit__()
        down, time.now = True, time.now + timedelta(minutes=7)
        net.clock.blocks(5)
        assert await watch.look() is None
        assert watch.block() == seen
        assert watch.age_s() == 420
        down = False
        assert await watch.look() is not None
        assert watch.block() != seen
        assert watch.age_s() == 0


async def test_a_subnet_that_is_not_there_is_no_outage(tmp_path: Path) -> None:
    async with network(tmp_path) as net:

        @asynccontextmanager
        async def opened() -> AsyncIterator[SubtensorChain]:
            yield SubtensorChain(net.client, 99)

        with pytest.raises(ChainRefusedError, match="99"):
            await ChainWatch(opened, Time()).look()
