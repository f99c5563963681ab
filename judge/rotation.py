"""Which judge model to ask next: those that answer well first, those that failed rest.

Health is shared by all judgements of one `Judge`. A model rests after anything that gave
no verdict: a time-out, a refusal, an empty answer, one that could not be read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sandbox.models import faults

LASTING = frozenset({faults.KEY_REFUSED, faults.NO_FUNDS, faults.NOT_SERVED, faults.UNKNOWN_MODEL})
"""Failures that only the operator can mend."""
LASTING_REST_S = 300.0
CAP_S = 60.0
PLAINEST = 2
LEAST_TOKENS = 1_000


@dataclass(slots=True)
class _Health:
    failures: int = 0
    rests_until: float = 0.0
    lasting: bool = False
    plainness: int = 0
    """0: structured output; 1: without it; 2: without temperature as well."""
    tokens: int = 1 << 30
    """The longest trace that it may be shown."""


class Rotation:
    """The judge models of the settings and how they have been doing."""

    def __init__(
        self,
        models: Sequence[str],
        backoff_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._health = {name: _Health() for name in dict.fromkeys(models)}
        self._backoff_s = backoff_s
        self._clock = clock

    def next(self, without: Collection[str] = ()) -> tuple[str, float] | None:
        """The model to ask and the seconds to wait before; None when none is left to ask.

        One with a lasting failure is asked again when its rest is over, and never waited for.
        """
        now = self._clock()
        best: tuple[float, int, int] | None = None
        chosen = ""
        for place, (name, health) in enumerate(self._health.items()):
            rest = max(0.0, health.rests_until - now)
            if name in without or (health.lasting and rest > 0):
                continue
            rank = (rest, health.failures, place)
            if best is None or rank < best:
                best, chosen = rank, name
        return None if best is None else (chosen, best[0])

    def worked(self, model: str) -> None:
        """It gave a verdict."""
        health = self._health[model]
        health.failures, health.lasting, health.rests_until = 0, False, 0.0

    def failed(self, model: str, code: str) -> None:
        """It gave none: it rests, longer each time."""
        health = self._health[model]
        health.failures += 1
        health.lasting = code in LASTING
        rest = min(CAP_S, self._backoff_s * 2.0 ** min(health.failures - 1, 10))
        health.rests_until = self._clock() + (LASTING_REST_S if health.lasting else rest)

    def plainness(self, model: str) -> int:
        """How plain a request this model needs."""
        return self._health[model].plainness

    def refuse_shape(self, model: str) -> bool:
        """It refused the request's shape; False when there is no plainer one."""
        health = self._health[model]
        if health.plainness >= PLAINEST:
            return False
        health.plainness += 1
        return True

    def shrink(self, model: str, shown: int) -> bool:
        """A text of `shown` tokens was too long for it; False when half of it is too little."""
        health = self._health[model]
        health.tokens = min(health.tokens, max(shown // 2, LEAST_TOKENS))
        return shown > LEAST_TOKENS

    def budget(self, model: str, tokens: int) -> int:
        """The rendering budget that fits this model, `tokens` at most."""
        return min(tokens, self._health[model].tokens)
