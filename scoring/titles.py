"""Title similarity: the protocol, and the two ways of comparing that need no model.

The way that decided is part of the scoring-pipeline version, so that no two scores
made differently are taken for the same. Part of scoring: no I/O.
"""

from __future__ import annotations

from typing import Protocol

import rapidfuzz
from rapidfuzz import fuzz, utils

from scoring.types import Problem

TITLE_THRESHOLD = 0.7
"""A title is hit at this similarity and above (SN15's validator)."""


class TitleSimilarity(Protocol):
    """Compares a product's title with a reward's. Deterministic."""

    @property
    def name(self) -> str:
        """What decides, with all that changes its answers: model, version."""
        ...

    def similarity(self, problem: Problem, reward_title: str, product_title: str) -> float | None:
        """Between -1 and 1, or None when nothing can be said: the title is then left out."""
        ...


class NoTitles:
    """Leaves titles out: upstream's rule when no title model runs."""

    name = "none"

    def similarity(self, problem: Problem, reward_title: str, product_title: str) -> float | None:
        """Say nothing of any title."""
        return None


class LexicalTitles:
    """A stand-in for the embedding model: edit similarity of the sorted words, 0 to 1."""

    name = f"lexical-token-sort-rapidfuzz-{rapidfuzz.__version__}"

    def similarity(self, problem: Problem, reward_title: str, product_title: str) -> float | None:
        """How alike the two titles are, whatever the order, case and punctuation of their words."""
        ratio = fuzz.token_sort_ratio(reward_title, product_title, processor=utils.default_process)
        return ratio / 100.0
