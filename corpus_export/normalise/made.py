"""What both ways of making turns give."""

from __future__ import annotations

from dataclasses import dataclass

from corpus_export.types import Dialect, LeftOut, Turn


@dataclass(frozen=True, slots=True)
class MadeTurns:
    """The turns of a run, in what dialect, and what is not in them."""

    turns: tuple[Turn, ...]
    dialect: Dialect
    left_out: LeftOut
