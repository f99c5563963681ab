"""The problem bank: what folding the stream `bank` gives.

`apply` takes one event in and refuses what the rules forbid, so that no journal can hold a
bank that is not one; `decisions`, `intake` and `rotation` make events and change nothing.
Each event costs as much as it has problems, however large the bank. Pure.

What always holds:

- the live problems of a cluster stand in one pool (or, for suites, in suites only);
- what was ever open or drawn for a race, or shares a cluster with such a problem
  (*exposed*), never comes to held-out;
- suites never enter the bank: a cluster with a suite's problem has none of the bank's;
- retired is for good: only a new version of a problem stands anew;
- time does not go back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import cast

from arena.exceptions import BankError
from arena.journal import Event
from arena.problems.holdings import (
    BAD_EVENT,
    BREAKS_CLUSTER,
    CLOCK_BACK,
    MEETS_SUITE,
    NOT_DRAWABLE,
    OTHER_POOL,
    STANDS_ALREADY,
    TWO_CLUSTERS,
    UNKNOWN_PROBLEM,
    WAS_EXPOSED,
    Cluster,
    Holding,
    Step,
    bucket_in,
    read_pool,
)
from arena.problems.pools import Pool
from scoring.types import Json, JsonObject, Problem

STREAM = "bank"
"""The journal's stream of these events."""

IMPORTED = "problem.imported"
GROWN = "problem.grown"
RETIRED = "problem.retired"
OPENED = "problem.opened"
RACED = "problem.raced"
MERGED = "cluster.merged"
ROTATED = "bank.rotated"


