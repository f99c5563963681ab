"""What happens to the partition when problems come: decided, as events, and not applied.

- Suites are never touched, nor is anything that comes in one cluster with them.
- Evaluation is drawn once, by whole clusters, stratified by bucket, in an order that the
  seed gives; then it is frozen. It never loses a problem, and takes none in: what joins an
  evaluation cluster later is never touched.
- Every other new cluster is trained on.
- When clusters meet, evaluation and never-touch stay, training leaves for never-touch.

Pure: the same partition, problems and clusters give the same events, whatever the order.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from arena.exceptions import PartitionError
from arena.journal import Event, Journal
from arena.problems.merging import SIDES
from arena.problems.partition import (
    FROZEN,
    MERGED,
    OPENED,
    PLACED,
    STREAM,
    TWO_CLUSTERS,
    Partition,
    Reason,
    Shares,
)
from arena.problems.pools import Side
from scoring.types import Bucket, Json, Problem


class ClusterNames(Protocol):
    """The part of `Clusters` that is needed here."""

    def find(self, problem_id: str) -> str | None:
        """The name of the problem's cluster; None for a problem it does not know."""
        ...

    def resolve(self, cluster: str) -> str:
        """The present name of a cluster; an unknown name stands for itself."""
        ...


def decide(
    partition: Partition,
    problems: Iterable[Problem],
    clusters: ClusterNames,
    *,
    seed: str,
    at: datetime,
    shares: Shares | None = None,
    top_up: bool = False,
) -> list[Event]:
    """The events that bring `problems` into the partition, and its clusters up to date.

    Problems that stand already are left out, so all may be given each time. The first call
    that can draws evaluation (`shares`, default `Shares()`) and freezes it: a bucket needs
    two new clusters for that. `top_up` fills buckets that were short, from clusters that are
    new in this call and so were never trained on; without it they all go to training.

    Raises PartitionError for a problem given with two clusters, one that no cluster has,
    and another seed or other shares than evaluation was drawn with.
    """
    _refuse_other_plan(partition, seed, shares)
    arrivals = _arrivals(partition, problems, clusters)
    events = _merges(partition, clusters, at)
    present = partition if not events else _after(partition, events)
    grown = {name: come for name, come in arrivals.items() if present.members(name)}
    fresh = {name: come for name, come in arrivals.items() if name not in grown}
    for name in sorted(grown):
        events += _grow(present, name, grown[name], at)
    clean = {name: come for name, come in sorted(fresh.items()) if not any(map(is_suite, come))}
    chosen: frozenset[str] = frozenset()
    if clean and (partition.seed is None or top_up):
        used = partition.shares or shares or Shares()
        chosen = _draw(present, clean, seed, used)
        if chosen and partition.seed is None:
            events.append(Event(OPENED, at, {"seed": seed, "shares": used.to_json()}))
    for name in sorted(fresh):
        events += _found(name, fresh[name], name in chosen, at)
    return events


async def extend(
    journal: Journal,
    problems: Iterable[Problem],
    clusters: ClusterNames,
    *,
    seed: str,
    at: datetime,
    shares: Shares | None = None,
    top_up: bool = False,
) -> Partition:
    """Decide on the journal's partition, append the events, and return the partition after.

    Raises PartitionError as `decide`, JournalConflictError when somebody else appended in
    between: nothing was written then, and the call may be made again.
    """
    entries = await journal.read(STREAM)
    partition = Partition.folded(entry.event for entry in entries)
    events = decide(partition, problems, clusters, seed=seed, at=at, shares=shares, top_up=top_up)
    for event in events:  # first here: what cannot be folded is never written
        partition.apply(event)
    if events:
        await journal.append(STREAM, events, after=len(entries))
    return partition


async def partition_of(journal: Journal) -> Partition:
    """The partition as the journal has it."""
    return Partition.folded(entry.event for entry in await journal.read(STREAM))


def is_suite(problem: Problem) -> bool:
    """Whether it belongs to a public suite, also one that is newer than this program."""
    return problem.pool is not None and problem.pool.startswith("suite:")


def _refuse_other_plan(partition: Partition, seed: str, shares: Shares | None) -> None:
    if partition.seed is None:
        return
    if partition.seed != seed or (shares is not None and shares != partition.shares):
        raise PartitionError(
            "evaluation was drawn with another seed or other shares, and is frozen",
            code=FROZEN,
            remedy=f"keep the seed {partition.seed!r} and the shares it was drawn with",
        )


def _arrivals(
    partition: Partition, problems: Iterable[Problem], clusters: ClusterNames
) -> dict[str, list[Problem]]:
    """The problems that do not stand yet, by the cluster they come in; sorted by id."""
    seen: dict[str, Problem] = {}
    for problem in problems:
        if seen.setdefault(problem.problem_id, problem) != problem:
            raise PartitionError(
                f"problem {problem.problem_id[:80]} was given twice, and differently",
                code=TWO_CLUSTERS,
            )
    arrivals: dict[str, list[Problem]] = {}
    for problem_id in sorted(seen):
        name = clusters.find(problem_id)
        if name is None:
            raise PartitionError(
                f"problem {problem_id[:80]} has no cluster", remedy="cluster the problems first"
            )
        if problem_id not in partition:
            arrivals.setdefault(partition.resolve(name), []).append(seen[problem_id])
    return arrivals


