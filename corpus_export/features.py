"""What ranks a trajectory within its problem, read from its turns. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from corpus_export.normalise import messages_of
from corpus_export.recommendation import recommendations, recommended_ids
from corpus_export.tokens import TokenCounter
from corpus_export.types import Features, ToolCall, Trajectory, Turn
from sandbox.provenance.calls import CHECK, FIND, SAME_SHOP, VIEW, normalise
from scoring.types import JsonObject

MAX_SPECS = 20
"""Searches read from one same-shop call (the tool takes as many)."""


def features(trajectory: Trajectory, counter: TokenCounter) -> Features:
    """The features of a trajectory, its tokens counted by `counter`."""
    turns = trajectory.turns
    shapes = Counter(turn_shape(turn) for turn in turns)
    calls = [call for turn in turns for call in turn.calls]
    return Features(
        depth=sum(bool(turn.calls) and bool(turn.reasoning or turn.content) for turn in turns),
        queries=len({query for call in calls for query in searched(call)}),
        verified=_verified(trajectory),
        regularity=round(max(shapes.values()) / len(turns), 4) if turns else 0.0,
        shape=tuple(call.name for call in calls),
        turns=len(turns),
        calls=len(calls),
        tokens=counter.count(messages_of(trajectory)),
    )


def turn_shape(turn: Turn) -> str:
    """What a turn is made of: thinking (T), text (W) and calls (C, or M for several)."""
    calls = "" if not turn.calls else "C" if len(turn.calls) == 1 else "M"
    return ("T" if turn.reasoning else "") + ("W" if turn.content else "") + calls


def searched(call: ToolCall) -> Iterator[str]:
    """The queries of a call, so that the same words in another order or case are one.

    Pages, filters and shops make no new query.
    """
    arguments = _arguments(call)
    if call.name == FIND:
        asked = [normalise(FIND, arguments).text("q")]
    elif call.name == SAME_SHOP:
        specs = normalise(SAME_SHOP, arguments).arguments.get("product_queries")
        found = specs[:MAX_SPECS] if isinstance(specs, list) else []
        asked = [str(spec.get("q", "")) for spec in found if isinstance(spec, dict)]
    else:
        return
    for text in asked:
        words = " ".join(sorted(text.casefold().split()))
        if words:
            yield words


def looked_at(call: ToolCall) -> set[str]:
    """The products that a call views or checks."""
    normal = normalise(call.name, _arguments(call))
    if call.name == VIEW:
        return set(normal.text("product_ids").split(","))
    return {normal.text("product_id")} if call.name == CHECK else set()


def _verified(trajectory: Trajectory) -> bool:
    """Whether each product was viewed or checked in a turn before it was recommended."""
    made = recommendations(trajectory)
    if not made:
        return False
    index, recommendation = made[0]
    try:
        wanted = set(recommended_ids(recommendation))
    except ValueError:
        return False
    seen: set[str] = set()
    for turn in trajectory.turns[:index]:
        for call in turn.calls:
            seen |= looked_at(call)
    return wanted <= seen


def _arguments(call: ToolCall) -> JsonObject | None:
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
