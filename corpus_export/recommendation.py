"""The recommendation of a trajectory: which calls make one, and the ids it names."""

from __future__ import annotations

import json

from corpus_export.types import ToolCall, Trajectory
from sandbox.provenance.calls import RECOMMEND


def recommendations(trajectory: Trajectory) -> list[tuple[int, ToolCall]]:
    """Each `recommend_product` with the index of its turn, in order."""
    return [
        (index, call)
        for index, turn in enumerate(trajectory.turns)
        for call in turn.calls
        if call.name == RECOMMEND
    ]


def recommended_ids(call: ToolCall) -> list[str]:
    """The ids of a recommendation, in order, duplicates dropped (the upstream rule).

    Raises ValueError when its arguments are no JSON object with ids in `product_ids`: a
    comma list, or a JSON list of ids.
    """
    try:
        arguments = json.loads(call.arguments)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    value = arguments.get("product_ids") if isinstance(arguments, dict) else None
    items = value if isinstance(value, list) else [value]
    if any(isinstance(item, bool) or not isinstance(item, str | int) for item in items):
        raise ValueError("product_ids is no list of ids")
    ids = [part.strip() for item in items for part in str(item).split(",")]
    found = [part for part in dict.fromkeys(ids) if part]
    if not found:
        raise ValueError("product_ids is empty")
    return found
