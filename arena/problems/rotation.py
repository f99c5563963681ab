"""Rotation: whole clusters go from held-out to open, and from open to retired.

In each bucket, clusters that a race has drawn (or that were exposed otherwise) leave
held-out first, all of them: no race draws them again. When they are fewer than asked for,
fresh ones follow, chosen by the seed. Those that have been open longest retire. The held-out
stock that a race can draw never falls below the minimum: then the rotation is refused, and
says what to grow first. Decisions only: the event holds the seed and every move. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from arena.exceptions import BankError
from arena.journal import Event
from arena.problems.bank import ROTATED, Bank
from arena.problems.holdings import Cluster
from arena.problems.pools import Pool
from scoring.types import Bucket, Json, JsonObject

# Codes of BankError. Stable.
TOO_SMALL = "bank.held_out_too_small"
NOT_DUE = "bank.rotation_not_due"


@dataclass(frozen=True, slots=True)
class RotationRule:
    """How much rotates, in clusters of each bucket, and how often."""

    every: timedelta = timedelta(days=1)
    opens: int = 5
    """Clusters that go to open at least, drawn ones among them."""
    retires: int = 5
    """Clusters that go from open to retired at most."""
    held_out_min: int = 30
    """Clusters that must remain for races to draw."""
    open_min: int = 10
    """Clusters that remain open: qualifying needs problems."""

    def to_json(self) -> JsonObject:
        """As events hold it."""
        return {
            "every_s": self.every.total_seconds(),
            "opens": self.opens,
            "retires": self.retires,
            "held_out_min": self.held_out_min,
            "open_min": self.open_min,
        }


Members = Mapping[str, tuple[str, ...]]
"""Clusters by name, each with its live problems."""


@dataclass(frozen=True, slots=True)
class Moves:
    """What a rotation moves in one bucket."""

    bucket: Bucket
    opened: Members
    retired: Members
    drawable_after: int
    """Clusters that races can still draw."""
    open_after: int

    def to_json(self) -> JsonObject:
        """Counts, for `--json`."""
        return {
            "opened_clusters": len(self.opened),
            "opened_problems": sum(map(len, self.opened.values())),
            "retired_clusters": len(self.retired),
            "retired_problems": sum(map(len, self.retired.values())),
            "drawable_clusters": self.drawable_after,
            "open_clusters": self.open_after,
        }


@dataclass(frozen=True, slots=True)
class Rotation:
    """A rotation that is decided and not yet applied."""

    seed: str
    rule: RotationRule
    moves: tuple[Moves, ...]

    def events(self, at: datetime) -> list[Event]:
        """The event to append and apply."""
        opened: JsonObject = {n: list[Json](i) for m in self.moves for n, i in m.opened.items()}
        retired: JsonObject = {n: list[Json](i) for m in self.moves for n, i in m.retired.items()}
        data: JsonObject = {
            "seed": self.seed,
            "rule": self.rule.to_json(),
            "opened": opened,
            "retired": retired,
        }
        return [Event(ROTATED, at, data)]


def due_at(bank: Bank, rule: RotationRule) -> datetime | None:
    """When the next rotation is due; None when there was none yet: it is due now."""
    return None if bank.rotated_at is None else bank.rotated_at + rule.every


def rotate(
    bank: Bank, rule: RotationRule, *, seed: str, at: datetime, early: bool = False
) -> Rotation:
    """Decide on a rotation. The same bank, rule and seed give the same.

    Raises BankError: `bank.rotation_not_due` before its time, unless `early`;
    `bank.held_out_too_small` when races would have too little left to draw from;
    `bank.clock_back`.
    """
    bank.check_clock(at)
    due = due_at(bank, rule)
    if due is not None and at < due and not early:
        raise BankError(
            f"the next rotation is due at {due.isoformat(timespec='minutes')}",
            code=NOT_DUE,
            remedy="arena problems rotate --early",
        )
    held_out, opened = _by_bucket(bank, Pool.HELD_OUT), _by_bucket(bank, Pool.OPEN)
    moves = tuple(_moves(b, held_out[b], opened[b], rule, seed) for b in Bucket)
    short = {m.bucket: rule.held_out_min - m.drawable_after for m in moves}
    if any(missing > 0 for missing in short.values()):
        asked = ",".join(f"{b}={n}" for b, n in short.items() if n > 0)
        have = ", ".join(f"{m.drawable_after} {m.bucket}" for m in moves if short[m.bucket] > 0)
        raise BankError(
            f"the held-out pool is too small to rotate: {have} clusters would remain to draw, "
            f"and {rule.held_out_min} must",
            code=TOO_SMALL,
            remedy=f"arena problems synthesise --to held_out --bucket {asked} --catalog …",
        )
    return Rotation(seed, rule, moves)


def _by_bucket(bank: Bank, pool: Pool) -> dict[Bucket, list[Cluster]]:
    found: dict[Bucket, list[Cluster]] = {bucket: [] for bucket in Bucket}
    for cluster in bank.clusters(pool):
        found[cluster.bucket].append(cluster)
    return found


def _moves(
    bucket: Bucket,
    held_out: Sequence[Cluster],
    opened: Sequence[Cluster],
    rule: RotationRule,
    seed: str,
) -> Moves:
    spent = sorted((c for c in held_out if c.exposed), key=lambda c: c.name)
    fresh = sorted((c for c in held_out if not c.exposed), key=lambda c: _lot(seed, c))
    opening = (*spent, *fresh[: max(0, rule.opens - len(spent))])
    open_after = len(opened) + len(opening)
    retiring = _oldest(opened, max(0, min(rule.retires, open_after - rule.open_min)), seed)
    return Moves(
        bucket=bucket,
        opened=_members(opening),
        retired=_members(retiring),
        drawable_after=len(held_out) - len(opening),
        open_after=open_after - len(retiring),
    )


def _oldest(opened: Sequence[Cluster], count: int, seed: str) -> list[Cluster]:
    """Those that have been open longest; the seed decides among those that came together."""
    by_age = sorted(opened, key=lambda c: c.since)
    if count == 0 or count >= len(by_age):
        return by_age[:count]
    edge = by_age[count - 1].since
    older = [c for c in by_age if c.since < edge]
    together = sorted((c for c in by_age if c.since == edge), key=lambda c: _lot(seed, c))
    return older + together[: count - len(older)]


def _members(clusters: Iterable[Cluster]) -> dict[str, tuple[str, ...]]:
    return {cluster.name: tuple(cluster.live) for cluster in clusters}


def _lot(seed: str, cluster: Cluster) -> bytes:
    """A cluster's place in the seed's order: one more cluster does not reshuffle the others."""
    return hashlib.sha256(f"rotation\0{seed}\0{cluster.name}".encode()).digest()
