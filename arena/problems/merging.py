"""Who leaves when clusters that stand in different places turn out to be one.

Pools and sides follow one rule: what is held back from learning (held-out, evaluation,
suites, never-touch) stays where it is; what is learnt from (open, training) leaves. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from arena.problems.pools import Pool, Side

Place = TypeVar("Place", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class MergeRule(Generic[Place]):
    """Which places give way to which. A place in neither set meets all in peace."""

    leaves: frozenset[Place]
    stays: frozenset[Place]

    def leavers(self, members: Mapping[str, Place]) -> tuple[str, ...]:
        """The members, by problem id, that must leave their place; sorted.

        `members` are all problems of one leak cluster with the place of each. Nobody
        leaves while all may stand together.
        """
        if self.stays.isdisjoint(members.values()):
            return ()
        return tuple(sorted(name for name, place in members.items() if place in self.leaves))


SIDES: MergeRule[Side] = MergeRule(
    leaves=frozenset({Side.TRAINING}), stays=frozenset({Side.EVALUATION, Side.NEVER})
)
"""For what traces are used: a training problem leaves for never-touch."""

POOLS: MergeRule[Pool] = MergeRule(
    leaves=frozenset({Pool.OPEN}),
    stays=frozenset({Pool.HELD_OUT, *(pool for pool in Pool if pool.is_suite)}),
)
"""For where problems are raced: an open problem leaves, which is to be retired. A retired
problem is in nobody's way; that a held-out problem meets a suite is for the bank to refuse."""
