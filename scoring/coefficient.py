"""The reasoning coefficient: what a judged quality is worth. Part of scoring: no I/O."""

from __future__ import annotations

import math

from scoring.exceptions import ScoringError

FLOOR = 0.3
FULL_QUALITY = 0.80


def coefficient(quality: float) -> float:
    """0.3 at quality 0, linear to 1.0 at 0.80, flat after; rounded to four decimals.

    The rounded value multiplies the outcome (the paper, and the shared vectors). Quality
    is clipped to [0, 1]. Raises ScoringError for what is no number: an unjudged run has
    no quality, and must not come here as one.
    """
    if isinstance(quality, bool) or math.isnan(quality):
        raise ScoringError(f"a quality must be a number, got {quality!r}")
    clipped = min(max(quality, 0.0), 1.0)
    if clipped >= FULL_QUALITY:
        return 1.0
    return round(FLOOR + ((1.0 - FLOOR) / FULL_QUALITY) * clipped, 4)
