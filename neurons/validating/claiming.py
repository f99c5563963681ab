"""The loop: claim while there is room and no gate is shut, and see every run to its end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any
from uuid import UUID

import structlog

from arena.client.backoff import Backoff
from arena.client.exceptions import ArenaApiError, RefusedError
from arena.client.validator import Claim, HostLoad
from neurons.validating.evaluation import Ending, Evaluation, Stop, Workshop
from neurons.validating.exceptions import ChainForkedError
from neurons.validating.gates import Gates

_log = structlog.get_logger(__name__)


class Claimed(StrEnum):
    """What came of one look for work."""

    WORK = "work"
    NOTHING = "nothing"
    SHUT = "shut"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


class Claiming:
    """Claims and runs. `poll_s` is the pause after the arena had nothing, ± 20 %."""

    def __init__(
        self,
        shop: Workshop,
        gates: Gates,
        *,
        evaluations: int,
        poll_s: float,
        host: Callable[[], HostLoad | None] = lambda: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self._shop = shop
        self._gates = gates
        self._most = evaluations
        self._poll = Backoff(first_s=poll_s, longest_s=poll_s)
        self._host = host
        self._sleep = sleep
        self._rng = rng or random.Random()  # noqa: S311 - spreads claims, hides nothing
        self._hands: dict[asyncio.Task[Ending], Evaluation] = {}
        self._drained = asyncio.Event()
        self._failures = 0
        self._given_up = 0
        self._said: str | None = None

    @property
    def in_hand(self) -> list[UUID]:
        """The evaluations that are worked on."""
        return [one.claim.evaluation_id for one in self._hands.values()]

    @property
    def shut(self) -> dict[str, str]:
        """Why nothing is claimed, by gate."""
        return self._gates.shut

    def drain(self) -> None:
        """Claim nothing more; what is in hand goes on."""
        self._drained.set()

    def stop(self, how: Stop) -> None:
        """Claim nothing more, and stop what is in hand."""
        self._drained.set()
        for one in self._hands.values():
            one.stop(how)

    async def run(self) -> None:
        """Until drained, and then until the last run in hand has ended.

        Raises ChainForkedError. Cancelled, it kills what is in hand first.
        """
        try:
            while not self._drained.is_set():
                await self._step()
            while self._hands:
                await asyncio.wait(self._hands, return_when=asyncio.FIRST_COMPLETED)
                self._reap()
        finally:
            for task in self._hands:
                task.cancel()
            if self._hands:
                await asyncio.wait(self._hands)

    async def _step(self) -> None:
        if len(self._hands) >= self._most:
            await self._wait(None)
            return
        if self._given_up:  # what is wrong here would be wrong with the next run, too
            await self._wait(self._shop.backoff.delay(self._given_up, self._rng))
            if self._drained.is_set():
                return
        claimed = await self.claim()
        self._shop.metrics.claims.labels(claimed.value).inc()
        if claimed is Claimed.WORK:
            self._failures = 0
        elif claimed in (Claimed.REFUSED, Claimed.UNREACHABLE):
            self._failures += 1
            await self._wait(self._shop.backoff.delay(self._failures, self._rng))
        else:
            self._failures = 0
            await self._wait(self._poll.delay(1, self._rng))

    async def claim(self) -> Claimed:
        """Look for work once, and begin what there is."""
        if not self._gates.look():
            return Claimed.SHUT
        working = [one.claim.run_id for one in self._hands.values()]
        try:
            claim = await self._shop.client.claim(working, self._host())
        except RefusedError as error:
            if error.error_code == "AT_CAPACITY":
                return Claimed.NOTHING
            self._say(f"{error.code}", "claim refused", str(error))
            return Claimed.REFUSED
        except ArenaApiError as error:
            self._say(error.code, "the arena is away", str(error))
            return Claimed.UNREACHABLE
        if self._said is not None:
            _log.info("the arena answers again")
            self._said = None
        if claim is None:
            return Claimed.NOTHING
        # One whose lease was lost and that is ours again: first the one in hand has to hear it.
        if claim.evaluation_id in self.in_hand:
            return Claimed.NOTHING
        self._begin(claim)
        return Claimed.WORK

    def _begin(self, claim: Claim) -> None:
        evaluation = Evaluation(self._shop, claim)
        task = asyncio.create_task(evaluation.run(), name=f"evaluation {claim.evaluation_id}")
        self._hands[task] = evaluation
        self._shop.metrics.in_hand.set(len(self._hands))

    async def _wait(self, timeout_s: float | None) -> None:
        """For a run to end, for the pause to be over, or to be drained."""
        others: list[asyncio.Future[bool]] = [asyncio.ensure_future(self._drained.wait())]
        if timeout_s is not None:
            others.append(asyncio.ensure_future(_slept(self._sleep, timeout_s)))
        try:
            ways: set[asyncio.Future[Any]] = {*self._hands, *others}
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for other in others:
                other.cancel()
        self._reap()

    def _reap(self) -> None:
        """Forget the runs that have ended. Raises ChainForkedError."""
        for task in [task for task in self._hands if task.done()]:
            del self._hands[task]
            self._shop.metrics.in_hand.set(len(self._hands))
            try:
                ending = task.result()
            except ChainForkedError:
                raise
            except Exception:  # noqa: BLE001 - a bug in one run's end is not the others'
                _log.exception("a run ended unexpectedly")
                ending = Ending.FAILED
            if ending is Ending.FAILED:
                self._given_up += 1
            elif ending is Ending.SUCCESS:
                self._given_up = 0

    def _say(self, code: str, event: str, error: str) -> None:
        """Once, and not at every try."""
        if code != self._said:
            self._said = code
            _log.warning(event, code=code, error=error)


async def _slept(sleep: Callable[[float], Awaitable[None]], seconds: float) -> bool:
    await sleep(seconds)
    return True
