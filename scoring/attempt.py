"""An attempt: what one run recommended and how it ended, from both witnesses.

The gateway saw some actions, the agent's dialogue tells of some; a call may appear in
both, in one, or have been run in the agent's own code and never reached the wire.
Part of scoring: no I/O, and no knowledge of traces: the caller hands over the actions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from scoring.dialogue import Action, Recommendation, Step, Termination, deciding, read_steps


class Ending(StrEnum):
    """How an attempt ended, before anything is said of its products. Stable codes."""

    PROPER = "proper"
    RUN_FAILED = "run_failed"
    NO_RECOMMENDATION = "no_recommendation"
    SEVERAL_RECOMMENDATIONS = "several_recommendations"
    NOT_TERMINATED = "not_terminated"
    TERMINATED_AS_FAILURE = "terminated_as_failure"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run, as scoring looks at it.

    `ids` are the recommended ids: the gateway's where it saw a recommendation, else the
    dialogue's last. `completed` says that the agent returned in time and without an error.
    """

    steps: tuple[Step, ...]
    ids: tuple[str, ...]
    ending: Ending
    completed: bool


def read_attempt(
    dialogue: object, *, actions: Sequence[Action] = (), completed: bool = True
) -> Attempt:
    """Read a run.

    `dialogue` is any JSON value (None when there is none). `actions` are the
    recommendations and terminations that the gateway answered with success, in its order:
    one that it refused was never made.
    """
    steps = read_steps(dialogue)
    told = deciding(steps)
    seen = tuple(enumerate(actions))
    at_gateway = [a.ids for _, a in seen if isinstance(a, Recommendation)]
    in_dialogue = [a.ids if a.as_text else () for _, a in told if isinstance(a, Recommendation)]
    return Attempt(
        steps=steps,
        ids=(at_gateway or in_dialogue or [()])[-1],
        ending=_ending(seen, told) if completed else Ending.RUN_FAILED,
        completed=completed,
    )


_Timeline = tuple[tuple[int, Action], ...]


def _ending(seen: _Timeline, told: _Timeline) -> Ending:
    made = _recommendations(seen, told)
    if made != 1:
        return Ending.SEVERAL_RECOMMENDATIONS if made else Ending.NO_RECOMMENDATION
    at_gateway, in_dialogue = _position(seen), _position(told)
    if at_gateway is not None and _has_termination(seen):
        # Both are on the trusted record, where no two actions share a place.
        last = _last_termination(seen, since=at_gateway)
    elif in_dialogue is not None and _has_termination(told):
        last = _last_termination(told, since=in_dialogue)
    else:
        # One on each side: nothing tells their order.
        last = _last_termination(seen + told, since=0)
    if last is None:
        return Ending.NOT_TERMINATED
    return Ending.PROPER if last.success else Ending.TERMINATED_AS_FAILURE


def _recommendations(seen: _Timeline, told: _Timeline) -> int:
    """How many were made: a copy of one on the other side is the same call."""
    at_gateway = [a.ids for _, a in seen if isinstance(a, Recommendation)]
    in_dialogue = [a.ids for _, a in told if isinstance(a, Recommendation)]
    if not at_gateway or not in_dialogue:
        return len(at_gateway) + len(in_dialogue)
    return (Counter(at_gateway) | Counter(in_dialogue)).total()


def _position(timeline: _Timeline) -> int | None:
    return next((i for i, a in timeline if isinstance(a, Recommendation)), None)


def _has_termination(timeline: _Timeline) -> bool:
    return any(isinstance(a, Termination) for _, a in timeline)


def _last_termination(timeline: _Timeline, since: int) -> Termination | None:
    """The last termination in the step `since` or a later one."""
    later = [a for i, a in timeline if i >= since and isinstance(a, Termination)]
    return later[-1] if later else None