def _merges(partition: Partition, clusters: ClusterNames, at: datetime) -> list[Event]:
    """One event for each present cluster whose problems stand under other names so far."""
    under: dict[str, list[str]] = {}
    for old, members in partition.clusters().items():
        found = {name for i in members if (name := clusters.find(i)) is not None}
        # Clusters rebuilt in another order have other names: what was absorbed here stays so.
        names = {partition.resolve(name) for name in found}
        if len(names) > 1:
            raise PartitionError(
                f"the problems of cluster {old} have two clusters: {', '.join(sorted(names))}",
                code=TWO_CLUSTERS,
                remedy="clusters only ever merge: rebuild them from all problems",
            )
        under.setdefault(names.pop() if names else clusters.resolve(old), []).append(old)
    events = []
    for name, olds in sorted(under.items()):
        absorbed = [old for old in olds if old != name]
        if absorbed:
            left = _leavers(partition, [i for old in olds for i in partition.members(old)])
            events.append(_event(MERGED, at, name, left, absorbed=absorbed))
    return events


def _leavers(
    partition: Partition, members: Sequence[str], suite: bool = False
) -> dict[str, Reason]:
    """Who of a cluster's members leaves training, and why. `suite`: one is coming in."""
    standings = {i: partition.standing_of(i) for i in members}
    sides = {i: standing.side for i, standing in standings.items() if standing}
    reasons = {standing.reason for standing in standings.values() if standing}
    if suite or Reason.SUITE in reasons:
        reason = Reason.MET_SUITE
    elif Side.EVALUATION in sides.values():
        reason = Reason.MET_EVALUATION
    else:
        reason = Reason.MET_NEVER
    if suite:
        sides[""] = Side.NEVER  # stands for the one that is coming
    return dict.fromkeys(SIDES.leavers(sides), reason)


def _grow(partition: Partition, name: str, come: Sequence[Problem], at: datetime) -> list[Event]:
    """Problems that join a cluster which stands already."""
    members = partition.members(name)
    suites = [p for p in come if is_suite(p)]
    others = [p for p in come if not is_suite(p)]
    trained = all(partition.side_of(i) is Side.TRAINING for i in members)
    events = []
    if suites:
        left = _leavers(partition, members, suite=True)
        events.append(_placed(at, name, suites, Side.NEVER, Reason.SUITE, left))
    if others and suites and trained:
        events.append(_placed(at, name, others, Side.NEVER, Reason.SUITE_CLUSTER))
    elif others and trained:
        events.append(_placed(at, name, others, Side.TRAINING, Reason.TRAINING_CLUSTER))
    elif others:
        events.append(_placed(at, name, others, Side.NEVER, Reason.FROZEN_CLUSTER))
    return events


def _found(name: str, come: Sequence[Problem], chosen: bool, at: datetime) -> list[Event]:
    """Problems of a cluster that is new."""
    suites = [p for p in come if is_suite(p)]
    others = [p for p in come if not is_suite(p)]
    if not suites:
        if chosen:
            return [_placed(at, name, others, Side.EVALUATION, Reason.CHOSEN)]
        return [_placed(at, name, others, Side.TRAINING, Reason.NEW_CLUSTER)]
    events = [_placed(at, name, suites, Side.NEVER, Reason.SUITE)]
    if others:
        events.append(_placed(at, name, others, Side.NEVER, Reason.SUITE_CLUSTER))
    return events


def _draw(
    partition: Partition, fresh: Mapping[str, Sequence[Problem]], seed: str, shares: Shares
) -> frozenset[str]:
    """Whole clusters for evaluation, until each bucket has its count.

    Clusters come in the order of a hash of seed and name, so that one more cluster does
    not reshuffle the others. A cluster that would overfill a bucket is passed over, which
    also keeps great heaps of alike problems in training, where they do no harm.
    """
    room = _room(partition, fresh, shares)
    chosen = set()
    for name in sorted(fresh, key=lambda n: hashlib.sha256(f"{seed}\0{n}".encode()).digest()):
        needs = Counter(problem.bucket for problem in fresh[name])
        if all(needs[bucket] <= room[bucket] for bucket in needs):
            room.subtract(needs)
            chosen.add(name)
    return frozenset(chosen)


def _room(
    partition: Partition, fresh: Mapping[str, Sequence[Problem]], shares: Shares
) -> Counter[Bucket]:
    """How many problems of each bucket evaluation may still take."""
    standing = [s for i in partition.problems(Side.EVALUATION) if (s := partition.standing_of(i))]
    have = Counter(s.bucket for s in standing)
    trained = [s for i in partition.problems(Side.TRAINING) if (s := partition.standing_of(i))]
    total = have + Counter(s.bucket for s in trained)
    total.update(problem.bucket for come in fresh.values() for problem in come)
    spread = Counter(bucket for come in fresh.values() for bucket in {p.bucket for p in come})
    room: Counter[Bucket] = Counter()
    for bucket in Bucket:
        most = max(int(total[bucket] * shares.most), int(spread[bucket] > 1))
        room[bucket] = max(0, min(shares.per_bucket.get(bucket, 0), most) - have[bucket])
    return room


def _placed(
    at: datetime,
    cluster: str,
    problems: Sequence[Problem],
    side: Side,
    reason: Reason,
    left: Mapping[str, Reason] | None = None,
) -> Event:
    rows: dict[str, Json] = {p.problem_id: p.bucket.value for p in problems}
    return _event(
        PLACED, at, cluster, left or {}, side=side.value, reason=reason.value, problems=rows
    )


def _event(
    kind: str, at: datetime, cluster: str, left: Mapping[str, Reason], **data: Json | list[str]
) -> Event:
    leavers: dict[str, Json] = {i: reason.value for i, reason in left.items()}
    values: dict[str, Json] = {
        k: list[Json](v) if isinstance(v, list) else v for k, v in data.items()
    }
    return Event(kind, at, {"cluster": cluster, **values, "left": leavers})


def _after(partition: Partition, events: Iterable[Event]) -> Partition:
    """A copy with these events taken in."""
    copy = Partition.from_json(partition.to_json())
    for event in events:
        copy.apply(event)
    return copy
