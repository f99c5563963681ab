"""The order in which things happened: prompts sent, completions answered, tools called.

A trace lists its events by their beginning or by their end. Credit needs both: a
completion's prompt counts when it is sent, its emissions when the answer is there.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

from sandbox.trace import LlmEvent, ToolEvent, Trace

CLOCK_SLACK_MS = 5.0
"""An answer may be in the agent's hands this long before the recorder notes its end."""


class Phase(IntEnum):
    """What happens at a moment, in the order in which ties are broken."""

    SENT = 0
    ANSWERED = 1
    CALLED = 2


class Moment(NamedTuple):
    """One thing that happened; sorts by time, then by the recorder's numbering."""

    at: float
    seq: int
    phase: Phase
    position: int
    event: LlmEvent | ToolEvent


def timeline(trace: Trace) -> list[Moment]:
    """All moments of a trace, in order. Times that are no numbers count as the beginning."""
    moments: list[Moment] = []
    for position, event in enumerate(trace.events):
        start = _finite(getattr(event, "started_ms", 0.0))
        if isinstance(event, LlmEvent):
            end = max(start, start + _finite(event.elapsed_ms) - CLOCK_SLACK_MS)
            moments.append(Moment(start, event.seq, Phase.SENT, position, event))
            moments.append(Moment(end, event.seq, Phase.ANSWERED, position, event))
        elif isinstance(event, ToolEvent):
            moments.append(Moment(start, event.seq, Phase.CALLED, position, event))
    return sorted(moments, key=lambda m: m[:4])


def _finite(value: object) -> float:
    ok = isinstance(value, int | float) and math.isfinite(value)
    return float(value) if ok else 0.0  # type: ignore[arg-type]
