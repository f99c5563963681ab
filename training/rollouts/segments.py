"""The turns of a rollout as sequences to learn from: ids, log-probabilities, what was sampled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from training.types import Segment, Turn

NO_TURN: Final = -1


def segments_of(turns: Sequence[Turn]) -> tuple[Segment, ...]:
    """As few sequences as hold every turn with the very prompt that it was sampled after.

    A turn whose prompt begins with all of the sequence before it, to the token, extends it;
    what stands between is observation and scaffold. Any other begins a new sequence. Turns
    without a token are left out.
    """
    found: list[_Growing] = []
    for index, turn in enumerate(turns):
        if not turn.completion_ids:
            continue
        if not found or not found[-1].takes(turn, index):
            found.append(_Growing(turn, index))
    return tuple(growing.segment() for growing in found)


class _Growing:
    """A sequence that turns are added to."""

    def __init__(self, turn: Turn, index: int) -> None:
        self._ids: list[int] = []
        self._logprobs: list[float] = []
        self._turn_of: list[int] = []
        self._first = index
        self._last = index
        self._add(turn, index)

    def takes(self, turn: Turn, index: int) -> bool:
        """Add a turn that goes on from here to the token; whether it does."""
        held = len(self._ids)
        if turn.prompt_ids[:held] != tuple(self._ids):
            return False
        self._add(turn, index)
        self._last = index
        return True

    def _add(self, turn: Turn, index: int) -> None:
        given = turn.prompt_ids[len(self._ids) :]
        self._ids += [*given, *turn.completion_ids]
        self._logprobs += [*(0.0 for _ in given), *turn.logprobs]
        self._turn_of += [NO_TURN] * len(given) + [index] * len(turn.completion_ids)

    def segment(self) -> Segment:
        turn_of = np.asarray(self._turn_of, dtype=np.int32)
        return Segment(
            ids=np.asarray(self._ids, dtype=np.int32),
            mask=turn_of != NO_TURN,
            logprobs=np.asarray(self._logprobs, dtype=np.float32),
            turns=range(self._first, self._last + 1),
            turn_of=turn_of,
        )
