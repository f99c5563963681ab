"""A validator as a process of its own, for tests that kill it.

    python -m tests.integration.work_claimer URL VALIDATOR work|claim|complete

`work` claims, counts and completes until nothing is open, a line of output for each step.
`claim` and `complete` do all of one claim or one completion but its commit, say so, and wait
to be killed.
"""

from __future__ import annotations

import asyncio
import sys

from sqlalchemy.ext.asyncio import AsyncEngine

from arena.work import claiming, ending
from arena.work.types import Lease
from tests.unit.arena.work.desk import LEASE, POLICY, SUCCESS, Desk, application


async def work(desk: Desk, validator: str) -> None:
    """What a validator does, from a start on which it works on nothing."""
    while await desk.queue.open_evaluations():
        lease = await desk.claim(validator, capacity=1, working=())
        if lease is None:
            continue
        _say(f"claimed {lease.run_id}")
        for problem in lease.evaluation.problems:
            _say(f"counted {problem} {await desk.count(lease, problem)}")
        _say(f"ended {(await desk.end(lease, SUCCESS)).run.state}")


async def stop_in_a_claim(engine: AsyncEngine, desk: Desk, validator: str) -> None:
    """All of a claim but the commit."""
    async with engine.begin() as connection:
        lease = await claiming.claim(
            connection,
            validator,
            capacity=1,
            now=desk.now,
            lease=LEASE,
            policy=POLICY,
            working=None,
        )
        assert lease is not None
        await _wait_for_death()


async def stop_in_a_completion(engine: AsyncEngine, desk: Desk, validator: str) -> None:
    """All of a completion but the commit."""
    lease: Lease = await desk.claimed(validator)
    await desk.count_all(lease)
    async with engine.begin() as connection:
        done = await ending.complete(connection, lease.run_id, validator, SUCCESS, desk.now, POLICY)
        assert done.run.finishes
        await _wait_for_death()


async def _wait_for_death() -> None:
    _say("waiting")
    await asyncio.Event().wait()


def _say(line: str) -> None:
    print(line, flush=True)


async def main(url: str, validator: str, mode: str) -> None:
    """See the module."""
    engine = application(url)
    desk = Desk(engine, salt="claimers")
    if mode == "claim":
        await stop_in_a_claim(engine, desk, validator)
    elif mode == "complete":
        await stop_in_a_completion(engine, desk, validator)
    else:
        await work(desk, validator)
    await engine.dispose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
