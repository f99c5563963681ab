"""What a simulated season comes to: counted while it runs, shown when it is over."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from arena.simulation.leaks import Leak
from arena.simulation.miners import Kind
from scoring.types import Json, JsonObject


@dataclass(slots=True)
class Rate:
    """Successes of runs."""

    runs: int = 0
    successes: int = 0

    def add(self, success: bool) -> None:
        """Count one run."""
        self.runs += 1
        self.successes += success

    @property
    def asr(self) -> float | None:
        """Successes over runs; None where there was none."""
        return self.successes / self.runs if self.runs else None


@dataclass(slots=True)
class Month:
    """One month of the season."""

    name: str
    races: int = 0
    voids: int = 0
    submissions: int = 0
    refused_copies: int = 0
    too_soon: int = 0
    qualified: int = 0
    racers: int = 0
    incomplete: int = 0
    promotions: int = 0
    leaks: int = 0
    champion: Rate = field(default_factory=Rate)
    memoriser_open: Rate = field(default_factory=Rate)
    memoriser_held_out: Rate = field(default_factory=Rate)
    drawable: int = 0
    """Held-out problems that a race could draw, at the month's last opening."""

    def to_json(self) -> JsonObject:
        """The row of this month."""
        return {
            "month": self.name,
            "races": self.races,
            "voids": self.voids,
            "submissions": self.submissions,
            "refused_copies": self.refused_copies,
            "too_soon": self.too_soon,
            "qualified": self.qualified,
            "racers": self.racers,
            "incomplete": self.incomplete,
            "promotions": self.promotions,
            "leaks": self.leaks,
            "asr_champion": self.champion.asr,
            "asr_memoriser_open": self.memoriser_open.asr,
            "asr_memoriser_held_out": self.memoriser_held_out.asr,
            "drawable": self.drawable,
        }


@dataclass(slots=True)
class Tally:
    """All that is counted."""

    months: list[Month] = field(default_factory=list)
    payouts: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Shares of all that was paid out, by kind of miner, and `burned`; in races."""
    paid_hotkeys: set[str] = field(default_factory=set)
    copies_paid: Counter[str] = field(default_factory=Counter)
    """By hotkey: races in which somebody else's work was paid."""
    refused_honest: int = 0
    """Files of honest miners that were taken for copies."""
    champions: list[JsonObject] = field(default_factory=list)
    decisions: Counter[str] = field(default_factory=Counter)
    voids: Counter[str] = field(default_factory=Counter)
    variants: Counter[str] = field(default_factory=Counter)
    """What became of variants of known problems that were brought to the bank."""
    draws_verified: int = 0
    draws_wrong: list[str] = field(default_factory=list)
    titles_by_axis: Counter[str] = field(default_factory=Counter)
    """Titles that honest miners won, `A` by those whose model drives."""
    paid_by_axis: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """What honest miners were paid, in races, likewise."""
    left_as_champion: int = 0
    memoriser_paid: int = 0
    """Races in which a memoriser was paid."""

    def month(self, name: str) -> Month:
        """A month's counts."""
        for month in reversed(self.months):
            if month.name == name:
                return month
        self.months.append(Month(name))
        return self.months[-1]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A season that was simulated."""

    days: int
    seed: int
    miners: dict[Kind, int]
    race_problems: int
    problems: int
    clusters: int
    events: int
    journal_hash: str
    """SHA-256 over all events of season and bank: the same seed gives the same."""
    leaks: tuple[Leak, ...]
    tally: Tally

    @property
    def sound(self) -> bool:
        """Whether no copy was paid, no cluster leaked and every draw could be made again."""
        return not (self.tally.copies_paid or self.leaks or self.tally.draws_wrong)

    def memoriser(self, pool: str) -> Rate:
        """The memorisers' runs on `open` or `held_out` problems."""
        total = Rate()
        for month in self.tally.months:
            rate = month.memoriser_open if pool == "open" else month.memoriser_held_out
            total.runs += rate.runs
            total.successes += rate.successes
        return total

    @property
    def promotions(self) -> int:
        """How often the title was won in a race."""
        return sum(month.promotions for month in self.tally.months)

    def payout_shares(self) -> dict[str, float]:
        """Who was paid how much of the whole."""
        total = sum(self.tally.payouts.values())
        names = [*(kind.value for kind in Kind), "burned"]
        return {name: self.tally.payouts[name] / total if total else 0.0 for name in names}

    def to_json(self) -> JsonObject:
        """The object of `--json`."""
        tally = self.tally
        return {
            "days": self.days,
            "seed": self.seed,
            "miners": {kind.value: count for kind, count in self.miners.items()},
            "sound": self.sound,
            "memoriser": {
                pool: {"runs": rate.runs, "asr": rate.asr}
                for pool in ("open", "held_out")
                for rate in (self.memoriser(pool),)
            },
            "copies_paid": len(tally.copies_paid),
            "cluster_leaks": len(self.leaks),
            "leaks": [leak.to_json() for leak in self.leaks[:100]],
            "promotions": self.promotions,
            "races": sum(month.races for month in tally.months),
            "voids": dict(tally.voids),
            "title_decisions": dict(tally.decisions),
            "race_problems": self.race_problems,
            "problems": self.problems,
            "clusters": self.clusters,
            "submissions": _sum(tally.months, "submissions"),
            "refused_copies": _sum(tally.months, "refused_copies"),
            "refused_too_soon": _sum(tally.months, "too_soon"),
            "refused_honest": tally.refused_honest,
            "variants": dict(tally.variants),
            "draws_verified": tally.draws_verified,
            "draws_wrong": list[Json](tally.draws_wrong),
            "payout_shares": cast("JsonObject", self.payout_shares()),
            "paid_hotkeys": len(tally.paid_hotkeys),
            "memoriser_paid_races": tally.memoriser_paid,
            "axis_a_of_honest": {
                "titles": share_of_a(tally.titles_by_axis),
                "paid": share_of_a(tally.paid_by_axis),
            },
            "left_as_champion": tally.left_as_champion,
            "champions": list[Json](tally.champions),
            "months": [month.to_json() for month in tally.months],
            "events": self.events,
            "journal_hash": self.journal_hash,
        }


def _sum(months: Iterable[Month], name: str) -> int:
    return sum(getattr(month, name) for month in months)


def share_of_a(by_axis: Mapping[str, float]) -> float | None:
    """The part of `A`; None of nothing."""
    total = sum(by_axis.values())
    return by_axis.get("A", 0.0) / total if total else None
