"""Which records may be shown in full: DESIGN.md's *Release*.

Until its problem is retired and its agent's embargo is over, a record is public only as
hash, signature and Merkle leaf. Suites are never public, nor is what shares a cluster with
them. Pure.

What an agent printed may be its problem's text. Its owner reads that as soon as the problem is
no secret: `text_withheld`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from arena.problems.bank import Bank
from arena.problems.pools import Pool

EmbargoOver = Callable[[str], bool]
"""Whether the embargo of the agent with this source hash is over: the calendar knows."""


class Withheld(StrEnum):
    """Why a record is not released. Stable: pages and exports show it."""

    UNKNOWN = "unknown_problem"
    SUITE = "suite"
    IN_USE = "problem_in_use"
    EMBARGO = "embargo"


class TextWithheld(StrEnum):
    """Why an agent's owner may not read what it printed on a problem. Stable: answers show it."""

    UNKNOWN = "unknown_problem"
    HELD_OUT = "held_out"
    """The problem is raced still, or one of its leak cluster is: who knows one knows the other."""
    RACING = "racing"
    """A race that is not over has drawn it."""


def text_withheld(bank: Bank, problem_id: str) -> TextWithheld | None:
    """Why the text of a problem is a secret of the arena's; None when it is open, retired or
    of a public suite."""
    holding = bank.get(problem_id)
    cluster = None if holding is None else bank.cluster(holding.cluster)
    if holding is None or cluster is None:
        return TextWithheld.UNKNOWN
    if holding.pool.is_suite:
        return None
    held_out = Pool.HELD_OUT in (holding.pool, cluster.pool)
    return TextWithheld.HELD_OUT if held_out else None


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
