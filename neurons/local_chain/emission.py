"""Who earns what in an epoch of the local chain. Pure.

Much simpler than the real chain's Yuma consensus: a miner's incentive is the mean of what
validators gave it, weighed by their stake; validators share by stake among those that set
weights. Miners and validators get half each. Without any weights nobody is paid.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

MINERS = 0.5
"""The part of an epoch's emission that goes to miners."""


@dataclass(frozen=True, slots=True)
class Share:
    """Parts of their kind, 0 to 1: incentive among miners, dividends among validators."""

    incentive: float = 0.0
    dividends: float = 0.0

    @property
    def of_all(self) -> float:
        """The part of the whole emission."""
        return MINERS * self.incentive + (1 - MINERS) * self.dividends


def split(
    stakes: Mapping[int, int],
    weights: Mapping[int, Sequence[tuple[int, int]]],
    registered: Collection[int],
) -> dict[int, Share]:
    """The share of every registered uid.

    `stakes` are of those who may validate; `weights` are pairs of uid and value by who
    set them. Weight for a uid that is gone is lost.
    """
    voting = {uid: stake for uid, stake in stakes.items() if weights.get(uid) and stake > 0}
    stake_sum = sum(voting.values())
    incentive: dict[int, float] = {}
    for uid, stake in sorted(voting.items()):
        value_sum = sum(value for _, value in weights[uid])
        for dest, value in weights[uid]:
            if value_sum and dest in registered:
                part = stake / stake_sum * value / value_sum
                incentive[dest] = incentive.get(dest, 0.0) + part
    return {
        uid: Share(incentive.get(uid, 0.0), voting.get(uid, 0) / stake_sum if stake_sum else 0.0)
        for uid in sorted(registered)
    }
