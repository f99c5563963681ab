"""The chain as the arena sees it: the last block, and short public commitments.

A protocol: `neurons/chain.py` implements it over the Bittensor SDK, whose local chain
speaks the same wire. Nothing in this room imports the SDK for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from arena.runs.seal import BlockRef

COMMITMENT_BYTES = 128
"""The longest commitment that the chain's commitments pallet takes as raw bytes."""


@dataclass(frozen=True, slots=True)
class Block:
    """A finalised block. `at` is the chain's own time of it, in UTC."""

    ref: BlockRef
    at: datetime


@dataclass(frozen=True, slots=True)
class Commitment:
    """Bytes that a hotkey has put on chain, and the block since which they stand there."""

    address: str
    data: bytes
    block: int


class Chain(Protocol):
    """What the arena asks of a chain. Raises ChainUnavailableError when it does not answer,
    ChainRefusedError when it says no."""

    async def block(self) -> Block:
        """The last finalised block."""
        ...

    async def block_hash(self, number: int) -> str | None:
        """The hash of a block, 0x and lower-case hex; None when there is none yet."""
        ...

    async def commit(self, data: bytes) -> Commitment:
        """Put up to COMMITMENT_BYTES on chain under the caller's own hotkey."""
        ...

    async def committed(self, address: str) -> Commitment | None:
        """What stands there of this hotkey now; a later commitment replaces an earlier."""
        ...
