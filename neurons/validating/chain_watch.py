"""The chain as this validator last saw it; it may be away for as long as it likes.

What was seen last stays, with its age.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

import structlog

from arena.exceptions import ChainUnavailableError
from arena.runs.seal import BlockRef
from neurons.chain import Subnet, WeightsSet
from neurons.reconnecting import OpenChain, ReconnectingChain

_log = structlog.get_logger(__name__)


class ChainWatch:
    """Looks at the chain, and writes to it. Use it as `async with`; it connects by itself."""

    def __init__(
        self, open_chain: OpenChain, clock: Callable[[], datetime], *, timeout_s: float = 120.0
    ) -> None:
        self._chain = ReconnectingChain(open_chain, timeout_s)
        self._clock = clock
        self._away = False
        self._block: BlockRef | None = None
        self.subnet: Subnet | None = None
        """The metagraph as it was seen last."""
        self.seen_at: datetime | None = None

    async def __aenter__(self) -> ChainWatch:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._chain.close()

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
            block = await self._chain.block()
            subnet = await self._chain.subnet()
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
        return await self._chain.set_weights(vector)
