"""How problems come into the bank, and what happens to those that stand there.

The rules, for a problem that comes to a pool:

- It stands already with the same content: nothing happens. With another content it is
  refused: a new version needs the old one retired first.
- A **suite** comes in whatever it meets. The bank's problems of its clusters leave: retired.
- To **held-out** comes nothing that shares a cluster with a suite, or with a problem that
  was ever open or raced. To **open** comes nothing that shares a cluster with a suite or a
  held-out problem. Such problems are *left out*, and counted by reason.
- Where a problem that comes in shows that clusters are one, they merge. One that is left
  out joins nobody.
- Where clusters of different pools turn out to be one all the same (a suite in between, a
  newer program that sees more), the rule of `merging` says who leaves: held-out stays, open
  leaves, and before a suite everyone does.

Nothing here touches a disk; `Intake` changes the bank and the clusters that it is given,
problem by problem, since each one meets those before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, cast

from arena.exceptions import BankError
from arena.journal import Event
from arena.problems.bank import GROWN, IMPORTED, MERGED, RETIRED, Bank
from arena.problems.holdings import (
    OTHER_CONTENT,
    OTHER_POOL,
    TWO_CLUSTERS,
    TWO_POOLS,
    UNKNOWN_POOL,
    Cluster,
    Holding,
    Origin,
    Provenance,
    content_hash,
    content_of,
)
from arena.problems.merging import POOLS
from arena.problems.pools import Pool
from scoring.reading import read_problem
from scoring.types import Json, JsonObject, Problem

if TYPE_CHECKING:  # loads datasketch, which not every command needs
    from arena.problems.clusters import Clusters

_VERSION_MARK = "\n"
"""Between a problem's id and its version, in the index of clusters; in no id, which are
printable."""


class LeftOut(StrEnum):
    """Why a problem was not let into the bank. Stable: `--json` shows it."""

    SUITE = "meets_suite"
    """Its cluster has a suite's problem."""
    HELD_OUT = "meets_held_out"
    """Open, it would give a held-out problem away."""
    OPEN = "meets_open"
    """Held out, it would be known from an open problem."""
    EXPOSED = "meets_exposed"
    """Held out, it would be known from a problem that was open or raced once."""
    RETIRED = "retired"
    """It is retired, and the same content does not come back."""
    KNOWN = "meets_known"
    """It would join problems that stand there, and a cluster of its own was asked for."""


@dataclass(frozen=True, slots=True)
class Left:
    """A problem of the bank that had to leave, and why."""

    problem_id: str
    reason: str


@dataclass(slots=True)
class Taken:
    """What came of problems that were brought to the bank."""

    events: list[Event] = field(default_factory=list)
    """To be appended to the stream, in this order; applied to the bank already."""
    admitted: list[str] = field(default_factory=list)
    already: list[str] = field(default_factory=list)
    """Problems that stood there, the same."""
    left_out: dict[str, LeftOut] = field(default_factory=dict)
    left: list[Left] = field(default_factory=list)
    """Who of the bank was retired for them."""
    merged: int = 0
    """Clusters that were absorbed by another."""

    def left_out_by_reason(self) -> dict[str, int]:
        """How many were left out, by reason."""
        return dict(sorted(Counter(reason.value for reason in self.left_out.values()).items()))


