"""What earlier runs left: records that the arena lacks are sent, old directories removed.

A run that was lost, given up or killed keeps its records. They are sent even when they count
no more, so that this hotkey's chain of seals has no hole.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Collection
from pathlib import Path
from uuid import UUID

import structlog

from arena.client.backoff import ONCE
from arena.client.exceptions import ArenaApiError
from arena.client.validator import ValidatorClient
from arena.exceptions import SpoolError
from neurons.validating.metrics import Metrics
from neurons.validating.sending import STATE_FILE, Sender, is_sent

_log = structlog.get_logger(__name__)


class Backlog:
    """The directories of evaluations that are not in hand. `in_hand` names those that are."""

    def __init__(
        self,
        client: ValidatorClient,
        root: Path,
        in_hand: Callable[[], Collection[UUID]],
        metrics: Metrics,
        *,
        keep_s: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Directories are removed `keep_s` seconds after the arena had all of them."""
        self._client = client
        self._root = root
        self._in_hand = in_hand
        self._metrics = metrics
        self._keep_s = keep_s
        self._now = now
        self._damaged: set[Path] = set()

    async def tick(self) -> int:
        """Go through all of them once; how many the arena has not wholly.

        Raises ChainForkedError. An arena that does not answer is met again next time.
        """
        waiting = 0
        for directory in await asyncio.to_thread(self._directories):
            try:
                if not await asyncio.to_thread(is_sent, directory):
                    waiting += not await self._send(directory)
                elif self._is_old(directory):
                    await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)
                    _log.info("directory removed", evaluation=directory.name)
            except SpoolError as error:
                self._say_damaged(directory, error)
        self._metrics.waiting.set(waiting)
        return waiting

    async def _send(self, directory: Path) -> bool:
        """Whether the arena has all of it now."""
        if self._is_in_hand(directory):
            return False
        try:
            await Sender(self._client, directory, backoff=ONCE).send_all()
        except ArenaApiError as error:
            _log.debug("records wait", evaluation=directory.name, code=error.code)
            return False
        return True

    def _is_in_hand(self, directory: Path) -> bool:
        return directory.name in {str(evaluation) for evaluation in self._in_hand()}

    def _directories(self) -> list[Path]:
        found = []
        for path in sorted(self._root.iterdir()):
            try:
                UUID(path.name)
            except ValueError:
                continue
            if path.is_dir() and not self._is_in_hand(path) and path not in self._damaged:
                found.append(path)
        return found

    def _is_old(self, directory: Path) -> bool:
        if self._is_in_hand(directory):
            return False
        marks = [directory / STATE_FILE, directory]
        try:
            changed = next(path.stat().st_mtime for path in marks if path.exists())
        except (OSError, StopIteration):
            return False
        return self._now() - changed > self._keep_s

    def _say_damaged(self, directory: Path, error: SpoolError) -> None:
        self._damaged.add(directory)
        _log.error("a spool cannot be read", evaluation=directory.name, error=str(error))