class Bank:
    """The state after some events; `apply` checks and takes in the next one."""

    def __init__(self) -> None:
        self.entries = 0
        """How many events were taken in: where the stream stood."""
        self.clock: datetime | None = None
        """The time of the last event."""
        self.rotated_at: datetime | None = None
        """The time of the last rotation."""
        self._holdings: dict[str, Holding] = {}
        self._clusters: dict[str, Cluster] = {}
        self._aliases: dict[str, str] = {}
        self._standing: dict[Pool, dict[str, None]] = {pool: {} for pool in Pool}
        self._products: dict[str, str] = {}
        self._apply: dict[str, Callable[[JsonObject, datetime], None]] = {
            IMPORTED: self._admit,
            GROWN: self._admit,
            RETIRED: self._retire,
            OPENED: self._open,
            RACED: self._race,
            MERGED: self._merge,
            ROTATED: self._rotate,
        }

    @classmethod
    def folded(cls, events: Iterable[Event]) -> Bank:
        """The bank that these events lead to. Raises BankError at the first that cannot be."""
        bank = cls()
        for event in events:
            bank.apply(event)
        return bank

    # --- reading

    def __len__(self) -> int:
        return len(self._holdings)

    def __iter__(self) -> Iterator[Holding]:
        """All problems, suites and retired ones among them, in the order they came."""
        return iter(self._holdings.values())

    def __contains__(self, problem_id: object) -> bool:
        return problem_id in self._holdings

    def get(self, problem_id: str) -> Holding | None:
        """What is held under this id; None for an unknown one."""
        return self._holdings.get(problem_id)

    def need(self, problem_id: str) -> Holding:
        """What is held under this id. Raises BankError (`bank.unknown_problem`)."""
        found = self._holdings.get(problem_id)
        if found is None:
            raise BankError(
                f"the bank has no problem {problem_id[:80]!r}",
                code=UNKNOWN_PROBLEM,
                remedy="arena problems list --pool names the problems of a pool",
            )
        return found

    def problem(self, problem_id: str) -> Problem:
        """The problem for a race, its pool and cluster set. Raises BankError."""
        return self.need(problem_id).problem

    def resolve(self, cluster: str) -> str:
        """The present name of a cluster that may have been absorbed by another."""
        while cluster in self._aliases:
            cluster = self._aliases[cluster]
        return cluster

    def cluster(self, name: str) -> Cluster | None:
        """A cluster by a name it has or had. Not to be changed."""
        return self._clusters.get(self.resolve(name))

    def clusters(self, pool: Pool) -> Iterator[Cluster]:
        """The clusters whose live problems stand in `pool`, in the order they came there."""
        return (self._clusters[name] for name in self._standing[pool])

    def live(self, pool: Pool) -> Iterator[Holding]:
        """The problems that stand in `pool`; of retired ones none."""
        # A cluster may have problems of several suites.
        for place in (p for p in Pool if p is pool or (p.is_suite and pool.is_suite)):
            for cluster in self.clusters(place):
                held = (self._holdings[i] for i in cluster.live)
                yield from (holding for holding in held if holding.pool is pool)

    def drawable(self) -> tuple[Holding, ...]:
        """What a race may draw: held out, and of a cluster that was never exposed.

        Sorted by id, so that a draw depends on nothing but the set.
        """
        fresh = (c for c in self.clusters(Pool.HELD_OUT) if not c.exposed)
        return tuple(self._holdings[i] for i in sorted(i for c in fresh for i in c.live))

    def product_cluster(self, product_id: str) -> Cluster | None:
        """The cluster of the problems that this product answers; None for a fresh product."""
        name = self._products.get(product_id)
        return None if name is None else self.cluster(name)

    @property
    def products(self) -> Iterable[str]:
        """Every product that answers a problem here, retired ones and suites included."""
        return self._products.keys()

    # --- folding

    def apply(self, event: Event) -> None:
        """Take one event in. Raises BankError when it cannot be, and is then of no more use."""
        if event.at.tzinfo is None:
            raise BankError("an event's time needs a time zone", code=BAD_EVENT)
        self.check_clock(event.at)
        apply = self._apply.get(event.kind)
        if apply is None:
            raise BankError(f"unknown event {event.kind[:60]!r}", code=BAD_EVENT)
        try:
            apply(event.data, event.at)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BankError(
                f"{event.kind}: cannot be read: {error!r:.200}", code=BAD_EVENT
            ) from None
        self.clock = event.at
        self.entries += 1

    def check_clock(self, at: datetime) -> None:
        """Raises BankError (`bank.clock_back`) for a time before the last event's."""
        if self.clock is not None and at < self.clock:
            raise BankError(
                f"the clock went back: it is {at.isoformat()}, and something happened at "
                f"{self.clock.isoformat()}",
                code=CLOCK_BACK,
                remedy="set the clock of this machine right",
            )

    def _admit(self, data: JsonObject, at: datetime) -> None:
        content = cast("JsonObject", data["problem"])
        problem_id, pool = str(content["problem_id"]), read_pool(data["pool"])
        name, version = str(data["cluster"]), int(cast("int", data["version"]))
        before = self._holdings.get(problem_id)
        if before is not None and not before.retired:
            raise BankError(f"problem {problem_id[:80]} stands already", code=STANDS_ALREADY)
        if name in self._aliases or (before is not None and before.cluster != name):
            raise BankError(
                f"problem {problem_id[:80]} has two clusters: {name}, and "
                f"{before.cluster if before else self.resolve(name)}",
                code=TWO_CLUSTERS,
            )
        if pool is Pool.RETIRED or version != (before.version + 1 if before else 1):
            raise ValueError(f"version {version} in {pool}")
        step = Step(pool, at, version, str(data["reason"]))
        holding = Holding(
            problem_id=problem_id,
            content=content,
            content_hash=str(data["content_hash"]),
            bucket=bucket_in(content),
            version=version,
            provenance=cast("JsonObject", data["provenance"]),
            cluster=name,
            pool=pool,
            history=(*before.history, step) if before else (step,),
            raced=before.raced if before else (),
        )
        cluster = self._clusters.get(name) or Cluster(name, holding.bucket, at)
        self._check_entry(cluster, holding)
        self._clusters[name] = cluster
        self._holdings[problem_id] = holding
        for product_id in holding.products:
            self._products[product_id] = name
        cluster.members[problem_id] = cluster.live[problem_id] = None
        # With problems of several suites it stays under the first.
        self._settle(cluster, cluster.pool if cluster.suite else pool, at)

    def _check_entry(self, cluster: Cluster, holding: Holding) -> None:
        what = f"problem {holding.problem_id[:80]} cannot come to {holding.pool}: its cluster"
        if cluster.suite and not holding.pool.is_suite:
            raise BankError(f"{what} has a suite's problem", code=MEETS_SUITE)
        if holding.pool is Pool.HELD_OUT and cluster.exposed:
            raise BankError(f"{what} was open or raced", code=WAS_EXPOSED)
        pool = cluster.pool
        if pool is not None and pool is not holding.pool and not (pool.is_suite and cluster.suite):
            raise BankError(f"{what} stands in {pool}", code=OTHER_POOL)

    def _settle(self, cluster: Cluster, pool: Pool | None, at: datetime) -> None:
        """Note where the cluster's live problems stand now."""
        if cluster.pool is not pool:
            if cluster.pool is not None:
                self._standing[cluster.pool].pop(cluster.name, None)
            cluster.since = at
        cluster.pool = pool
        if pool is not None:
            self._standing[pool][cluster.name] = None
            cluster.suite = cluster.suite or pool.is_suite
            cluster.exposed = cluster.exposed or pool is Pool.OPEN

    def _retire(self, data: JsonObject, at: datetime) -> None:
        for problem_id in _texts(data["problems"]):
            self._leave(problem_id, at, str(data["reason"]))

    def _leave(self, problem_id: str, at: datetime, reason: str) -> None:
        holding = self.need(problem_id)
        if holding.pool not in (Pool.OPEN, Pool.HELD_OUT):
            raise BankError(
                f"problem {problem_id[:80]} is in {holding.pool}, and cannot retire",
                code=OTHER_POOL,
            )
        self._holdings[problem_id] = holding.moved(Pool.RETIRED, at, reason)
        cluster = self._clusters[holding.cluster]
        del cluster.live[problem_id]
        if not cluster.live:
            self._settle(cluster, None, at)

    def _open(self, data: JsonObject, at: datetime) -> None:
        self._open_whole(_texts(data["problems"]), at, str(data["reason"]))

    def _open_whole(self, problem_ids: Sequence[str], at: datetime, reason: str) -> None:
        """Whole clusters from held-out to open: opening a part would give the rest away."""
        clusters = {self.need(i).cluster: None for i in problem_ids}
        given = set(problem_ids)
        for name in clusters:
            cluster = self._clusters[name]
            if cluster.pool is not Pool.HELD_OUT:
                raise BankError(f"cluster {name} is not in {Pool.HELD_OUT}", code=OTHER_POOL)
            if not given.issuperset(cluster.live):
                raise BankError(f"cluster {name} would be broken", code=BREAKS_CLUSTER)
            for problem_id in cluster.live:
                given.discard(problem_id)
                holding = self._holdings[problem_id]
                self._holdings[problem_id] = holding.moved(Pool.OPEN, at, reason)
            self._settle(cluster, Pool.OPEN, at)
        if given:
            raise BankError(f"problem {min(given)[:80]} is retired", code=OTHER_POOL)

    def _race(self, data: JsonObject, at: datetime) -> None:
        race_id, drawn = str(data["race_id"]), _texts(data["problems"])
        clusters = {}
        for problem_id in drawn:  # all are looked at before any: a draw may take two of a cluster
            holding = self.need(problem_id)
            cluster = clusters[holding.cluster] = self._clusters[holding.cluster]
            if holding.pool is not Pool.HELD_OUT or cluster.exposed:
                raise BankError(
                    f"problem {problem_id[:80]} cannot be raced: it is in {holding.pool}"
                    + (", and its cluster was open or raced before" if cluster.exposed else ""),
                    code=NOT_DRAWABLE,
                )
        for problem_id in drawn:
            holding = self._holdings[problem_id]
            self._holdings[problem_id] = replace(holding, raced=(*holding.raced, race_id))
        for cluster in clusters.values():
            cluster.exposed = True

    def _merge(self, data: JsonObject, at: datetime) -> None:
        into = self._clusters[str(data["cluster"])]
        for name in _texts(data["absorbed"]):
            other = self._clusters[name]
            pools = {cluster.pool for cluster in (into, other) if cluster.pool is not None}
            suite = into.suite or other.suite
            if other is into:
                raise ValueError("a cluster absorbs itself")
            if suite and not all(pool.is_suite for pool in pools):
                raise BankError(f"cluster {into.name} or {name} meets a suite", code=MEETS_SUITE)
            if len(pools) > 1 and not suite:
                raise BankError(
                    f"clusters {into.name} and {name} stand in {into.pool} and {other.pool}",
                    code=OTHER_POOL,
                )
            self._absorb(into, other, at)

    def _absorb(self, into: Cluster, other: Cluster, at: datetime) -> None:
        since = max(into.since, other.since)
        if other.pool is not None:
            self._standing[other.pool].pop(other.name, None)
        for problem_id in other.members:
            self._holdings[problem_id] = replace(self._holdings[problem_id], cluster=into.name)
        into.members |= other.members
        into.live |= other.live
        into.suite, into.exposed = into.suite or other.suite, into.exposed or other.exposed
        self._settle(into, into.pool or other.pool, at)
        into.since = since
        self._aliases[other.name] = into.name
        del self._clusters[other.name]

    def _rotate(self, data: JsonObject, at: datetime) -> None:
        opened, retired = (cast("JsonObject", data[name]) for name in ("opened", "retired"))
        for name, members in retired.items():
            ids = _texts(members)
            if set(ids) != self._clusters[name].live.keys():
                raise BankError(f"cluster {name} would be broken", code=BREAKS_CLUSTER)
            for problem_id in ids:
                self._leave(problem_id, at, "rotation")
        for members in opened.values():
            self._open_whole(_texts(members), at, "rotation")
        self.rotated_at = at


def _texts(value: Json) -> list[str]:
    """A list of ids, each once."""
    if not isinstance(value, list) or len(value) != len(set(map(str, value))):
        raise TypeError("expected a list without repetition")
    return [str(item) for item in value]
