"""The one partition that rotation and export both use: which problem stands on which side.

Folded from the events of the stream `partition`; `arena/problems/placement.py` decides
what happens next. A cluster is learnt from or it is not: a training problem never stands
beside one that is evaluation or never-touch, and an event that would make it so is refused.
Evaluation problems never move and never leave. Pure, but for reading and writing a file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

import rfc8785

from arena.exceptions import PartitionError
from arena.journal import Event
from arena.problems.merging import SIDES
from arena.problems.pools import Side
from scoring.types import Bucket, Json, JsonObject

STREAM = "partition"
"""The journal's stream of these events."""
SCHEMA = "partition-1"

OPENED = "partition.opened"
PLACED = "partition.placed"
MERGED = "partition.merged"

# Codes of PartitionError. Stable.
TWO_SIDES = "partition.two_sides"
TWO_CLUSTERS = "partition.two_clusters"
FROZEN = "partition.frozen"
BROKEN = "partition.broken"


class Reason(StrEnum):
    """Why a problem stands where it stands. Stable: events and exports hold it."""

    SUITE = "suite"
    """It is of a public suite."""
    SUITE_CLUSTER = "suite_cluster"
    """It came in one cluster with a suite's problem."""
    CHOSEN = "chosen"
    """Its cluster was drawn for evaluation."""
    NEW_CLUSTER = "new_cluster"
    """Its cluster was new and not drawn."""
    TRAINING_CLUSTER = "training_cluster"
    """It joined a cluster that is trained on."""
    FROZEN_CLUSTER = "frozen_cluster"
    """It joined a cluster that stands in evaluation or is never touched, which takes nobody in."""
    MET_SUITE = "met_suite"
    """It was trained on until its cluster met a suite's problem."""
    MET_EVALUATION = "met_evaluation"
    """It was trained on until its cluster met one of evaluation."""
    MET_NEVER = "met_never_touch"
    """It was trained on until its cluster met one that is never touched."""


