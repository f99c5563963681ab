"""Did a race ask what could be known? Looked up in the journals, by none of the code that
is to prevent it.

A problem that was drawn is a *leak* when, before its draw, a problem of its leak cluster,
or one with a product of its answer, was open or had been drawn for an earlier race. Read
from what happened (the events of bank and season) and from the clusters as they are at the
end; the bank's own marks, its pools and its refusals are not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from arena.journal import Event
from arena.problems.bank import GROWN, IMPORTED, OPENED, ROTATED
from arena.problems.pools import Pool
from arena.season.state import RACE_DRAWN
from scoring.types import JsonObject


@dataclass(frozen=True, slots=True)
class Leak:
    """A problem that was drawn, and what gave it away."""

    race_id: str
    drawn_at: datetime
    problem_id: str
    known_from: str
    shared: str
    """`cluster` or `product`."""

    def to_json(self) -> JsonObject:
        """As `--json` shows it."""
        return {
            "race_id": self.race_id,
            "drawn_at": self.drawn_at.isoformat(),
            "problem_id": self.problem_id,
            "known_from": self.known_from,
            "shared": self.shared,
        }


def leaks(
    bank: Iterable[Event], season: Iterable[Event], cluster_of: Mapping[str, str]
) -> list[Leak]:
    """All leaks of a season. `cluster_of` gives each problem's cluster."""
    answers: dict[str, tuple[str, ...]] = {}
    happened: list[tuple[datetime, int, str, list[str]]] = []
    for event in bank:
        if event.kind in (GROWN, IMPORTED):
            problem = cast("JsonObject", event.data["problem"])
            answers[str(problem["problem_id"])] = _products(problem)
        if opened := list(_opened(event)):
            happened.append((event.at, 0, "", opened))
    for event in season:
        if event.kind == RACE_DRAWN:
            rows = cast("list[JsonObject]", event.data["problems"])
            drawn = [str(row["problem_id"]) for row in rows]
            happened.append((event.at, 1, str(event.data["race_id"]), drawn))
    # At one moment, what was opened counts as known before what is drawn.
    happened.sort(key=lambda entry: entry[:3])
    known: dict[tuple[str, str], str] = {}
    found: list[Leak] = []
    for at, _, race_id, problems in happened:
        if race_id:
            found += (
                Leak(race_id, at, problem_id, known[key], key[0])
                for problem_id in problems
                for key in _keys(problem_id, answers, cluster_of)
                if key in known
            )
        for problem_id in problems:
            for key in _keys(problem_id, answers, cluster_of):
                known.setdefault(key, problem_id)
    return found


def _keys(
    problem_id: str, answers: Mapping[str, tuple[str, ...]], cluster_of: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    yield "cluster", cluster_of[problem_id]
    for product_id in answers[problem_id]:
        yield "product", product_id


def _products(problem: JsonObject) -> tuple[str, ...]:
    reward = problem["reward"]
    items = cast("list[JsonObject]", reward if isinstance(reward, list) else [reward])
    return tuple(str(item["product_id"]) for item in items)


def _opened(event: Event) -> Iterator[str]:
    if event.kind in (GROWN, IMPORTED):
        if event.data["pool"] == Pool.OPEN.value:
            yield str(cast("JsonObject", event.data["problem"])["problem_id"])
    elif event.kind == OPENED:
        yield from map(str, cast("list[str]", event.data["problems"]))
    elif event.kind == ROTATED:
        for members in cast("dict[str, list[str]]", event.data["opened"]).values():
            yield from members
