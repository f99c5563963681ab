"""How long to wait before the next try: 5 s, doubled up to 300 s, each ± 20 % (upstream's)."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """When to try again. Times in seconds; `tries` is how often in all, None is for ever."""

    first_s: float = 5.0
    longest_s: float = 300.0
    spread: float = 0.2
    tries: int | None = None

    def delay(self, failures: int, rng: random.Random, *, at_least: float | None = None) -> float:
        """Seconds to wait after so many failures in a row (≥ 1).

        `at_least` is the other side's wish; it is heard up to the longest wait.
        """
        doubled = self.first_s * 2.0 ** min(failures - 1, 30)
        wait = min(doubled, self.longest_s) * rng.uniform(1 - self.spread, 1 + self.spread)
        return max(wait, min(at_least or 0.0, self.longest_s))

    def gives_up(self, failures: int) -> bool:
        """Whether so many failures are enough."""
        return self.tries is not None and failures >= self.tries


ONCE = Backoff(tries=1)
"""No second try: for whoever asks again by itself."""
