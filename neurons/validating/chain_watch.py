"""The chain as this validator last saw it; it may be away for as long as it likes.

Connections are opened when they are needed and given up after any failure, so that whatever
broke is opened anew. What was seen last stays, with its age.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import datetime
from typing import TypeVar

import structlog

from arena.exceptions import ArenaError, ChainRefusedError, ChainUnavailableError
from arena.runs.seal import BlockRef
from neurons.chain import Subnet, SubtensorChain, WeightsSet

_log = structlog.get_logger(__name__)

T = TypeVar("T")
OpenChain = Callable[[], AbstractAsyncContextManager[SubtensorChain]]


class ChainWatch:
    """Looks at the chain, and writes to it. Use it as `async with`; it connects by itself."""

    def __init__(
        self, open_chain: OpenChain, clock: Callable[[], datetime], *, timeout_s: float = 120.0
    ) -> None:
        self._open = open_chain
        self._clock = clock
        self._timeout_s = timeout_s
        self._stack: AsyncExitStack | None = None
        self._chain: SubtensorChain | None = None
        self._one = asyncio.Lock()
        self._away = False
        self._block: BlockRef | None = None
        self.subnet: Subnet | None = None
        """The metagraph as it was seen last."""
        self.seen_at: datetime | None = None

    async def __aenter__(self) -> ChainWatch:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    def block(self) -> BlockRef | None:
        """The last block known, for seals; None before the chain first answered."""
        return self._block

    def age_s(self) -> float | None:
        """How long ago the chain answered."""
        return None if self.seen_at is None else (self._clock() - self.seen_at).total_seconds()

    async def look(self) -> Subnet | None:
        """See the last block and the metagraph; None when the chain does not answer.

        Raises ChainRefusedError for what will not pass by itself: no such subnet.
        """
        try:
            block = await self._ask(lambda chain: chain.block())
            subnet = await self._ask(lambda chain: chain.subnet())
        except ChainUnavailableError as error:
            if not self._away:
                _log.warning("the chain is away", error=str(error), age_s=self.age_s())
            self._away = True
            return None
        if self._away:
            _log.info("the chain is back", block=block.ref.number)
        self._away = False
        self._block, self.subnet, self.seen_at = block.ref, subnet, self._clock()
        return subnet

    async def set_weights(self, vector: Mapping[int, int]) -> WeightsSet:
        """Raises ChainUnavailableError and ChainRefusedError."""
        return await self._ask(lambda chain: chain.set_weights(vector))

    async def _ask(self, call: Callable[[SubtensorChain], Awaitable[T]]) -> T:
        async with self._one:
            try:
                async with asyncio.timeout(self._timeout_s):
                    return await call(await self._connected())
            except ChainRefusedError:
                raise
            except (ArenaError, TimeoutError, OSError) as error:
                await self._close()
                raise ChainUnavailableError(str(error) or type(error).__name__) from error
            except Exception as error:
                await self._close()
                raise ChainUnavailableError(f"{type(error).__name__}: {error}") from error

    async def _connected(self) -> SubtensorChain:
        if self._chain is None:
            async with AsyncExitStack() as stack:
                chain = await stack.enter_async_context(self._open())
                self._stack, self._chain = stack.pop_all(), chain
        return self._chain

    async def _close(self) -> None:
        stack, self._stack, self._chain = self._stack, None, None
        if stack is None:
            return
        try:
            await stack.aclose()
        except Exception as error:  # noqa: BLE001 - it is broken, and given up
            _log.debug("a chain connection did not close", error=type(error).__name__)
