"""What the bank holds: a problem with its version, provenance, cluster, pool and history.

Frozen: the bank replaces an entry when something happens to it. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import cast

from arena.exceptions import BankError
from arena.problems.identity import NAMING_FIELDS
from arena.problems.pools import Pool
from arena.problems.suite import problem_to_json
from arena.runs.canonical import canonical
from scoring.reading import bucket_of, read_problem
from scoring.types import Bucket, Json, JsonObject, Problem

# Codes of BankError. Stable: journals, pages and scripts know them.
BAD_EVENT = "bank.bad_event"
BREAKS_CLUSTER = "bank.breaks_cluster"
CLOCK_BACK = "bank.clock_back"
MEETS_SUITE = "bank.meets_suite"
NOTHING_CAME = "bank.nothing_came"
NOT_DRAWABLE = "bank.not_drawable"
OTHER_CONTENT = "bank.other_content"
OTHER_POOL = "bank.other_pool"
STANDS_ALREADY = "bank.stands_already"
TWO_CLUSTERS = "bank.two_clusters"
TWO_POOLS = "bank.two_pools"
UNKNOWN_POOL = "bank.unknown_pool"
UNKNOWN_PROBLEM = "bank.unknown_problem"
WAS_EXPOSED = "bank.was_exposed"


class Origin(StrEnum):
    """How a problem came to be."""

    FILE = "file"
    SYNTHESIS = "synthesis"


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a problem comes from.

    From a file: its name without directories, and the SHA-256 of its bytes. From synthesis:
    the catalogue's hash, the seed, the generator's version, and the model that worded the
    query anew, where one did.
    """

    origin: Origin
    name: str | None = None
    sha256: str | None = None
    catalog_hash: str | None = None
    seed: str | None = None
    generator: str | None = None
    reworded_by: str | None = None

    def to_json(self) -> JsonObject:
        """As events hold it; what is not known is left out."""
        known = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in known.items() if value is not None}

    @classmethod
    def of(cls, value: JsonObject) -> Provenance:
        """Read what `to_json` wrote."""
        texts = {name: str(text) for name, text in value.items() if name != "origin"}
        return cls(Origin(str(value["origin"])), **texts)


@dataclass(frozen=True, slots=True)
class Step:
    """A place in the life of a problem: which version came where, when and why."""

    pool: Pool
    at: datetime
    version: int
    reason: str


@dataclass(frozen=True, slots=True)
class Holding:
    """One problem as the bank has it. Holds the rewards: never hand it to an agent."""

    problem_id: str
    content: JsonObject
    """ShoppingBench form, as `problem_to_json` writes it, without pool and cluster."""
    content_hash: str
    bucket: Bucket
    version: int
    provenance: JsonObject
    cluster: str
    pool: Pool
    history: tuple[Step, ...]
    raced: tuple[str, ...] = ()
    """The races it was drawn for."""

    @property
    def retired(self) -> bool:
        """Whether it is out of use for good."""
        return self.pool is Pool.RETIRED

    @property
    def difficulty(self) -> str | None:
        """As its maker called it."""
        return cast("str | None", self.content.get("difficulty"))

    @property
    def products(self) -> tuple[str, ...]:
        """The ids of its answer's products, in order."""
        reward = self.content["reward"]
        items = cast("list[JsonObject]", reward if isinstance(reward, list) else [reward])
        return tuple(str(item["product_id"]) for item in items)

    @property
    def problem(self) -> Problem:
        """The problem for a race, with the pool and cluster that its records are to carry."""
        read = read_problem(self.content)
        return replace(read, pool=self.pool.value, cluster=self.cluster)

    def moved(self, pool: Pool, at: datetime, reason: str) -> Holding:
        """The same in another pool."""
        step = Step(pool, at, self.version, reason)
        return replace(self, pool=pool, history=(*self.history, step))


@dataclass(slots=True)
class Cluster:
    """A leak cluster: problems of which who knows one knows the others."""

    name: str
    bucket: Bucket
    """That of its first problem: rotation counts the cluster under it."""
    since: datetime
    """When it came to where its live problems stand."""
    members: dict[str, None] = field(default_factory=dict)
    """All its problems, oldest first."""
    live: dict[str, None] = field(default_factory=dict)
    """Those that are not retired, oldest first."""
    pool: Pool | None = None
    """Where those stand; None when there are none. Of several suites, one of them."""
    exposed: bool = False
    """Whether any of its problems was ever open or drawn for a race: then none of them is
    ever drawn again, and none comes to held-out."""
    suite: bool = False
    """Whether a suite has a problem in it: then the bank has none."""


def content_of(problem: Problem) -> JsonObject:
    """A problem as events hold it: pool and cluster stand beside it."""
    return problem_to_json(replace(problem, pool=None, cluster=None))


def content_hash(content: Mapping[str, Json]) -> str:
    """SHA-256 of what makes a problem this one: query, reward and voucher; lower-case hex.

    Its name, difficulty, title and embeddings may change without making it another one.
    """
    named = {name: value for name, value in content.items() if name not in NAMING_FIELDS}
    return hashlib.sha256(canonical(named)).hexdigest()


def read_pool(text: object) -> Pool:
    """A pool by its name. Raises BankError (`bank.unknown_pool`)."""
    try:
        return Pool(str(text))
    except ValueError:
        known = ", ".join(Pool)
        raise BankError(
            f"there is no pool {str(text)[:60]!r}; there are {known}", code=UNKNOWN_POOL
        ) from None


def bucket_in(content: JsonObject) -> Bucket:
    """The bucket of a problem's JSON."""
    return bucket_of(content)
