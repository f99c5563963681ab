"""Problems that resemble one another only where a test says so, and banks of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property

from arena.journal import Event
from arena.problems.bank import Bank
from arena.problems.clusters import Clusters
from arena.problems.holdings import Origin, Provenance
from arena.problems.intake import Intake, Taken, clusters_of
from arena.problems.pools import Pool
from scoring.types import Bucket, Problem, Reward, Voucher

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
FILE = Provenance(Origin.FILE, name="some.jsonl", sha256="ab" * 32)
VOUCHER = Voucher("platform", 100.0, "fixed", 90.0, face_value=20.0)
_SYLLABLES = ("ba", "ko", "mi", "tu", "re", "sa", "ni", "vo", "lu", "pe", "da", "gi", "fo", "zu")


def after(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def words(seed: object, count: int = 7) -> str:
    """Words that nothing else has."""
    rng = random.Random(str(seed))
    return " ".join("".join(rng.choices(_SYLLABLES, k=4)) for _ in range(count))


def problem(
    name: str,
    *products: str,
    bucket: Bucket | None = None,
    query: str | None = None,
    pool: str | None = None,
    cluster: str | None = None,
) -> Problem:
    """A problem that these products answer; by default one of its own."""
    kind = bucket or (Bucket.SHOP if len(products) > 1 else Bucket.PRODUCT)
    ids = products or (f"product-of-{name}",)
    return Problem(
        problem_id=name,
        query=query or f"Looking for {words(name)}.",
        bucket=kind,
        rewards=tuple(
            Reward(i, title=(words(i),), attributes=({words(i, 1): (words(f"v{i}", 2),)},))
            for i in ids
        ),
        voucher=VOUCHER if kind is Bucket.VOUCHER else None,
        difficulty="easy",
        pool=pool,
        cluster=cluster,
    )


class Banked:
    """A bank with its clusters and the journal so far."""

    def __init__(self, events: Sequence[Event] = ()) -> None:
        self.bank = Bank.folded(events)
        self.events = list(events)
        self.at = START

    @cached_property
    def clusters(self) -> Clusters:
        return clusters_of(self.events)

    def bring(self, pool: Pool, *problems: Problem) -> Taken:
        """Bring problems, all at the present time."""
        taken = Intake(self.bank, self.clusters, self.at).take(problems, pool, FILE)
        self.events += taken.events
        return taken

    def apply(self, events: Iterable[Event]) -> None:
        """Take events in."""
        for event in events:
            self.bank.apply(event)
            self.events.append(event)

    def pool_of(self, name: str) -> Pool:
        return self.bank.need(name).pool
