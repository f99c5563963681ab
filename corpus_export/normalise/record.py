"""A record's run as a trajectory: the stage that everything after it builds on."""

from __future__ import annotations

from typing import Any, cast

from corpus_export.normalise.answered import Wire
from corpus_export.normalise.code_turns import code_turns
from corpus_export.normalise.model_turns import model_turns
from corpus_export.normalise.texts import clean
from corpus_export.recommendation import recommendations, recommended_ids
from corpus_export.types import Reason, Reject, Trajectory
from sandbox.catalog.interface import Catalog
from sandbox.provenance.calls import RECOMMEND
from sandbox.trace import Trace
from scoring.types import JsonObject

MAX_DETAIL = 200
"""Characters of a reject's detail."""


def normalise(
    record: JsonObject, query: str, catalog: Catalog | None = None
) -> Trajectory | Reject:
    """The trajectory of a run's record, or why it has none.

    `query` is the problem's: a record holds none. With a `catalog` (the record's own; the
    caller sees to that) helper tools that ran in agent code are recomputed also where the
    wire does not hold what they need. On axis A the turns are the model's, on axis B the
    calls that code made. Pure, and raises nothing on a record's content.

    Rejects: UNREADABLE and UNKNOWN_SCHEMA for a trace that cannot be read; NO_MODEL_TURN
    and NO_CALL for a run without any; CUT_OFF for one that was ended (a limit, a crash, the
    clock) before it recommended: what was recommended before the cut is kept, and the gates
    decide; LOST_CONTEXT where the conversation recommends what only another one was shown.
    """
    try:
        trace = Trace.from_json(cast("JsonObject", record["trace"]))
    except (KeyError, TypeError, AttributeError) as error:
        return Reject(Reason.UNREADABLE, f"trace: {type(error).__name__}: {error}"[:MAX_DETAIL])
    except ValueError as error:
        return Reject(Reason.UNKNOWN_SCHEMA, str(error)[:MAX_DETAIL])
    dialogue = cast("list[Any]", record.get("dialogue") or [])
    wire = Wire(trace)
    axis = record.get("axis")
    by_model = isinstance(axis, dict) and axis.get("axis") == "A"
    made = (model_turns if by_model else code_turns)(trace, dialogue, wire, catalog)
    if not made.turns:
        reason = Reason.NO_MODEL_TURN if by_model else Reason.NO_CALL
        return Reject(reason, f"{made.left_out.completions} completions, none of them used")
    recommends = any(call.name == RECOMMEND for turn in made.turns for call in turn.calls)
    cut = _cut_by(record, trace)
    if cut and not recommends:
        return Reject(Reason.CUT_OFF, f"ended before a recommendation: {cut}"[:MAX_DETAIL])
    trajectory = Trajectory(clean(query), made.turns, made.dialect, left_out=made.left_out)
    elsewhere = made.left_out.completions or made.left_out.dispatches
    if by_model and elsewhere and (unseen := _unseen(trajectory)):
        return Reject(Reason.LOST_CONTEXT, f"recommends {unseen}, shown in no turn"[:MAX_DETAIL])
    return trajectory


def _cut_by(record: JsonObject, trace: Trace) -> str:
    """What ended the run from outside, or nothing."""
    failure = record.get("failure")
    if isinstance(failure, dict):
        return str(failure.get("code", "failure"))
    return ", ".join(str(limit) for limit in trace.limits_hit)


def _unseen(trajectory: Trajectory) -> str | None:
    """A recommended id that no text before it holds: the model knew it from somewhere else."""
    for index, call in recommendations(trajectory):
        try:
            ids = recommended_ids(call)
        except ValueError:
            continue
        shown = [r.content for turn in trajectory.turns[:index] for r in turn.results]
        texts = "\n".join([trajectory.query, *shown])
        unseen = next((i for i in ids if i not in texts), None)
        if unseen is not None:
            return unseen
    return None
