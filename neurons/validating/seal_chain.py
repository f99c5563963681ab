"""This hotkey's chain of seals, here and at the arena, compared before anything is sealed.

A machine that lost its ledger would begin again at number 1, and the arena would refuse every
record as a fork. It goes on behind what is known instead: the last seal that the arena has, or
a later one in a spool that was not sent yet. Both are this hotkey's own signatures, checked
before they are believed (`arena/runs/ledger.py` says why that is safe). What was sealed on the
lost disk and never sent is gone, and said.

Two machines with one hotkey are not told apart from one that lost its disk: both go on behind
the arena's head, and the slower one is refused as the fork that it is.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import structlog

from arena.client.exceptions import ArenaApiError
from arena.client.validator import StoredChain, ValidatorClient
from arena.exceptions import SealError, SpoolError
from arena.runs.frames import read_spool
from arena.runs.ledger import Head, Ledger
from arena.runs.seal import Sealed
from arena.runs.spool import FILE_NAME
from neurons.validating.exceptions import ChainForkedError

_log = structlog.get_logger(__name__)

_REMEDY = (
    "run one validator a hotkey; put the ledger directory back from its backup, or sign with"
    " another hotkey in a data directory of its own"
)


class SealChain:
    """Compares once; until then its gate is shut, so that nothing is claimed and sealed."""

    def __init__(self, client: ValidatorClient, ledger: Ledger, root: Path) -> None:
        """`root` has a directory with a spool for each evaluation."""
        self._client = client
        self._ledger = ledger
        self._root = root
        self._compared = False

    def gate(self) -> str | None:
        """Why no run is claimed yet."""
        if self._compared:
            return None
        return "the arena has not said yet how far it has this hotkey's chain of seals"

    async def tick(self) -> None:
        """Compare, if that is not done. Raises ChainForkedError, and SealError for a broken
        ledger. An arena that does not answer is asked again next time."""
        if self._compared:
            return
        head = await asyncio.to_thread(lambda: self._ledger.head)
        try:
            stored = await self._client.chain_head(head.sequence)
        except ArenaApiError as error:
            _log.warning("the chain of seals waits", code=error.code, error=str(error))
            return
        await asyncio.to_thread(self._follow, head, stored)
        self._compared = True

    def _follow(self, head: Head, stored: StoredChain) -> None:
        if head.sequence and stored.asked not in (None, head.hash):
            raise ChainForkedError(
                f"the chain of {self._ledger.signer.address} forks at number {head.sequence}:"
                f" {stored.asked} is in the arena, {head.hash} here",
                remedy=_REMEDY,
            )
        last = stored.last
        if last is not None:
            self._go_on(last, "the arena")
        known = last.seal.sequence if last is not None else 0
        if head.sequence == 0 or known > head.sequence:
            # Our own ledger is not to be relied on: what was sealed last may lie in a spool.
            self._follow_spools()
            self._say(head, known)

    def _follow_spools(self) -> None:
        for spool in sorted(self._root.glob(f"*/{FILE_NAME}")):
            last: Sealed | None = None
            try:
                for frame in read_spool(spool):
                    if frame.content.seal_line is not None:
                        sealed = frame.content.sealed.sealed
                        mine = sealed.seal.validator == self._ledger.signer.address
                        last = sealed if mine else last
            except (SpoolError, SealError) as error:
                _log.error("a spool cannot be read", spool=str(spool), error=str(error))
            if last is not None and last.seal.sequence > self._ledger.head.sequence:
                self._go_on(last, spool)

    def _go_on(self, sealed: Sealed, where: object) -> None:
        try:
            self._ledger.follow(sealed, where)
        except SealError as error:
            raise ChainForkedError(error.message, remedy=_REMEDY) from error

    def _say(self, before: Head, known: int) -> None:
        now = self._ledger.head.sequence
        if now == before.sequence:
            return
        _log.warning(
            "the ledger was lost or old: the chain of seals goes on; what was sealed and"
            " never sent is lost",
            hotkey=self._ledger.signer.address,
            here=before.sequence,
            arena=known,
            goes_on_after=now,
        )