@dataclass(frozen=True, slots=True)
class Shares:
    """How much goes to evaluation: `per_bucket` problems, but at most `most` of a bucket.

    The default asks for the paper's 90. A bucket of at least two clusters gives one
    whatever `most` says, so that a small bank has an evaluation set at all.
    """

    per_bucket: Mapping[Bucket, int] = field(default_factory=lambda: dict.fromkeys(Bucket, 30))
    most: float = 0.25

    def to_json(self) -> JsonObject:
        """As events hold it."""
        return {
            "per_bucket": {bucket.value: self.per_bucket.get(bucket, 0) for bucket in Bucket},
            "most": self.most,
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> Shares:
        """Read what `to_json` wrote."""
        counts, most = value["per_bucket"], value["most"]
        if not isinstance(counts, dict) or not isinstance(most, int | float):
            raise PartitionError("shares are not readable", code=BROKEN)
        read = {Bucket(name): _count(n) for name, n in counts.items()}
        return cls(read, float(most))


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one problem stands, and why."""

    cluster: str
    bucket: Bucket
    side: Side
    reason: Reason


class Partition:
    """The state after some events. `apply` checks the cluster it touched after each of them."""

    def __init__(self) -> None:
        self.seed: str | None = None
        """What evaluation was drawn with; None until it was drawn."""
        self.shares: Shares | None = None
        self._standing: dict[str, Standing] = {}
        self._members: dict[str, list[str]] = {}
        self._aliases: dict[str, str] = {}

    @classmethod
    def folded(cls, events: Iterable[Event]) -> Partition:
        """The state that these events lead to. Raises PartitionError at the first that cannot."""
        partition = cls()
        for event in events:
            partition.apply(event)
        return partition

    # --- reading

    def __len__(self) -> int:
        return len(self._standing)

    def __contains__(self, problem_id: object) -> bool:
        return problem_id in self._standing

    def side_of(self, problem_id: str) -> Side | None:
        """The problem's side; None for a problem that was never placed: use it for nothing."""
        standing = self._standing.get(problem_id)
        return standing.side if standing else None

    def standing_of(self, problem_id: str) -> Standing | None:
        """Side, cluster, bucket and reason; None for a problem that was never placed."""
        return self._standing.get(problem_id)

    def problems(self, side: Side) -> tuple[str, ...]:
        """The ids of a side's problems, sorted."""
        return tuple(sorted(i for i, s in self._standing.items() if s.side is side))

    def clusters(self) -> Mapping[str, tuple[str, ...]]:
        """The members of each cluster, sorted."""
        return {name: tuple(sorted(self._members[name])) for name in sorted(self._members)}

    def members(self, cluster: str) -> tuple[str, ...]:
        """The problems of a cluster, by a name it has or had; empty for an unknown one."""
        return tuple(self._members.get(self.resolve(cluster), ()))

    def resolve(self, cluster: str) -> str:
        """The present name of a cluster that may have been absorbed by another."""
        while cluster in self._aliases:
            cluster = self._aliases[cluster]
        return cluster

    # --- folding

    def apply(self, event: Event) -> None:
        """Take one event in. Raises PartitionError, and is then of no more use."""
        try:
            if event.kind == OPENED:
                self._open(event.data)
            elif event.kind == PLACED:
                self._place(event.data)
            elif event.kind == MERGED:
                self._merge(event.data)
            else:
                raise PartitionError(f"unknown event {event.kind[:60]!r}", code=BROKEN)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise PartitionError(
                f"{event.kind[:60]}: cannot be read: {error!r:.200}", code=BROKEN
            ) from None

    def _open(self, data: JsonObject) -> None:
        if self.seed is not None:
            raise PartitionError("evaluation was drawn already, and is frozen", code=FROZEN)
        self.seed, self.shares = str(data["seed"]), Shares.from_json(_object(data["shares"]))

    def _place(self, data: JsonObject) -> None:
        cluster, side = str(data["cluster"]), Side(str(data["side"]))
        reason = Reason(str(data["reason"]))
        if cluster in self._aliases:
            raise PartitionError(f"cluster {cluster} was absorbed by another", code=BROKEN)
        members = self._members.setdefault(cluster, [])
        for problem_id, bucket in _object(data["problems"]).items():
            if problem_id in self._standing:
                known = self._standing[problem_id].cluster
                raise PartitionError(
                    f"problem {problem_id[:80]} stands already, in cluster {known}",
                    code=TWO_CLUSTERS if known != cluster else BROKEN,
                )
            self._standing[problem_id] = Standing(cluster, Bucket(str(bucket)), side, reason)
            members.append(problem_id)
        self._withdraw(cluster, data)
        self._check(cluster)

    def _merge(self, data: JsonObject) -> None:
        cluster = str(data["cluster"])
        if cluster in self._aliases:
            raise PartitionError(f"cluster {cluster} was absorbed by another", code=BROKEN)
        members = self._members.setdefault(cluster, [])
        for old in map(str, _list(data["absorbed"])):
            if old == cluster:
                raise PartitionError(f"cluster {cluster} cannot absorb itself", code=BROKEN)
            for problem_id in self._members.pop(old):
                self._standing[problem_id] = replace(self._standing[problem_id], cluster=cluster)
                members.append(problem_id)
            self._aliases[old] = cluster
        self._withdraw(cluster, data)
        self._check(cluster)

    def _withdraw(self, cluster: str, data: JsonObject) -> None:
        """The problems that the event says leave training, for good."""
        for problem_id, reason in _object(data["left"]).items():
            standing = self._standing[problem_id]
            if standing.cluster != cluster or standing.side is not Side.TRAINING:
                raise PartitionError(
                    f"problem {problem_id[:80]} cannot leave {standing.side.value}: "
                    "only training problems leave, with their cluster",
                    code=FROZEN,
                )
            self._standing[problem_id] = replace(
                standing, side=Side.NEVER, reason=Reason(str(reason))
            )

    def _check(self, cluster: str) -> None:
        sides = {i: self._standing[i].side for i in self._members[cluster]}
        if leavers := SIDES.leavers(sides):
            others = sorted({side.value for side in sides.values()} - {Side.TRAINING.value})
            raise PartitionError(
                f"cluster {cluster} is on two sides: {leavers[0][:80]} is training, "
                f"others are {' and '.join(others)}",
                code=TWO_SIDES,
            )

    def check(self) -> None:
        """Prove from this state alone that no cluster is trained on and held back.

        Raises PartitionError (`partition.two_sides`). State read from JSON is checked so.
        """
        for cluster in self._members:
            self._check(cluster)

    # --- as a file

    def to_json(self) -> JsonObject:
        """The whole state, sorted: clusters with their problems, old names, how it was drawn."""
        clusters: JsonObject = {}
        for cluster, members in self.clusters().items():
            rows: JsonObject = {}
            for problem_id in members:
                at = self._standing[problem_id]
                rows[problem_id] = {
                    "bucket": at.bucket.value,
                    "side": at.side.value,
                    "reason": at.reason.value,
                }
            clusters[cluster] = rows
        return {
            "schema": SCHEMA,
            "seed": self.seed,
            "shares": self.shares.to_json() if self.shares else None,
            "clusters": clusters,
            "aliases": {old: self._aliases[old] for old in sorted(self._aliases)},
        }

    @classmethod
    def from_json(cls, value: Json) -> Partition:
        """Read what `to_json` wrote, and check it.

        Raises PartitionError for another schema, a problem in two clusters, a cluster on
        two sides, and whatever else cannot be.
        """
        partition = cls()
        try:
            state = _object(value)
            if state["schema"] != SCHEMA:
                raise PartitionError(
                    f"schema {str(state['schema'])[:40]!r} is not {SCHEMA}", code=BROKEN
                )
            if state["seed"] is not None:
                partition._open(state)
            aliases = {old: str(new) for old, new in _object(state["aliases"]).items()}
            for cluster, rows in _object(state["clusters"]).items():
                partition._read_cluster(cluster, _object(rows))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise PartitionError(f"no partition: {error!r:.200}", code=BROKEN) from None
        for old in aliases:
            seen, name = {old}, old
            while (name := aliases.get(name, "")) in aliases and name not in seen:
                seen.add(name)
            if old in partition._members or name not in partition._members:
                raise PartitionError(f"alias {old[:80]} leads nowhere", code=BROKEN)
        partition._aliases = aliases
        partition.check()
        return partition

    def _read_cluster(self, cluster: str, rows: JsonObject) -> None:
        if not rows:
            raise PartitionError(f"cluster {cluster[:80]} is empty", code=BROKEN)
        self._members[cluster] = list(rows)
        for problem_id, row in rows.items():
            if problem_id in self._standing:
                raise PartitionError(
                    f"problem {problem_id[:80]} stands in two clusters, "
                    f"{self._standing[problem_id].cluster[:80]} and {cluster[:80]}",
                    code=TWO_CLUSTERS,
                )
            said = _object(row)
            self._standing[problem_id] = Standing(
                cluster,
                Bucket(str(said["bucket"])),
                Side(str(said["side"])),
                Reason(str(said["reason"])),
            )

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON (RFC 8785) of `to_json`, in hex."""
        return hashlib.sha256(rfc8785.dumps(self.to_json())).hexdigest()

    @property
    def evaluation_hash(self) -> str:
        """SHA-256 over the sorted ids of evaluation: the same for ever once it is drawn."""
        return hashlib.sha256("\n".join(self.problems(Side.EVALUATION)).encode()).hexdigest()


def write_partition(partition: Partition, path: Path) -> None:
    """Write `partition.json`, whole or not at all. Raises PartitionError."""
    text = json.dumps(partition.to_json(), ensure_ascii=False, indent=1) + "\n"
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise PartitionError(f"{path}: cannot be written: {error.strerror}") from None


def read_partition(path: Path) -> Partition:
    """Read what `write_partition` wrote, and check it. Raises PartitionError naming the file."""
    try:
        value: Json = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise PartitionError(f"{path}: cannot be read: {error!r:.200}", code=BROKEN) from None
    try:
        return Partition.from_json(value)
    except PartitionError as error:
        raise PartitionError(f"{path}: {error.message}", code=error.code) from None


def _object(value: Json) -> JsonObject:
    if not isinstance(value, dict):
        raise TypeError("expected an object")
    return value


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise TypeError("expected a list")
    return value


def _count(value: Json) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError("expected a count")
    return value
