"""Work that waits at the same time is done together: one round trip for many callers.

Who comes first is served at once. Who comes while that is under way waits, and is then done
together with everyone else who waits: under load the database sees fewer, larger calls, and
without load nobody waits for company.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Generic, TypeVar, cast

_T = TypeVar("_T")
_R = TypeVar("_R")


def _one(_item: object) -> int:
    return 1


class Gathering(Generic[_T, _R]):
    """Hands waiting items to `together`, in the order in which they came.

    `together` gives a result for each item, or the exception that its caller is to see; when
    it raises, every caller of that group sees it. At most `lanes` groups are under way at
    once, each of `most` in the sum of `weight`, or of one item that is heavier.
    """

    def __init__(
        self,
        together: Callable[[Sequence[_T]], Awaitable[Sequence[_R | Exception]]],
        *,
        most: int,
        lanes: int = 1,
        weight: Callable[[_T], int] = _one,
    ) -> None:
        self._together = together
        self._most = most
        self._lanes = lanes
        self._weight = weight
        self._waiting: deque[tuple[_T, asyncio.Future[_R]]] = deque()
        self._running: set[asyncio.Task[None]] = set()

    async def do(self, item: _T) -> _R:
        """The item's own result. Who stops waiting for it does not stop the work."""
        future: asyncio.Future[_R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if len(self._running) < self._lanes:
            # A context of its own: what is logged there belongs to no single request.
            task = asyncio.create_task(self._work(), context=Context())
            self._running.add(task)
        return await future

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._done(self._next())
        finally:
            # At once, and not by a callback of the task: whoever comes between its last look
            # at what waits and that callback would wait for nobody.
            self._running.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def _done(self, group: list[tuple[_T, asyncio.Future[_R]]]) -> None:
        try:
            results = await self._together([item for item, _ in group])
        except Exception as error:  # noqa: BLE001 - it is raised where each caller waits
            results = [error] * len(group)
        except BaseException:
            for _, future in group:
                future.cancel()
            raise
        for (_, future), result in zip(group, results, strict=True):
            if future.done():  # its caller has gone
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

    def _next(self) -> list[tuple[_T, asyncio.Future[_R]]]:
        group = [self._waiting.popleft()]
        load = self._weight(group[0][0])
        while self._waiting:
            load += self._weight(self._waiting[0][0])
            if load > self._most:
                break
            group.append(self._waiting.popleft())
        return group
