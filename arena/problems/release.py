"""Which records may be shown in full: DESIGN.md's *Release*.

Until its problem is retired and its agent's embargo is over, a record is public only as
hash, signature and Merkle leaf. Suites are never public, nor is what shares a cluster with
them. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from arena.problems.bank import Bank

EmbargoOver = Callable[[str], bool]
"""Whether the embargo of the agent with this source hash is over: the calendar knows."""


class Withheld(StrEnum):
    """Why a record is not released. Stable: pages and exports show it."""

    UNKNOWN = "unknown_problem"
    SUITE = "suite"
    IN_USE = "problem_in_use"
    EMBARGO = "embargo"


@dataclass(frozen=True, slots=True)
class Released:
    """Says of a record whether it is released: `released(problem_id, source_hash)`.

    Reads the bank as it is when asked.
    """

    bank: Bank
    embargo_over: EmbargoOver

    def __call__(self, problem_id: str, source_hash: str) -> bool:
        """Whether a record of this problem and agent may be shown in full."""
        return self.withheld(problem_id, source_hash) is None

    def withheld(self, problem_id: str, source_hash: str) -> Withheld | None:
        """Why it may not; None when it may. Of several reasons the most lasting one."""
        holding = self.bank.get(problem_id)
        if holding is None:
            return Withheld.UNKNOWN
        cluster = self.bank.cluster(holding.cluster)
        if cluster is None or cluster.suite:
            return Withheld.SUITE
        if not holding.retired:
            return Withheld.IN_USE
        return None if self.embargo_over(source_hash) else Withheld.EMBARGO
