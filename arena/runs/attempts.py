"""Try a problem again when it was not the agent's fault. Only the arena decides on retries."""

from __future__ import annotations

import asyncio
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
) -> RunRecord:
    """Run until the problem has an outcome, or the policy's attempts are used up.

    Every attempt's record goes into `sink` before the next one begins. Returns the last
    one: open when nothing helped. Raises what the sink raises.
    """
    for tries in range(1, policy.attempts + 1):
        record = await execute(
            world,
            agent,
            problem,
            race_id=race_id,
            phase=phase,
            attempt=first_attempt + tries - 1,
        )
        await sink.put(await asyncio.to_thread(record.encode))
        if record.closed or tries == policy.attempts:
            break
        await asyncio.sleep(policy.pause_after(tries))
    return record
