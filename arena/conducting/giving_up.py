"""Evaluations that nobody can finish, or that nobody needs any more, are cancelled.

Nobody is charged for it: an agent whose race was cut short by its validators is incomplete and
carried to the next one, and one whose qualifying was is scored anew.
"""

from __future__ import annotations

from uuid import UUID

from arena.conducting.calendar import Calendar
from arena.conducting.parts import Parts
from arena.conducting.work import Work
from arena.season.state import Season
from arena.work.types import EvaluationKind, EvaluationState
from arena.work.views import EvaluationView

STEP = "giving up"
STUCK = "no validator that takes part can finish it"
"""Reasons stand in the queue's history; this one is looked for there."""
RACE_OVER = "its race is over"
OUT = "the agent is out"


async def give_up(parts: Parts, calendar: Calendar, work: Work) -> None:
    """Cancel what is of no more use, and what is stuck."""
    for view in await parts.queue.open_evaluations():
        with work.trying(STEP, str(view.evaluation.evaluation_id)):
            reason = _useless(view, calendar.season)
            if reason is None and await _stuck(view, parts, calendar.season, work):
                reason = STUCK
            if reason is not None:
                # All that is open of a version: it has one open evaluation at a time.
                await parts.queue.cancel(view.evaluation.version, reason, work.now)
                work.did(STEP, "evaluation.cancelled", str(view.evaluation.version), reason)


async def was_stuck(parts: Parts, evaluation_id: UUID) -> bool:
    """Whether an evaluation was given up because its validators could not finish it."""
    changes = await parts.queue.history(evaluation_id)
    return any(
        change.state is EvaluationState.CANCELLED
        and change.run_id is None
        and change.why is not None
        and change.why.message == STUCK
        for change in changes
    )


def _useless(view: EvaluationView, season: Season) -> str | None:
    entrant = season.entrants.get(str(view.evaluation.version))
    if entrant is None:
        return None  # not opened by the calendar, or ahead of what it has read
    if not entrant.eligible:
        return OUT
    if view.evaluation.kind is EvaluationKind.RACE:
        running = season.running
        if running is None or running.race_id != view.evaluation.season_race:
            return RACE_OVER
    return None


async def _stuck(view: EvaluationView, parts: Parts, season: Season, work: Work) -> bool:
    """Whether it has free seats and nobody at work, and all who take part have either finished
    it or have no tries left."""
    idle = view.held == 0 and view.wanted > 0
    if not idle or not season.validators or work.now < view.opened_at + parts.settings.stuck_after:
        return False
    which = view.evaluation.evaluation_id
    results = await parts.queue.results(which)
    out = {result.validator for result in results.finished}
    out |= await parts.queue.out_of_tries(which)
    return season.validators.keys() <= out
