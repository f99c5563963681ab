"""Who takes the title: only a challenger that is ahead of the champion by a margin. Pure.

    margin(t)   = floor + (initial - floor) · 2^(-t / half-life)
    required(s) = s + margin · (1 - s)

t is the time since the champion won the title, s the champion's score in the same race,
on the same problems. The margin is a share of the room that is left above s, so that it
can be reached whatever s is; it keeps a title from changing hands by the luck of a draw,
and its decay keeps a champion from resting on it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from arena.exceptions import SeasonError
from arena.season.rules import SeasonRules

_DAY = timedelta(days=1)


def margin(since: datetime, at: datetime, rules: SeasonRules) -> float:
    """The margin at `at` of a champion that holds the title since `since`, 0 to 1.

    Raises SeasonError (`season.clock_went_back`) when `at` is before `since`.
    """
    if at < since:
        raise SeasonError(
            f"the title was won at {since:%F %T}, after {at:%F %T}", code="season.clock_went_back"
        )
    halvings = (at - since) / _DAY / rules.margin_half_life_days
    above = rules.margin_initial - rules.margin_floor
    return rules.margin_floor + above * float(0.5**halvings)


def required_score(champion: float, share: float) -> float:
    """The least score that takes the title from a champion with score `champion`."""
    return champion + share * (1.0 - champion)


def beats(challenger: float, champion: float, share: float) -> bool:
    """Whether the challenger takes the title. An equal score never does."""
    return challenger > champion and challenger >= required_score(champion, share)
