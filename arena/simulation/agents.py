"""How simulated agents fare: the only thing of a simulated season that is drawn, not done."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from arena.problems.holdings import Holding
from arena.season.commands import ProblemOutcome
from arena.simulation.miners import FLIP, Kind, chance, judged
from arena.simulation.sources import Work


@dataclass(frozen=True, slots=True)
class Agent:
    """One version, as it was submitted: what its miner learns later does not reach it."""

    version: str
    hotkey: str
    kind: Kind
    work: Work
    skill: float
    quality: float
    ratio: float
    submitted_at: datetime
    copied: bool
    """Whether most of it is another hotkey's work."""


class OpenAnswers:
    """Since when the answer of each problem could be read in the open pool."""

    def __init__(self) -> None:
        self._problems: dict[str, datetime] = {}
        self._products: dict[str, datetime] = {}

    def note(self, opened: Iterable[Holding], at: datetime) -> None:
        """What stands in the open pool now."""
        for held in opened:
            if held.problem_id not in self._problems:
                self._problems[held.problem_id] = at
                for product_id in held.products:
                    self._products.setdefault(product_id, at)

    def known(self, held: Holding, by: datetime) -> bool:
        """Whether who stored everything until then has the answer: the problem's own, or all
        of its products from other problems."""
        if (since := self._problems.get(held.problem_id)) is not None and since <= by:
            return True
        times = [self._products.get(product_id) for product_id in held.products]
        return all(since is not None and since <= by for since in times)


class Runs:
    """Draws outcomes. Runs of one agent at one problem mostly end alike, as real ones do."""

    def __init__(self, answers: OpenAnswers, seed: int) -> None:
        self._answers, self._seed = answers, seed

    def outcomes(self, agent: Agent, held: Holding, count: int) -> list[ProblemOutcome]:
        """So many runs of an agent at a problem."""
        rng = random.Random(f"{self._seed}/{agent.version}/{held.problem_id}")  # noqa: S311
        probability = chance(agent.skill, held.bucket, held.difficulty)
        flip = FLIP
        if agent.kind is Kind.MEMORISER and self._answers.known(held, agent.submitted_at):
            probability, flip = 1.0, 0.0
        success = rng.random() < probability
        return [
            ProblemOutcome(
                success != (rng.random() < flip), judged(agent.quality, rng), agent.ratio
            )
            for _ in range(count)
        ]
