"""Agentic richness: a share of the score for the part of a run that the model drove.

The paper names it as future work: pay for traces worth training on, not for the answer
alone. Off while the share is 0. Part of scoring: no I/O.
"""

from __future__ import annotations

import math

from scoring.exceptions import ScoringError


def enriched(score: float, agentic_ratio: float, share: float) -> float:
    """`(1 - share) · score + share · score · agentic_ratio`.

    `score` is success times coefficient; `agentic_ratio` is the trace's, matched ÷
    (dispatched - covered) calls; all three are fractions from 0 to 1. It multiplies, so a
    failed run stays at 0 and no run rises. Raises ScoringError for what is no fraction.
    """
    for name, value in (("score", score), ("agentic ratio", agentic_ratio), ("share", share)):
        if isinstance(value, bool) or not (math.isfinite(value) and 0.0 <= value <= 1.0):
            raise ScoringError(f"the {name} must be a fraction between 0 and 1, got {value!r}")
    return score * (1.0 - share * (1.0 - agentic_ratio))
