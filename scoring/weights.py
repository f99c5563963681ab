"""The weight vector that a validator sets on chain, from the finishers of a race.

Same input, same bytes on every validator: only integers leave this module, and their
order is the metagraph's. Part of scoring: no I/O.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scoring.exceptions import ScoringError

U16_MAX = 65535
BURN_UID = 0


@dataclass(frozen=True, slots=True)
class Finisher:
    """An agent with a complete race score."""

    miner_hotkey: str
    agent_version_id: str
    race_score: float


def ranking(finishers: Sequence[Finisher], champion: str | None = None) -> list[Finisher]:
    """Best race score first; ties by agent version id, ascending.

    The agent version `champion`, whom the promotion rule protects, stands before them all.
    """
    return sorted(
        finishers,
        key=lambda f: (f.agent_version_id != champion, -f.race_score, f.agent_version_id),
    )


def weight_vector(
    finishers: Sequence[Finisher],
    metagraph_hotkeys: Sequence[str],
    *,
    top_share: float,
    burn_share: float,
    champion: str | None = None,
) -> tuple[int, ...]:
    """One u16 weight for each uid of the metagraph.

    `top_share` and `burn_share` are fractions of the whole. The top miner (the champion, if
    it is among the finishers, else the best race score) is given the first; the other
    finishers down to rank ⌊N/2⌋ get single units (K-1 … 1) out of the second, which stands
    at uid 0. Miners that left the metagraph get nothing and are not replaced. Where nothing
    would be left standing, everything burns.

    Raises ScoringError on shares or scores that are no such thing, an empty metagraph, and
    a burn share too small for the tail.
    """
    _check(finishers, metagraph_hotkeys, top_share, burn_share)
    weights = [0] * len(metagraph_hotkeys)
    paid = ranking(finishers, champion)[: len(finishers) // 2]
    if not paid:
        weights[BURN_UID] = U16_MAX
        return tuple(weights)
    uids: dict[str, int] = {}
    for uid, hotkey in enumerate(metagraph_hotkeys):
        uids.setdefault(hotkey, uid)
    tail = 0
    for units, finisher in zip(range(len(paid) - 1, 0, -1), paid[1:], strict=True):
        tail_uid = uids.get(finisher.miner_hotkey)
        if tail_uid is None:
            continue
        tail += units
        if tail_uid != BURN_UID:  # at uid 0 the burn takes them: they count, and are lost
            weights[tail_uid] += units
    top, burn = _top_and_burn(top_share, burn_share, tail)
    top_uid = uids.get(paid[0].miner_hotkey)
    if top_uid is not None:
        weights[top_uid] += top
    weights[BURN_UID] += burn
    weights = [min(weight, U16_MAX) for weight in weights]
    if not any(weights):
        weights[BURN_UID] = U16_MAX
    return tuple(weights)


def _top_and_burn(top_share: float, burn_share: float, tail: int) -> tuple[int, int]:
    """The larger of the two is the full u16; the other keeps the proportion."""
    if burn_share >= top_share:
        return round(top_share * (U16_MAX + tail) / burn_share), U16_MAX
    burn = round(burn_share * U16_MAX / top_share) - tail
    if burn < 0:
        raise ScoringError(
            f"a burn share of {burn_share} cannot pay the tail of {tail} units",
            code="scoring.burn_too_small",
        )
    return U16_MAX, burn


def _check(
    finishers: Sequence[Finisher],
    metagraph_hotkeys: Sequence[str],
    top_share: float,
    burn_share: float,
) -> None:
    if not metagraph_hotkeys:
        raise ScoringError("the metagraph is empty: there is no uid 0 to burn to")
    for name, share in (("top_share", top_share), ("burn_share", burn_share)):
        if not (math.isfinite(share) and 0.0 <= share <= 1.0):
            raise ScoringError(f"{name} must be a fraction between 0 and 1, got {share}")
    if not math.isclose(top_share + burn_share, 1.0, abs_tol=1e-9):
        raise ScoringError(f"top and burn share must make 1, got {top_share} and {burn_share}")
    for finisher in finishers:
        if not math.isfinite(finisher.race_score):
            raise ScoringError(f"race score of {finisher.agent_version_id} is no number")
