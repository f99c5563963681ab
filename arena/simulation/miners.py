"""The people of a simulated season: honest ones of both axes, and those who try tricks. Pure.

A model, not a measurement: skills and habits are chosen so that every rule is put to work.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from enum import StrEnum

from arena.simulation.sources import Work
from scoring.coefficient import coefficient
from scoring.types import Bucket


class Kind(StrEnum):
    """What somebody does. Stable: `--json` shows it."""

    AXIS_A = "honest_a"
    """The model drives: reasons in the open, somewhat less skilled than code at the same tasks."""
    AXIS_B = "honest_b"
    """Code drives: more skilled, with less reasoning to judge."""
    COPYCAT = "copycat"
    """Rewrites the code of champions, or joins two, when it is public."""
    SYBIL = "sybil"
    """One person's agent under many hotkeys, rewritten for each."""
    MEMORISER = "memoriser"
    """Stores every answer that was ever open, and submits as often as it may."""
    LEAVER = "leaver"
    """Wins, then leaves the metagraph as champion."""


SHARES = {
    Kind.AXIS_A: 0.42,
    Kind.AXIS_B: 0.40,
    Kind.COPYCAT: 0.08,
    Kind.SYBIL: 0.08,
    Kind.MEMORISER: 0.01,
}
"""Of all miners; at least one of each. One more is the leaver."""

HARDNESS = {"easy": -0.6, "medium": 0.2, "hard": 1.0}
BUCKET_HARDNESS = {Bucket.PRODUCT: 0.0, Bucket.SHOP: 0.3, Bucket.VOUCHER: 0.4}
SLOPE = 1.7
GUESSING = -1.5
"""The skill of a memoriser where it has no answer."""
CEILING = 2.4
FLIP = 0.04
"""How often a run ends otherwise than the same agent's other runs of the problem."""
SYBILS = 8
"""Hotkeys of one person."""


@dataclass(slots=True)
class Miner:
    """One hotkey. `skill` is in logits; `quality` the judge's mean, 0 to 1; `pause` the mean
    days between two submissions; `ratio` the agentic ratio of its traces."""

    hotkey: str
    kind: Kind
    work: Work
    skill: float
    quality: float
    ratio: float
    pause: float
    next_day: float
    registered: bool = True
    submitted: int = 0

    def improve(self, rng: random.Random) -> None:
        """What comes between two submissions: a little skill, and a function written anew."""
        room = max(0.0, CEILING - self.skill)
        self.skill += min(room, abs(rng.gauss(0.12, 0.12)) * room / 2)
        self.work = self.work.improved(rng)


def population(count: int, days: int, rng: random.Random) -> list[Miner]:
    """So many miners, who come in over the first weeks."""
    kinds = [Kind.LEAVER, *SHARES]
    for kind, share in SHARES.items():
        kinds += [kind] * (round(share * count) - 1)
    kinds = [*kinds[:count], *[Kind.AXIS_A] * (count - len(kinds))]
    miners: list[Miner] = []
    family: list[Miner] = []
    for number, kind in enumerate(kinds):
        miner = _miner(f"hk{number:04}", kind, days, rng)
        if kind is Kind.SYBIL:
            if len(family) % SYBILS == 0:
                family = []
            family.append(miner)
            first = family[0]
            miner.work = first.work
            miner.skill, miner.quality, miner.ratio = first.skill, first.quality, first.ratio
        miners.append(miner)
    return miners


def _miner(hotkey: str, kind: Kind, days: int, rng: random.Random) -> Miner:
    skill, quality, ratio = rng.gauss(-0.1, 0.7), rng.gauss(0.62, 0.1), 1.0
    pause, first = rng.uniform(100, 220), rng.uniform(0, min(45.0, days / 2))
    if kind is Kind.AXIS_B:
        skill, quality, ratio = skill + 0.35, rng.gauss(0.5, 0.1), rng.betavariate(1, 6)
    elif kind is Kind.COPYCAT:
        pause, first = rng.uniform(50, 90), rng.uniform(min(3.0, days / 4), days / 2)
    elif kind is Kind.SYBIL:
        pause = rng.uniform(100, 220)
    elif kind is Kind.MEMORISER:
        skill, quality, ratio, pause, first = GUESSING, 0.7, 0.0, 1.0, rng.uniform(0, 2)
    elif kind is Kind.LEAVER:
        skill, quality, first = CEILING, 0.8, min(12.0, days / 4)
    return Miner(
        hotkey=hotkey,
        kind=kind,
        work=Work.new(rng),
        skill=min(skill, CEILING),
        quality=min(1.0, max(0.05, quality)),
        ratio=ratio,
        pause=pause,
        next_day=first,
    )


def chance(skill: float, bucket: Bucket, difficulty: str | None) -> float:
    """The probability of a strict success: logistic in skill less hardness."""
    hardness = HARDNESS.get(difficulty or "", 0.2) + BUCKET_HARDNESS[bucket]
    return 1.0 / (1.0 + math.exp(-SLOPE * (skill - hardness)))


def judged(quality: float, rng: random.Random) -> float:
    """The coefficient of one run."""
    return coefficient(min(1.0, max(0.0, rng.gauss(quality, 0.12))))
