"""What simulated miners hand in, and when."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import datetime

from arena.simulation.agents import Agent
from arena.simulation.miners import Kind, Miner, population

IMPATIENT = 0.05
"""Of all submissions: another one follows within hours, and is refused."""
MERGES = 0.4
"""Of a copycat's files: two agents joined, where two are public."""


class People:
    """The miners, their agents, and whose work everything is."""

    def __init__(self, count: int, days: int, rng: random.Random) -> None:
        self._rng = rng
        self.miners = population(count, days, rng)
        self.by_hotkey = {miner.hotkey: miner for miner in self.miners}
        self._authors: dict[int, str] = {}
        """Who handed in each function first: it is his, whoever else says so."""
        self.agents: dict[str, Agent] = {}
        """Those that were let in, by version."""

    def arrivals(
        self, day: int, begin: datetime, end: datetime
    ) -> Iterator[tuple[datetime, Miner]]:
        """Who submits between two moments, and when."""
        for miner in self.miners:
            if miner.next_day >= day + 1 or not miner.registered:
                continue
            miner.next_day = max(
                miner.next_day + self._rng.expovariate(1 / miner.pause)
                if miner.kind is not Kind.MEMORISER
                else day + 1,
                day + 0.5,
            )
            at = begin + (end - begin) * self._rng.uniform(0.01, 0.7)
            yield at, miner
            if self._rng.random() < IMPATIENT:
                yield at + (end - begin) * 0.1, miner

    def hand_in(self, miner: Miner, published: Sequence[str], now: datetime) -> Agent | None:
        """What the miner submits; None for a copycat that finds nothing to copy."""
        work, skill = miner.work, miner.skill
        if miner.kind is Kind.COPYCAT:
            if not published:
                return None
            prey = self.agents[self._rng.choice(published)]
            work, skill = prey.work, prey.skill
            if len(published) > 1 and self._rng.random() < MERGES:
                other = self.agents[self._rng.choice(published)]
                if other.work != work:
                    work = work.merged(other.work)
        owners = [self._authors.setdefault(gene, miner.hotkey) for gene in work.genes]
        foreign = sum(owner != miner.hotkey for owner in owners)
        return Agent(
            version=f"{miner.hotkey}-{miner.submitted:03}",
            hotkey=miner.hotkey,
            kind=miner.kind,
            work=work,
            skill=skill,
            quality=miner.quality,
            ratio=miner.ratio,
            submitted_at=now,
            copied=2 * foreign > len(work.genes),
        )

    def style(self, agent: Agent) -> int:
        """How the file is written: one's own way, or made unlike the original."""
        return self._rng.getrandbits(32) | 1 if agent.copied else 0

    def let_in(self, agent: Agent) -> None:
        """The agent was admitted: its miner goes on to the next version."""
        miner = self.by_hotkey[agent.hotkey]
        self.agents[agent.version] = agent
        miner.submitted += 1
        if miner.kind not in (Kind.COPYCAT, Kind.MEMORISER):
            miner.improve(self._rng)
