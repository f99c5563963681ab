"""Making a draw again from its record, and naming what does not hold. Pure.

What a record cannot show by itself is told apart as *not checked*: that the commitment
was public before the beacon (hand in its hash as it was published), that a block's hash is
the chain's, and that problems not opened are what the operator says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from arena.exceptions import DrawError
from arena.season.beacon import (
    BeaconValue,
    Source,
    check_ticket,
    check_value,
)
from arena.season.draw import draw, draw_seed, secret_hash
from arena.season.record import DrawRecord, Reveal
from scoring.types import Bucket, Json, JsonObject

LONGEST_DETAIL = 300


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. `holds` is None for what could not be checked."""

    name: str
    holds: bool | None
    detail: str

    def to_json(self) -> JsonObject:
        """As `--json` shows it."""
        return {"name": self.name, "holds": self.holds, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class Verification:
    """Everything that was looked at. A draw holds when nothing is wrong and it was made."""

    race_id: str
    commitment_hash: str
    checks: tuple[Check, ...]

    @property
    def wrong(self) -> tuple[Check, ...]:
        """What does not hold."""
        return tuple(check for check in self.checks if check.holds is False)

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong

    def to_json(self) -> JsonObject:
        """As `--json` shows it."""
        checks: list[Json] = [check.to_json() for check in self.checks]
        return {
            "race_id": self.race_id,
            "commitment_hash": self.commitment_hash,
            "holds": self.holds,
            "checks": checks,
        }


def verify(record: DrawRecord, published: str | None = None) -> Verification:
    """Look at all of a record. `published` is the commitment's hash as it was made public."""
    checks = list(_before(record, published))
    if record.reveal is None:
        checks.append(Check("reveal", None, "the draw is not revealed yet"))
    else:
        checks += _after(record, record.reveal)
    return Verification(record.commitment.race_id, record.commitment.hash, tuple(checks))


def _before(record: DrawRecord, published: str | None) -> Iterator[Check]:
    commitment = record.commitment
    if published is None:
        yield Check(
            "commitment", None, f"compare its hash with the published one: {commitment.hash}"
        )
    else:
        same = commitment.hash == published.strip().lower().removeprefix("0x")
        yield Check(
            "commitment",
            same,
            "is the published one" if same else f"its hash is {commitment.hash}",
        )
    in_time = commitment.committed_at < commitment.closes_at
    yield Check(
        "time",
        in_time,
        "committed to before qualifying closed" if in_time else "committed to after the closing",
    )
    whole = (record.listing.hash, len(record.listing)) == (
        commitment.listing_hash,
        commitment.listing_size,
    )
    yield Check(
        "pool",
        whole,
        f"the {len(record.listing)} problems that were committed to"
        if whole
        else "the listing is not the one that was committed to: the pool changed since",
    )
    delay = timedelta(seconds=commitment.beacon_delay)
    yield _checked(
        "beacon chosen",
        lambda: check_ticket(
            commitment.ticket, commitment.committed_at, commitment.closes_at, delay
        ),
        "its number follows from the closing time, and did not exist yet",
    )


def _after(record: DrawRecord, reveal: Reveal) -> Iterator[Check]:
    commitment = record.commitment

    def secret() -> None:
        if secret_hash(commitment.race_id, reveal.secret) != commitment.secret_hash:
            raise DrawError("another secret than the one committed to")

    yield _checked("secret", secret, "is the one committed to")
    yield from _beacon(record, reveal.beacon)

    def seed() -> None:
        if draw_seed(commitment.race_id, reveal.secret, reveal.beacon.value) != reveal.seed:
            raise DrawError("does not follow from secret, beacon and race id")

    yield _checked("seed", seed, "follows from secret, beacon and race id")
    yield _quota(record, reveal)

    def again() -> None:
        made = draw(
            record.listing.rows,
            commitment.quota,
            draw_seed(commitment.race_id, reveal.secret, reveal.beacon.value),
        )
        if made != reveal.drawn:
            other = len(set(made) ^ set(reveal.drawn)) // 2
            raise DrawError(
                f"another draw comes out: {other} of {len(made)} problems differ"
                if other
                else "the same problems come out in another order"
            )

    yield _checked("draw", again, f"the same {len(reveal.drawn)} problems come out")
    yield _opened(record, reveal)


def _beacon(record: DrawRecord, value: BeaconValue) -> Iterator[Check]:
    try:
        proven = check_value(record.commitment.ticket, value, record.commitment.closes_at)
    except DrawError as error:
        yield Check("beacon", False, error.message[:LONGEST_DETAIL])
        return
    yield Check("beacon", True, f"{value.source.value} number {value.number}, as committed to")
    if proven:
        yield Check("beacon signature", True, "quicknet's BLS signature of that round")
    else:
        why = {
            Source.DRAND: "drand's BLS signature: install bittensor_core",
            Source.CHAIN: f"that block {value.number} of the chain has this hash: ask a node",
            Source.STANDIN: "a stand-in made this value: it proves nothing",
        }
        yield Check("beacon signature", None, why[value.source])


def _quota(record: DrawRecord, reveal: Reveal) -> Check:
    rows = {row.name: row for row in record.listing.rows}
    strangers = [name for name in reveal.drawn if name not in rows]
    if strangers:
        detail = f"{len(strangers)} of the problems drawn are not in the listing"
        return Check("quota", False, detail)
    counts = Counter(rows[name].bucket for name in reveal.drawn)
    quota = record.commitment.quota
    for bucket in Bucket:
        if counts[bucket] != quota.get(bucket, 0):
            detail = f"{counts[bucket]} {bucket.value} problems, not {quota.get(bucket, 0)}"
            return Check("quota", False, detail)
    clusters = {rows[name].cluster for name in reveal.drawn}
    if len(clusters) < len(reveal.drawn):
        return Check("quota", False, "two problems of one leak cluster")
    return Check("quota", True, "met in every bucket, one problem a leak cluster")


def _opened(record: DrawRecord, reveal: Reveal) -> Check:
    if not record.opened:
        return Check("problems", None, "not opened yet: they are when the race is over")
    try:
        leaves = [opening.leaf for opening in record.opened]
    except ValueError:
        return Check("problems", False, "a salt is not hex")
    if sorted(leaves) != sorted(reveal.drawn):
        return Check("problems", False, "what is opened is not what was drawn")
    return Check("problems", True, "each opens a row that was drawn")


def _checked(name: str, check: Callable[[], None], detail: str) -> Check:
    try:
        check()
    except DrawError as error:
        return Check(name, False, error.message[:LONGEST_DETAIL])
    return Check(name, True, detail)
