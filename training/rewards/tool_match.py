"""How far a rollout made the calls that a teacher made.

ShoppingBench rewards single steps by the match of a tool call with the teacher's. A rollout of
many turns may reach the same end in another order, so its calls are matched with those of a
whole trajectory of the teacher, each at most once, and the share is that of S. Dice: twice
what is shared over what both have. Calls that the teacher did not make cost, so that making
every call there is earns nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from sandbox.provenance.calls import Call
from training.rewards.steps import Step


def call_similarity(one: Call, other: Call) -> float:
    """0 for another tool; else the share of arguments that agree, of all that either has.

    The tool itself counts as one argument: the right tool with nothing else right is worth
    something. Calls whose arguments cannot be compared agree in nothing but the tool.
    """
    if one.name != other.name:
        return 0.0
    if one.key is not None and one.key == other.key:
        return 1.0
    names = {*one.arguments, *other.arguments}
    missing = object()
    same = sum(
        one.arguments.get(name, missing) == other.arguments.get(name, missing) for name in names
    )
    return (1 + same) / (1 + len(names)) if names else 0.5


def tool_match(rollout: Sequence[Step], teacher: Sequence[Step]) -> float:
    """Similarity of the calls of two trajectories, 0 to 1; 0 when either made none."""
    mine = list(chain.from_iterable(step.calls for step in rollout))
    theirs = list(chain.from_iterable(step.calls for step in teacher))
    if not mine or not theirs:
        return 0.0
    return 2.0 * _matched(mine, theirs) / (len(mine) + len(theirs))


def best_match(rollout: Sequence[Step], teachers: Sequence[Sequence[Step]]) -> float:
    """The same with the teacher's trajectory that it resembles most; 0 when there is none."""
    return max((tool_match(rollout, teacher) for teacher in teachers), default=0.0)


def _matched(mine: Sequence[Call], theirs: Sequence[Call]) -> float:
    """The sum of similarities, pairing the most alike first, each call once."""
    pairs = sorted(
        (
            (-similarity, i, j)
            for i, one in enumerate(mine)
            for j, other in enumerate(theirs)
            if (similarity := call_similarity(one, other)) > 0
        ),
    )
    used_mine: set[int] = set()
    used_theirs: set[int] = set()
    total = 0.0
    for negative, i, j in pairs:
        if i not in used_mine and j not in used_theirs:
            used_mine.add(i)
            used_theirs.add(j)
            total -= negative
    return total


TeacherSteps = Mapping[str, Sequence[Sequence[Step]]]
"""Problem id to the steps of each of a teacher's trajectories that succeeded."""
