"""Try a problem again when it was not the agent's fault. Only the arena decides on retries."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

from arena.runs.agent import AgentFile
from arena.runs.execution import World, execute
from arena.runs.record import RunRecord
from arena.runs.sink import RecordSink
from scoring.types import Problem


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a problem is tried, and how long the pauses are between.

    The pause doubles each time. The worker waits: while a provider is down, a race
    slows down instead of using up every problem's attempts.
    """

    attempts: int = 3
    pause_s: float = 5.0
    longest_pause_s: float = 300.0

    def pause_after(self, tries: int) -> float:
        """Seconds to wait after `tries` attempts failed."""
        return min(self.pause_s * 2.0 ** (tries - 1), self.longest_pause_s)


async def run_until_closed(
    world: World,
    agent: AgentFile,
    problem: Problem,
    sink: RecordSink,
    *,
    policy: RetryPolicy,
    race_id: str | None = None,
    phase: str = "race",
    first_attempt: int = 1,
    slot: AbstractAsyncContextManager[object] | None = None,
) -> RunRecord:
    """Run until the problem has an outcome, or the policy's attempts are used up.

    Every attempt's record goes into `sink` before the next one begins. `slot` is held
    while sandboxes may run, and not while the closed run is judged. Returns the last
    record: open when nothing helped. Raises what the sink raises.
    """
    async with slot or nullcontext():
        for tries in range(1, policy.attempts + 1):
            record = await execute(
                world,
                agent,
                problem,
                race_id=race_id,
                phase=phase,
                attempt=first_attempt + tries - 1,
            )
            if record.closed:
                break
            await _put(sink, record)
            if tries == policy.attempts:
                return record
            await asyncio.sleep(policy.pause_after(tries))
    return await _judge_and_put(world, problem, sink, record)


async def _judge_and_put(
    world: World, problem: Problem, sink: RecordSink, record: RunRecord
) -> RunRecord:
    """A run that is finished stays so: interrupted while judged, it is kept unjudged."""
    if world.judge is not None:
        try:
            record = await world.judge.judged(record, problem.query)
        except asyncio.CancelledError:
            await _put(sink, record)
            raise
    await _put(sink, record)
    return record


async def _put(sink: RecordSink, record: RunRecord) -> None:
    await sink.put(await asyncio.to_thread(record.encode))