class Intake:
    """Brings problems into a bank. When it raises, bank and clusters are of no more use."""

    def __init__(self, bank: Bank, clusters: Clusters, at: datetime) -> None:
        """`clusters` has the problems of the bank, as `clusters_of` or earlier intakes made it."""
        bank.check_clock(at)
        self.taken = Taken()
        self._bank = bank
        self._clusters = clusters
        self._at = at

    def take(self, problems: Iterable[Problem], pool: Pool, provenance: Provenance) -> Taken:
        """Bring each of the problems; what came of all so far. Raises BankError."""
        for problem in problems:
            self.bring(problem, pool, provenance)
        return self.taken

    def bring(
        self, problem: Problem, pool: Pool, provenance: Provenance, *, alone: bool = False
    ) -> bool:
        """Bring one problem; whether it stands in the bank now. Raises BankError.

        With `alone` one that is of any cluster of the bank is left out.
        `bank.unknown_pool` for retired; `bank.two_pools` and `bank.two_clusters` for a
        problem that names another pool or cluster than it comes to; `bank.other_content`
        and `bank.other_pool` for one that stands already, otherwise.
        """
        _check_pool(problem, pool)
        content = content_of(problem)
        digest = content_hash(content)
        before = self._bank.get(problem.problem_id)
        if before is not None and self._stands(before, pool, digest):
            self.taken.already.append(problem.problem_id)
            return True
        if before is not None and before.content_hash == digest and not pool.is_suite:
            self.taken.left_out[problem.problem_id] = LeftOut.RETIRED
            return False
        key = indexed(problem, before.version + 1 if before else 1)
        met = self._met(key)
        self._check_cluster(problem, before, met)
        reason = _unfit(met, pool, alone)
        if reason is not None:
            self.taken.left_out[problem.problem_id] = reason
            return False
        cluster = self._bank.resolve(self._clusters.add(key).cluster)
        if met and cluster not in {found.name for found in met}:
            cluster = met[0].name  # named by another program's index
        self._unite(cluster, met, f"problem {problem.problem_id}", pool)
        self._admit(content, digest, cluster, pool, provenance)
        return True

    def fits(self, problem: Problem, pool: Pool, *, alone: bool = False) -> bool:
        """Whether a new problem would be let in; if not it counts as left out."""
        reason = _unfit(self._met(indexed(problem, 1)), pool, alone)
        if reason is not None:
            self.taken.left_out[problem.problem_id] = reason
        return reason is None

    def reconcile(self) -> Taken:
        """Merge what the index holds for one cluster and the bank for several.

        A newer program may see likenesses that an older one did not. Raises BankError.
        """
        for name, members in self._clusters.groups().items():
            held = (self._bank.get(key.partition(_VERSION_MARK)[0]) for key in members)
            names = dict.fromkeys(h.cluster for h in held if h is not None)
            met = [c for n in names if (c := self._bank.cluster(n)) is not None]
            if len(met) > 1:
                self._unite(name if name in names else met[0].name, met, "clustered anew", None)
        return self.taken

    def _stands(self, before: Holding, pool: Pool, digest: str) -> bool:
        """Whether there is nothing to do for a problem whose id is taken."""
        if before.retired:
            return False
        if before.content_hash != digest:
            raise BankError(
                f"problem {before.problem_id[:80]} stands in {before.pool} with another content",
                code=OTHER_CONTENT,
                remedy="a new version: arena problems retire its id, then import it"
                if not before.pool.is_suite
                else "suites do not change: give the problem a new id",
            )
        if before.pool is pool or (before.pool.is_suite and pool.is_suite):
            return True
        if pool.is_suite:
            return False
        raise BankError(
            f"problem {before.problem_id[:80]} stands in {before.pool}, and is brought to {pool}",
            code=OTHER_POOL,
        )

    def _met(self, problem: Problem) -> list[Cluster]:
        """The clusters of the bank that the problem would join."""
        names: dict[str, None] = {}
        for link in self._clusters.links_of(problem):
            names[self._clusters.find(link.other) or ""] = None
        present = dict.fromkeys(self._bank.resolve(name) for name in names)
        return [found for name in present if (found := self._bank.cluster(name)) is not None]

    def _check_cluster(
        self, problem: Problem, before: Holding | None, met: Sequence[Cluster]
    ) -> None:
        """Refuse a problem that says, or had, another cluster than those it would join."""
        names = [cluster.name for cluster in met]
        for said in (problem.cluster, before.cluster if before else None):
            if said is not None and self._bank.resolve(said) not in names:
                found = f"that of {names[0]}" if names else "one of its own"
                raise BankError(
                    f"problem {problem.problem_id[:80]} has two clusters: {said[:80]}, and {found}",
                    code=TWO_CLUSTERS,
                    remedy="leave `cluster` out of the file"
                    if problem.cluster
                    else "give the problem a new id",
                )

    def _unite(self, name: str, met: Sequence[Cluster], because: str, pool: Pool | None) -> None:
        """Make one cluster of those that turn out to be one; who must leave retires first.

        `pool` is where a problem comes in, None when none does.
        """
        where = {i: self._bank.need(i).pool for cluster in met for i in cluster.live}
        suite = any(cluster.suite for cluster in met) or (pool is not None and pool.is_suite)
        if suite:
            leaving = sorted(i for i, place in where.items() if not place.is_suite)
        else:
            leaving = list(POOLS.leavers(where))
        if leaving:
            reason = f"its cluster meets a {'suite' if suite else 'held-out problem'} ({because})"
            self._note(RETIRED, {"problems": [*leaving], "reason": reason})
            self.taken.left += [Left(i, reason) for i in leaving]
        absorbed = [cluster.name for cluster in met if cluster.name != name]
        if absorbed:
            self._note(MERGED, {"cluster": name, "absorbed": [*absorbed], "reason": because})
            self.taken.merged += len(absorbed)

    def _admit(
        self,
        content: JsonObject,
        digest: str,
        cluster: str,
        pool: Pool,
        provenance: Provenance,
    ) -> None:
        problem_id = str(content["problem_id"])
        before = self._bank.get(problem_id)
        grown = provenance.origin is Origin.SYNTHESIS
        self._note(
            GROWN if grown else IMPORTED,
            {
                "problem": content,
                "content_hash": digest,
                "version": before.version + 1 if before else 1,
                "provenance": provenance.to_json(),
                "cluster": cluster,
                "pool": pool.value,
                "reason": "grown" if grown else "imported",
            },
        )
        self.taken.admitted.append(problem_id)

    def _note(self, kind: str, data: dict[str, Json]) -> None:
        event = Event(kind, self._at, data)
        self._bank.apply(event)
        self.taken.events.append(event)


