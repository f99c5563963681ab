"""Who is registered, who validates and with how much at stake: the last metagraph seen.

Requests never wait for the chain. A task reads the metagraph again and again; when the
chain does not answer, the last one is served for a bounded time, and `/health/deep` says how
old it is. After that every signed request is answered 503: a hotkey that was thrown out must
not go on for ever because the chain is down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from arena.api.errors import unavailable
from arena.exceptions import ArenaError

_log = structlog.get_logger(__name__)

RAO_PER_TAO = 1_000_000_000


class Peer(Protocol):
    """A neuron of the subnet. `stake` is in rao."""

    @property
    def uid(self) -> int: ...  # noqa: D102
    @property
    def hotkey(self) -> str: ...  # noqa: D102
    @property
    def permit(self) -> bool: ...  # noqa: D102
    @property
    def stake(self) -> int: ...  # noqa: D102


class Subnet(Protocol):
    """The metagraph at a block, as `neurons.chain` reads it."""

    @property
    def netuid(self) -> int: ...  # noqa: D102
    @property
    def block(self) -> int: ...  # noqa: D102
    @property
    def tempo(self) -> int: ...  # noqa: D102
    @property
    def peers(self) -> Sequence[Peer]: ...  # noqa: D102


ReadSubnet = Callable[[], Awaitable[Subnet]]


@dataclass(frozen=True, slots=True)
class Metagraph:
    """A metagraph, and when it was read."""

    netuid: int
    block: int
    tempo: int
    peers: Mapping[str, Peer]
    """By hotkey."""
    read_at: datetime

    @property
    def epoch(self) -> int:
        """The subnet's epoch, as the chain counts them (subtensor, `blocks_until_next_epoch`):
        one every tempo + 1 blocks, shifted by the netuid."""
        return (self.block + self.netuid + 1) // (self.tempo + 1)

    @property
    def epoch_start(self) -> int:
        """The block that the epoch began with: it names an epoch for good, while the numbers of
        epochs go back when the subnet's tempo is raised."""
        return self.epoch * (self.tempo + 1) - self.netuid - 1


class MetagraphCache:
    """The last metagraph. `run` keeps it fresh; `current` reads it without waiting."""

    def __init__(
        self,
        read: ReadSubnet,
        clock: Callable[[], datetime],
        *,
        refresh_s: float,
        max_age_s: float,
    ) -> None:
        self._read = read
        self._clock = clock
        self._refresh_s = refresh_s
        self._max_age = timedelta(seconds=max_age_s)
        self._last: Metagraph | None = None
        self.failed: str | None = None
        """Why the last reading failed; None when it did not."""

    async def refresh(self) -> bool:
        """Read it now; whether that succeeded. The one before stays when it did not."""
        try:
            subnet = await self._read()
        except (ArenaError, OSError, TimeoutError) as error:
            code = error.code if isinstance(error, ArenaError) else type(error).__name__
            if self.failed is None:
                _log.warning("the chain does not answer", code=code)
            self.failed = code
            return False
        if self.failed is not None:
            _log.info("the chain answers again", block=subnet.block)
        self.failed = None
        peers = {peer.hotkey: peer for peer in subnet.peers}
        self._last = Metagraph(subnet.netuid, subnet.block, subnet.tempo, peers, self._clock())
        return True

    async def run(self) -> None:
        """Read it again and again, until cancelled; the first time after a while."""
        while True:
            await asyncio.sleep(self._refresh_s)
            await self.refresh()

    @property
    def last(self) -> Metagraph | None:
        """The last one, however old."""
        return self._last

    def age_s(self) -> float | None:
        """How old the last one is, in seconds; None before the first."""
        return None if self._last is None else (self._clock() - self._last.read_at).total_seconds()

    def current(self) -> Metagraph:
        """The last one. Raises Refusal (503) when there is none, or only one that is too old."""
        if self._last is None:
            raise unavailable("the chain has not answered yet; try again")
        if self._clock() - self._last.read_at > self._max_age:
            raise unavailable("the chain has not answered for too long; try again")
        return self._last
