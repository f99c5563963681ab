"""New versions are run on the open pool, and enter the race by what their records say."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from statistics import median
from uuid import UUID

from arena.api.inputs import open_evaluation
from arena.conducting import giving_up, outcomes
from arena.conducting.calendar import Calendar
from arena.conducting.parts import Parts
from arena.conducting.stored_inputs import registered, suite_number
from arena.conducting.work import Work
from arena.exceptions import BankError, SeasonError
from arena.problems.bank import Bank
from arena.problems.holdings import Holding
from arena.problems.pools import Pool
from arena.season.commands import Qualify
from arena.season.state import Entrant
from arena.work.opening import evaluation_id
from arena.work.types import EvaluationKind, EvaluationState
from arena.work.views import EvaluationView
from scoring.types import Bucket, Problem

STEP = "qualifying"


async def qualify(parts: Parts, calendar: Calendar, work: Work) -> None:
    """Enter the score of every version that has one."""
    for entrant in _unscored(calendar):
        with work.trying(STEP, entrant.version):
            for view in await _qualifying_of(parts, entrant):
                score, at = await _score(parts, view)
                if score is None:
                    continue
                moment = calendar.moment(work.now, at)
                events = await calendar.decide(Qualify(entrant.version, score), moment)
                for event in events:
                    work.did(STEP, event.kind, entrant.version, f"{score:.4f}")
                break


async def open_qualifying(parts: Parts, calendar: Calendar, work: Work) -> None:
    """Want validators for every version without a score, once; again after a stuck one."""
    for entrant in _unscored(calendar):
        with work.trying(STEP, entrant.version):
            found = await _qualifying_of(parts, entrant)
            if not found:
                await _open(parts, calendar, work, entrant, None)
            elif await _to_be_tried_again(parts, found[-1]):
                race = calendar.season.open
                tried = {view.evaluation.season_race for view in found}
                if race is not None and race.race_id not in tried:
                    await _open(parts, calendar, work, entrant, race.race_id)


def sample(bank: Bank, count: int, seed: str) -> list[Problem]:
    """At most `count` problems of the open pool: the buckets in turns, one of a leak cluster.

    The same bank and seed give the same. Raises BankError when the pool is empty.
    """

    def lot(holding: Holding) -> str:
        return hashlib.sha256(f"qualifying\n{seed}\n{holding.problem_id}".encode()).hexdigest()

    left: dict[Bucket, list[Holding]] = {bucket: [] for bucket in Bucket}
    for holding in sorted(bank.live(Pool.OPEN), key=lot, reverse=True):
        left[holding.bucket].append(holding)
    taken: list[Holding] = []
    clusters: set[str] = set()
    while len(taken) < count and any(left.values()):
        for bucket in Bucket:
            while left[bucket] and len(taken) < count:
                holding = left[bucket].pop()
                if holding.cluster not in clusters:
                    clusters.add(holding.cluster)
                    taken.append(holding)
                    break
    if not taken:
        raise BankError(
            "the open pool is empty: nobody can qualify",
            remedy="arena problems synthesise --to open, or ARENA_CONDUCTOR_CATALOG",
        )
    return [holding.problem for holding in taken]


def _unscored(calendar: Calendar) -> Sequence[Entrant]:
    entrants = calendar.season.entrants.values()
    return [e for e in entrants if e.eligible and e.qualifying is None]


async def _qualifying_of(parts: Parts, entrant: Entrant) -> list[EvaluationView]:
    """Its qualifying evaluations, oldest first."""
    found = await parts.queue.evaluations_of(_uuid(entrant))
    return [view for view in found if view.evaluation.kind is EvaluationKind.QUALIFYING]


def _uuid(entrant: Entrant) -> UUID:
    try:
        return UUID(entrant.version)
    except ValueError:
        raise SeasonError(
            f"{entrant.version!r:.60} is no version of a submission", code="season.unknown_agent"
        ) from None


async def _score(parts: Parts, view: EvaluationView) -> tuple[float | None, datetime | None]:
    """The median of its validators' scores, and since when it stands; None while it is open, or
    nobody has finished it."""
    if view.state is EvaluationState.OPEN:
        return None, None
    which, problems = view.evaluation.evaluation_id, view.evaluation.problems
    results = await parts.queue.results(which)
    scores: list[float] = []
    for result in results.finished:
        told = await outcomes.outcomes(parts.engine, which, result.validator)
        score = outcomes.mean_score(told, problems)
        if score is not None:
            scores.append(score)
    whole = view.state is not EvaluationState.CLOSED or len(scores) == len(results.finished)
    if not scores or not whole:
        return None, None  # a verdict is still to come
    if view.state is EvaluationState.CANCELLED and not await giving_up.was_stuck(parts, which):
        return None, None
    return median(scores), view.ended_at


async def _to_be_tried_again(parts: Parts, view: EvaluationView) -> bool:
    if view.state is not EvaluationState.CANCELLED:
        return False
    return await giving_up.was_stuck(parts, view.evaluation.evaluation_id)


async def _open(
    parts: Parts, calendar: Calendar, work: Work, entrant: Entrant, race_id: str | None
) -> None:
    version = _uuid(entrant)
    kind = EvaluationKind.QUALIFYING
    kept = await registered(parts, evaluation_id(version, kind, race_id))
    if kept is None:
        seed = f"{entrant.version}/{race_id or ''}"
        chosen = sample(calendar.bank, parts.settings.qualifying_problems, seed)
    else:
        chosen = kept
    found = await parts.versions.version(version)
    if found is None:
        raise SeasonError(f"version {version} is not stored", code="season.unknown_agent")
    # Of validators that have not come yet nobody knows: one is asked for.
    present = max(1, len(calendar.season.validators))
    await open_evaluation(
        parts.queue,
        parts.inputs,
        version,
        kind,
        race_id,
        name=found.name,
        source=await parts.versions.source(version),
        problems=chosen,
        suite=suite_number(entrant.submitted_at),
        needed=min(parts.settings.qualifying_validators, present),
        at=work.now,
    )
    work.did(STEP, "evaluation.opened", entrant.version, f"{len(chosen)} open problems")