def indexed(problem: Problem, version: int) -> Problem:
    """The problem as the index has it: every further version is a key of its own."""
    mark = f"{_VERSION_MARK}{version}" if version > 1 else ""
    return replace(problem, problem_id=problem.problem_id + mark, pool=None, cluster=None)


def clusters_of(events: Iterable[Event]) -> Clusters:
    """The index of the problems that these events brought, in their order."""
    from arena.problems.clusters import Clusters

    clusters = Clusters()
    for event in events:
        if event.kind in (IMPORTED, GROWN):
            version = cast("int", event.data["version"])
            clusters.add(indexed(read_problem(event.data["problem"]), version))
    return clusters


def _unfit(met: Sequence[Cluster], pool: Pool, alone: bool) -> LeftOut | None:
    """Why a problem that joins these clusters may not come to the pool."""
    if pool.is_suite:
        return None
    pools = {cluster.pool for cluster in met}
    if any(cluster.suite for cluster in met):
        return LeftOut.SUITE
    if pool is Pool.OPEN:
        if Pool.HELD_OUT in pools:
            return LeftOut.HELD_OUT
    elif Pool.OPEN in pools:
        return LeftOut.OPEN
    elif any(cluster.exposed for cluster in met):
        return LeftOut.EXPOSED
    return LeftOut.KNOWN if met and alone else None


def _check_pool(problem: Problem, pool: Pool) -> None:
    if pool is Pool.RETIRED:
        raise BankError("problems do not come to retired: they leave to it", code=UNKNOWN_POOL)
    if problem.pool is not None and problem.pool != pool.value:
        raise BankError(
            f"problem {problem.problem_id[:80]} says it is of {problem.pool[:60]}, and is brought "
            f"to {pool}",
            code=TWO_POOLS,
            remedy="leave `pool` out of the file, or name that pool",
        )
