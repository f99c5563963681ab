"""The outcome and the axis of a run, from what its record holds and nothing else.

Who makes the record and who checks it later decide by the same functions over the same
bytes: what canonical JSON cannot hold of an agent's words was replaced before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import cast

from arena.problems.suite import ProductSource
from arena.runs.canonical import canonical
from sandbox.provenance import Provenance, decide_axis
from sandbox.trace import Trace
from scoring.attempt import read_attempt
from scoring.dialogue import RECOMMEND, TERMINATE, Action, Termination, action_of
from scoring.outcome import Outcome, score
from scoring.titles import TitleSimilarity
from scoring.types import Json, Problem


def as_stored(value: Json) -> Json:
    """A value as a record gives it back."""
    return cast("Json", json.loads(canonical(value)))


def rescore(
    problem: Problem,
    trace: Trace,
    dialogue: Sequence[Json] | None,
    products: ProductSource,
    titles: TitleSimilarity,
    *,
    completed: bool,
) -> Outcome:
    """Judge a run by the rules, from what the gateway saw and what the agent says.

    `completed` says that the agent returned in time and without an error. `products` is
    the catalogue that the run had. Never raises on what an agent did.
    """
    attempt = read_attempt(dialogue, actions=tuple(actions(trace)), completed=completed)
    return score(problem, attempt, products.products(i for i in attempt.ids if i), titles)


def rejudge_axis(
    problem: Problem, trace: Trace, dialogue: Sequence[Json] | None, agent_source: bytes
) -> Provenance:
    """Who made the run's tool calls; see `sandbox.provenance.decide_axis`."""
    return decide_axis(trace, dialogue, agent_source, query=problem.query)


def actions(trace: Trace) -> Iterator[Action]:
    """Recommendations and terminations that the gateway answered with success."""
    for event in trace.tools():
        if event.status != 200 or event.error is not None or _refused(event.result):
            continue
        if event.name == TERMINATE and event.arguments.get("status") is None:
            yield Termination(success=True)  # the tool's default
        elif event.name in (RECOMMEND, TERMINATE):
            action = action_of(event.name, event.arguments)
            if action is not None:
                yield action


def _refused(result: object) -> bool:
    """A tool's own error is 200 with `error`."""
    return isinstance(result, dict) and "error" in result
