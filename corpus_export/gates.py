"""The gates of the corpus: the reasoning coefficient, and the paper's five hard rejects.

Each is a function of a trajectory; `refused` asks the five in the paper's order and
tells the first that refuses. Pure; nothing raises on a trajectory's content.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from corpus_export.recommendation import recommendations, recommended_ids
from corpus_export.types import Features, Reason, Reject, Trajectory
from sandbox.catalog.interface import Catalog
from sandbox.provenance.calls import RECOMMEND, TERMINATE

MIN_COEFFICIENT = 0.9
"""The paper gates on the coefficient and its threshold is not known to us. Ours lies between
two rungs of the judge's tree: thinking that names a specific datum (quality 0.7, coefficient
0.9125) passes, thinking that only refers to results (0.5, 0.7375) does not."""
MAX_TOKENS = 14_336
"""The trainer's sequence length (the paper, stage 1)."""
_SHOWN = 80
"""Characters of an agent's text in a reject's detail."""

Resolves: TypeAlias = Callable[[str], bool]
"""Whether the search can return the product with this id."""


def coefficient_gate(
    coefficient: float | None, minimum: float = MIN_COEFFICIENT, why: str = ""
) -> Reject | None:
    """Refuse a run that no judge has judged (not a zero, and not let through either), or whose
    coefficient is below `minimum`. `why` says why it is unjudged, where that is known."""
    if coefficient is None:
        return Reject(Reason.UNJUDGED, why[:_SHOWN])
    if coefficient < minimum:
        return Reject(Reason.LOW_COEFFICIENT, f"{coefficient:.4f} < {minimum:.4f}")
    return None


def refused(
    trajectory: Trajectory, features: Features, catalog: Catalog, max_tokens: int = MAX_TOKENS
) -> Reject | None:
    """The five hard rejects, in the paper's order; the first that refuses, or None.

    `catalog` is the one that the run searched: what it does not hold, its search cannot return.
    """
    return (
        unanswered_call(trajectory)
        or not_one_recommendation(trajectory)
        or unresolved_recommendation(trajectory, lambda i: catalog.product(i) is not None)
        or too_long(features.tokens, max_tokens)
        or stopped_thinking(trajectory)
    )


def unanswered_call(trajectory: Trajectory) -> Reject | None:
    """1. Every tool call is answered before the next turn."""
    for number, turn in enumerate(trajectory.turns, start=1):
        answered = {result.call_id for result in turn.results}
        for call in turn.calls:
            if call.id not in answered:
                return Reject(Reason.UNANSWERED_CALL, f"turn {number}: {call.name[:_SHOWN]}")
    return None


def not_one_recommendation(trajectory: Trajectory) -> Reject | None:
    """2. `recommend_product` is called exactly once."""
    count = len(recommendations(trajectory))
    return None if count == 1 else Reject(Reason.RECOMMENDATIONS, f"{count} recommendations")


def unresolved_recommendation(trajectory: Trajectory, resolves: Resolves) -> Reject | None:
    """3. Its arguments parse as JSON, and every id is one that the search can return.

    How many ids a problem wants is no matter of format: a wrong number fails the outcome.
    """
    for _, call in recommendations(trajectory):
        try:
            ids = recommended_ids(call)
        except ValueError as error:
            return Reject(Reason.BAD_RECOMMENDATION, str(error)[:_SHOWN])
        unknown = next((i for i in ids if not resolves(i)), None)
        if unknown is not None:
            return Reject(Reason.BAD_RECOMMENDATION, f"no product {unknown[:_SHOWN]}")
    return None


def too_long(tokens: int, max_tokens: int = MAX_TOKENS) -> Reject | None:
    """4. It fits the trainer's sequence; what does not is refused, never cut."""
    return Reject(Reason.TOO_LONG, f"{tokens:,} tokens") if tokens > max_tokens else None


def stopped_thinking(trajectory: Trajectory) -> Reject | None:
    """5. It does not stop on a turn that neither recommends nor terminates."""
    last = trajectory.turns[-1] if trajectory.turns else None
    if last is not None and any(call.name in (RECOMMEND, TERMINATE) for call in last.calls):
        return None
    return Reject(Reason.STOPPED_THINKING, _ending(trajectory))


def _ending(trajectory: Trajectory) -> str:
    if not trajectory.turns:
        return "no turn"
    names = ", ".join(call.name for call in trajectory.turns[-1].calls)[:_SHOWN]
    return f"turn {len(trajectory.turns)} calls {names or 'nothing'}"
