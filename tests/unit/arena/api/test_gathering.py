"""Who waits together is served together, and everyone has an answer of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from arena.api.gathering import Gathering


class Slow:
    """Work that begins at once and ends when it is let go."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.gate = asyncio.Event()
        self.broken: Exception | None = None

    async def together(self, items: Sequence[int]) -> list[int | Exception]:
        self.groups.append(list(items))
        await self.gate.wait()
        if self.broken is not None:
            raise self.broken
        return [ValueError(item) if item < 0 else item * 10 for item in items]


async def _asked(gathering: Gathering[int, int], items: Sequence[int]) -> list[asyncio.Task[int]]:
    tasks = [asyncio.create_task(gathering.do(item)) for item in items]
    for _ in range(5):  # everyone asks, and the lanes begin
        await asyncio.sleep(0)
    return tasks


async def test_the_first_is_served_at_once_and_who_waits_is_served_together() -> None:
    slow = Slow()
    gathering = Gathering(slow.together, most=10)
    tasks = await _asked(gathering, [1])
    tasks += await _asked(gathering, [2, 3, 4])
    assert slow.groups == [[1]]
    slow.gate.set()
    assert await asyncio.gather(*tasks) == [10, 20, 30, 40]
    assert slow.groups == [[1], [2, 3, 4]]


async def test_a_group_has_its_bound_and_one_heavy_item_goes_alone() -> None:
    slow = Slow()
    gathering = Gathering(slow.together, most=5, weight=lambda item: item)
    tasks = await _asked(gathering, [1, 2, 3, 9, 1, 1])
    slow.gate.set()
    assert await asyncio.gather(*tasks) == [10, 20, 30, 90, 10, 10]
    assert slow.groups == [[1, 2], [3], [9], [1, 1]]


async def test_lanes_work_side_by_side() -> None:
    slow = Slow()
    gathering = Gathering(slow.together, most=10, lanes=2)
    first = await _asked(gathering, [1])
    second = await _asked(gathering, [2])
    third = await _asked(gathering, [3])
    assert slow.groups == [[1], [2]]
    slow.gate.set()
    assert await asyncio.gather(*first, *second, *third) == [10, 20, 30]


async def test_one_that_fails_fails_alone() -> None:
    slow = Slow()
    slow.gate.set()
    tasks = await _asked(Gathering(slow.together, most=10), [1, -2, 3])
    told = await asyncio.gather(*tasks, return_exceptions=True)
    assert (told[0], told[2]) == (10, 30)
    assert isinstance(told[1], ValueError)


async def test_what_breaks_the_group_is_told_to_all_and_the_next_group_goes_on() -> None:
    slow = Slow()
    slow.gate.set()
    slow.broken = OSError("away")
    gathering = Gathering(slow.together, most=10)
    told = await asyncio.gather(*(await _asked(gathering, [1, 2])), return_exceptions=True)
    assert [type(answer) for answer in told] == [OSError, OSError]
    slow.broken = None
    assert await gathering.do(3) == 30


async def test_who_leaves_takes_nobody_along() -> None:
    slow = Slow()
    tasks = await _asked(Gathering(slow.together, most=10), [1, 2])
    tasks[0].cancel()
    slow.gate.set()
    assert await tasks[1] == 20
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]


async def test_who_comes_the_moment_that_a_group_is_done_is_served() -> None:
    async def together(items: Sequence[int]) -> list[int]:
        return list(items)

    gathering = Gathering(together, most=8)
    async with asyncio.timeout(5):  # it waited for ever
        assert [await gathering.do(number) for number in range(50)] == list(range(50))
