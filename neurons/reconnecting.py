"""A chain that may be away: connected when it is first asked, anew after any failure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TypeVar

import structlog

from arena.chain import Block, Commitment
from arena.exceptions import ArenaError, ChainRefusedError, ChainUnavailableError
from neurons.chain import Subnet, SubtensorChain, WeightsSet

_log = structlog.get_logger(__name__)
T = TypeVar("T")

TIMEOUT_S = 60.0
OpenChain = Callable[[], AbstractAsyncContextManager[SubtensorChain]]


class ReconnectingChain:
    """Implements `arena.conducting.parts.ArenaChain`. Arenas and validators start and go on
    without a chain; each call raises ChainUnavailableError while it is away, and
    ChainRefusedError for what will not pass by itself."""

    def __init__(self, open_chain: OpenChain, timeout_s: float = TIMEOUT_S) -> None:
        self._open = open_chain
        self._timeout_s = timeout_s
        self._stack: AsyncExitStack | None = None
        self._chain: SubtensorChain | None = None
        self._one = asyncio.Lock()

    async def __aenter__(self) -> ReconnectingChain:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def subnet(self) -> Subnet:
        """The metagraph now."""
        return await self._ask(lambda chain: chain.subnet())

    async def block(self) -> Block:
        """As `Chain.block`."""
        return await self._ask(lambda chain: chain.block())

    async def block_hash(self, number: int) -> str | None:
        """As `Chain.block_hash`."""
        return await self._ask(lambda chain: chain.block_hash(number))

    async def commit(self, data: bytes) -> Commitment:
        """As `Chain.commit`."""
        return await self._ask(lambda chain: chain.commit(data))

    async def committed(self, address: str) -> Commitment | None:
        """As `Chain.committed`."""
        return await self._ask(lambda chain: chain.committed(address))

    async def set_weights(self, vector: Mapping[int, int]) -> WeightsSet:
        """As `SubtensorChain.set_weights`."""
        return await self._ask(lambda chain: chain.set_weights(vector))

    async def _ask(self, call: Callable[[SubtensorChain], Awaitable[T]]) -> T:
        async with self._one:
            try:
                async with asyncio.timeout(self._timeout_s):
                    return await call(await self._connected())
            except ChainRefusedError:
                raise
            except (ArenaError, OSError, TimeoutError) as error:
                await self.close()
                why = str(error) or type(error).__name__
                raise ChainUnavailableError(f"the chain does not answer: {why}") from error
            except Exception as error:
                # Whatever the SDK did not foresee of a broken connection.
                await self.close()
                raise ChainUnavailableError(
                    f"the chain does not answer: {type(error).__name__}: {error!s:.200}"
                ) from error

    async def _connected(self) -> SubtensorChain:
        if self._chain is None:
            async with AsyncExitStack() as stack:
                chain = await stack.enter_async_context(self._open())
                self._stack, self._chain = stack.pop_all(), chain
        return self._chain

    async def close(self) -> None:
        """Give the connection up; the next call opens another."""
        stack, self._stack, self._chain = self._stack, None, None
        if stack is None:
            return
        try:
            await stack.aclose()
        except Exception as error:  # noqa: BLE001 - it is broken, and given up
            _log.debug("a chain connection did not close", error=type(error).__name__)
