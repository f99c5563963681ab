"""The held-out pool as it is published: salted hashes, so that a draw can be recomputed
by people who may not know what was drawn from.

Each row names a problem by the hash of its id and a salt of its own, and its cluster by a
keyed hash: with the key of another race both look different. The salts of the problems
that were raced are published when they are; those of the others never are. Pure.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from arena.exceptions import DrawError
from arena.runs.canonical import canonical
from arena.season.draw import Candidate
from scoring.types import Bucket, Json, JsonObject

KEY_BYTES = 32
_LEAF_DOMAIN = b"sn15-arena pool leaf 1\n"


@dataclass(frozen=True, slots=True)
class Opening:
    """What shows that a row of the listing is a problem. `salt` is 32 bytes in hex."""

    problem_id: str
    salt: str

    @property
    def leaf(self) -> str:
        """The row's name. Raises ValueError for a salt that is no hex."""
        salt = bytes.fromhex(self.salt)
        return hashlib.sha256(_LEAF_DOMAIN + salt + self.problem_id.encode()).hexdigest()

    def to_json(self) -> JsonObject:
        """As draw records hold it."""
        return {"problem_id": self.problem_id, "salt": self.salt}


@dataclass(frozen=True, slots=True)
class PoolListing:
    """The rows, sorted by name. What stands there is all that a draw sees."""

    rows: tuple[Candidate, ...]
    hash: str = field(init=False)
    """SHA-256 of the canonical JSON of the rows."""

    def __post_init__(self) -> None:
        rows = tuple(sorted(self.rows))
        if len({row.name for row in rows}) < len(rows):
            raise DrawError("a problem stands in the listing twice", code="draw.twice_listed")
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "hash", hashlib.sha256(canonical(self.to_json())).hexdigest())

    def __len__(self) -> int:
        return len(self.rows)

    def to_json(self) -> list[Json]:
        """The rows, each a list of name, bucket and cluster."""
        return [[row.name, row.bucket.value, row.cluster] for row in self.rows]

    @classmethod
    def from_json(cls, value: Json) -> PoolListing:
        """Read what `to_json` wrote. Raises DrawError (`draw.bad_record`)."""
        try:
            rows = [(n, b, c) for n, b, c in cast("list[list[str]]", value)]
            texts = (
                (n.encode("ascii").decode(), b, c.encode("ascii").decode()) for n, b, c in rows
            )
            return cls(tuple(Candidate(n, Bucket(b), c) for n, b, c in texts))
        except (TypeError, ValueError, AttributeError) as error:
            raise DrawError(
                f"the pool listing cannot be read: {error!s:.200}", code="draw.bad_record"
            ) from None


def publish(problems: Iterable[Candidate], key: bytes) -> tuple[PoolListing, Mapping[str, Opening]]:
    """The listing of these problems, named by their ids, and what opens each row.

    `key` is 32 secret bytes of one race alone. Raises DrawError (`draw.twice_listed`) for
    a problem that comes twice, as it does when it stands in two clusters.
    """
    if len(key) != KEY_BYTES:
        raise DrawError(f"the key of a listing is {KEY_BYTES} bytes", code="draw.bad_secret")
    rows: list[Candidate] = []
    openings: dict[str, Opening] = {}
    for problem in problems:
        opening = Opening(problem.name, _keyed(key, "salt", problem.name))
        openings[opening.leaf] = opening
        tag = _keyed(key, "cluster", problem.cluster)[:32]
        rows.append(Candidate(opening.leaf, problem.bucket, tag))
    return PoolListing(tuple(rows)), openings


def _keyed(key: bytes, what: str, text: str) -> str:
    return hmac.digest(key, f"{what}\n{text}".encode(), hashlib.sha256).hex()
