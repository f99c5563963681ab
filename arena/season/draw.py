"""The draw: which problems of a listing are raced. Deterministic, and the same for anyone.

Stratified by bucket, and at most one problem of a leak cluster: two variants of one
problem are one question asked twice. Pure; the order of the input does not matter.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from arena.exceptions import DrawError
from scoring.types import Bucket

SECRET_BYTES = 32

_SECRET_DOMAIN = b"sn15-arena race secret 1\n"
_SEED_DOMAIN = b"sn15-arena race draw 1\n"
_RANK_DOMAIN = b"sn15-arena draw rank 1\n"
_HEX_32 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A problem that may be drawn, by whatever name the listing gives it."""

    name: str
    bucket: Bucket
    cluster: str


def secret_hash(race_id: str, secret: str) -> str:
    """What is published of a race's secret before it. `secret` is 32 bytes in lower-case hex.

    Raises DrawError (`draw.bad_secret`).
    """
    return hashlib.sha256(_SECRET_DOMAIN + _part(race_id.encode()) + _bytes(secret)).hexdigest()


def draw_seed(race_id: str, secret: str, beacon: str) -> str:
    """H(domain ‖ secret ‖ beacon ‖ race id) in lower-case hex, each part with its length.

    `secret` and `beacon` are 32 bytes in lower-case hex. Raises DrawError.
    """
    parts = (_bytes(secret), _bytes(beacon), race_id.encode())
    return hashlib.sha256(_SEED_DOMAIN + b"".join(map(_part, parts))).hexdigest()


def draw(
    candidates: Iterable[Candidate], quota: Mapping[Bucket, int], seed: str
) -> tuple[str, ...]:
    """The names of the problems drawn, bucket by bucket, in the order of their rank.

    A problem's rank is the hash of seed and name. Each bucket takes the best ranks whose
    cluster is not taken; the buckets choose in turns. Where a cluster has problems in
    several buckets and one of them ends up short, it takes over the cluster and the other
    bucket takes its next one, so that a draw fails only when there is none.

    Raises DrawError: `draw.pool_too_small` naming what is missing, `draw.twice_listed` for
    a name that stands twice (in two clusters, say).
    """
    ranked = _ranked(candidates, seed)
    places = _Places(ranked)
    wanted = {bucket: quota.get(bucket, 0) for bucket in Bucket}
    for turn in range(max(wanted.values())):
        for bucket in Bucket:
            if turn < wanted[bucket] and not places.fill(bucket):
                raise _too_small(ranked, wanted, bucket, turn)
    return tuple(name for bucket in Bucket for name in places.names(bucket))


def check_pool(candidates: Iterable[Candidate], quota: Mapping[Bucket, int]) -> None:
    """Make sure that every seed gives a draw. Raises DrawError as `draw` does.

    Whether there is a draw does not depend on the ranks, only which one it is.
    """
    draw(candidates, quota, "")


@dataclass(frozen=True, slots=True)
class _Ranked:
    rank: bytes
    candidate: Candidate


def _ranked(candidates: Iterable[Candidate], seed: str) -> dict[Bucket, list[_Ranked]]:
    """Of each bucket the best problem of every cluster, best first."""
    best: dict[tuple[Bucket, str], _Ranked] = {}
    names: set[str] = set()
    for candidate in candidates:
        if candidate.name in names:
            raise DrawError(
                f"{candidate.name[:80]!r} stands in the listing twice", code="draw.twice_listed"
            )
        names.add(candidate.name)
        text = _RANK_DOMAIN + seed.encode() + b"\n" + candidate.name.encode()
        found = _Ranked(hashlib.sha256(text).digest(), candidate)
        key = (candidate.bucket, candidate.cluster)
        if key not in best or found.rank < best[key].rank:
            best[key] = found
    ranked: dict[Bucket, list[_Ranked]] = {bucket: [] for bucket in Bucket}
    for found in sorted(best.values(), key=lambda found: found.rank):
        ranked[found.candidate.bucket].append(found)
    return ranked


class _Places:
    """Which bucket takes which cluster: a matching that grows by augmenting paths."""

    def __init__(self, ranked: Mapping[Bucket, list[_Ranked]]) -> None:
        self._ranked = ranked
        self._bucket_of: dict[str, Bucket] = {}

    def fill(self, bucket: Bucket) -> bool:
        """Give `bucket` one cluster more; others may have to change theirs for it."""
        return self._fill(bucket, set())

    def _fill(self, bucket: Bucket, visited: set[Bucket]) -> bool:
        visited.add(bucket)
        for found in self._ranked[bucket]:
            if found.candidate.cluster not in self._bucket_of:
                self._bucket_of[found.candidate.cluster] = bucket
                return True
        for found in self._ranked[bucket]:
            holder = self._bucket_of[found.candidate.cluster]
            if holder not in visited and self._fill(holder, visited):
                self._bucket_of[found.candidate.cluster] = bucket
                return True
        return False

    def names(self, bucket: Bucket) -> list[str]:
        """What the bucket has taken, best rank first."""
        return [
            found.candidate.name
            for found in self._ranked[bucket]
            if self._bucket_of.get(found.candidate.cluster) is bucket
        ]


def _too_small(
    ranked: Mapping[Bucket, list[_Ranked]], wanted: Mapping[Bucket, int], bucket: Bucket, have: int
) -> DrawError:
    clusters = ", ".join(f"{len(ranked[b])} {b.value}" for b in Bucket)
    asked = ", ".join(f"{wanted[b]} {b.value}" for b in Bucket)
    return DrawError(
        f"the held-out pool is too small: bucket {bucket.value} has {have} of"
        f" {wanted[bucket]} problems with a cluster of their own"
        f" (asked: {asked}; clusters: {clusters})",
        code="draw.pool_too_small",
        remedy="arena problems synthesise and arena problems rotate, or a smaller quota",
    )


def _part(content: bytes) -> bytes:
    return len(content).to_bytes(8, "big") + content


def _bytes(text: str) -> bytes:
    if not _HEX_32.fullmatch(text):
        raise DrawError(
            f"a secret and a beacon's value are {SECRET_BYTES} bytes in lower-case hex",
            code="draw.bad_secret",
        )
    return bytes.fromhex(text)
