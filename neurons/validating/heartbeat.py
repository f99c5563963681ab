"""Signs of life of the runs in hand, from a thread of its own: no work ever holds them up.

A heartbeat that is not answered means nothing but that: work goes on, its records are safe on
disk. Only the arena's own word ends a run, and then at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Final
from uuid import UUID

import structlog

from arena.client.exceptions import ArenaApiError, RefusedError
from arena.client.validator import HostLoad, ValidatorClient

_log = structlog.get_logger(__name__)

COMPLETE: Final = "RUN_ALREADY_COMPLETE"
LOST: Final = frozenset({"LEASE_EXPIRED", "NOT_RUN_OWNER", "EVAL_RUN_NOT_FOUND", COMPLETE})
"""What the arena says of a run that is not ours any more."""
Lost = Callable[[RefusedError], None]
"""Hears once that a run is lost; called from the heartbeat's thread."""
_JOIN_S: Final = 10.0


class Heart:
    """The runs in hand and their heartbeats. Holding and releasing is for any thread."""

    def __init__(
        self,
        *,
        host: Callable[[], HostLoad | None] = lambda: None,
        beaten: Callable[[UUID, datetime], None] = lambda run, until: None,
    ) -> None:
        """`beaten` hears of every answer: until when a run is held."""
        self._host = host
        self._beaten = beaten
        self._lock = threading.Lock()
        self._runs: dict[UUID, Lost] = {}

    @property
    def held(self) -> list[UUID]:
        """The runs in hand."""
        with self._lock:
            return list(self._runs)

    def hold(self, run: UUID, lost: Lost) -> None:
        """Begin to speak for a run."""
        with self._lock:
            self._runs[run] = lost

    def release(self, run: UUID) -> None:
        """Speak for it no more."""
        with self._lock:
            self._runs.pop(run, None)

    async def beat(self, client: ValidatorClient) -> None:
        """One sign of life for each run. Raises nothing."""
        for run in self.held:
            try:
                self._beaten(run, await client.heartbeat(run, self._host()))
            except RefusedError as error:
                if error.error_code in LOST:
                    self._lose(run, error)
                else:
                    _log.warning(
                        "heartbeat refused", run=str(run), code=error.code, error=str(error)
                    )
            except ArenaApiError as error:
                _log.debug("heartbeat unanswered", run=str(run), code=error.code)

    def _lose(self, run: UUID, error: RefusedError) -> None:
        with self._lock:
            lost = self._runs.pop(run, None)
        if lost is not None:
            lost(error)


class HeartThread:
    """A heart that beats every so many seconds in a thread with its own event loop."""

    def __init__(
        self,
        heart: Heart,
        open_client: Callable[[], AbstractAsyncContextManager[ValidatorClient]],
        every_s: float,
    ) -> None:
        self._heart = heart
        self._open = open_client
        self._every_s = every_s
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._main, name="heartbeat", daemon=True)

    def __enter__(self) -> HeartThread:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_JOIN_S)

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def _main(self) -> None:
        asyncio.run(self._beat())

    async def _beat(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        async with self._open() as client:
            while not self._stop.is_set():
                try:
                    await self._heart.beat(client)
                except Exception:  # noqa: BLE001 - a heart that stops costs every run
                    _log.exception("a heartbeat failed")
                try:
                    async with asyncio.timeout(self._every_s):
                        await self._stop.wait()
                except TimeoutError:
                    continue
