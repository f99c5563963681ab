"""Whose is this? An index of earlier submissions that finds copies in well under a second.

Compared is what files have beyond the public bases, both ways: how much of an earlier
agent stands in this file (so padding a copy, or joining two, hides nothing), and how much
of this file stands in an earlier one (so cutting a copy down hides nothing). What many
authors have counts less. An author's own earlier versions are no copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from arena.submissions.fingerprints import Fingerprint
from arena.submissions.policy import Policy

CANDIDATES = 12
"""Earlier versions that are compared in full: those that share most."""
PENDING = 64
"""Versions that are kept apart before they are sorted in."""

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Copied:
    """A file that is too like an earlier one.

    `of_theirs` and `of_mine`: shares of what each has beyond the bases. `lines`: ranges in
    the submitted file, first and last line; the other file's lines are not told, it may be
    under embargo.
    """

    version: str
    what: str
    of_theirs: float
    of_mine: float
    lines: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class _Version:
    name: str
    owner: int
    sha256: str
    code: U64
    prose: U64


class _Segment:
    """Sorted postings of some versions: hash, version, and how many owners up to here."""

    def __init__(self, hashes: U64, versions: I64, owners: I64) -> None:
        order = np.lexsort((owners, hashes))
        self.hashes, self.versions, self.owners = hashes[order], versions[order], owners[order]
        new = np.ones(len(self.hashes), dtype=np.int64)
        if len(new) > 1:
            same = (self.hashes[1:] == self.hashes[:-1]) & (self.owners[1:] == self.owners[:-1])
            new[1:] = ~same
        self._owners_before = np.concatenate(([0], np.cumsum(new)))

    def ranges(self, wanted: U64) -> tuple[I64, I64]:
        """Where the postings of each hash begin and end."""
        left = np.searchsorted(self.hashes, wanted, "left")
        return left, np.searchsorted(self.hashes, wanted, "right")

    def owner_counts(self, wanted: U64) -> I64:
        """How many owners have each hash."""
        left, right = self.ranges(wanted)
        counts: I64 = self._owners_before[right] - self._owners_before[left]
        return counts


class _Postings:
    """Which versions have a hash. Segments of growing size: adding is cheap, asking too."""

    def __init__(self) -> None:
        self._segments: list[_Segment] = []
        self._pending: list[tuple[U64, int, int]] = []

    def add(self, hashes: U64, version: int, owner: int) -> None:
        """Note a version's hashes."""
        self._pending.append((hashes, version, owner))

    def _settle(self) -> list[_Segment]:
        if self._pending:
            sizes = [len(hashes) for hashes, _, _ in self._pending]
            self._segments.append(
                _Segment(
                    np.concatenate([hashes for hashes, _, _ in self._pending]),
                    np.repeat([v for _, v, _ in self._pending], sizes).astype(np.int64),
                    np.repeat([o for _, _, o in self._pending], sizes).astype(np.int64),
                )
            )
            self._pending = []
        while len(self._segments) > 1 and (
            len(self._segments[-1].hashes) * 2 > len(self._segments[-2].hashes)
        ):
            last, before = self._segments.pop(), self._segments.pop()
            self._segments.append(
                _Segment(
                    np.concatenate((before.hashes, last.hashes)),
                    np.concatenate((before.versions, last.versions)),
                    np.concatenate((before.owners, last.owners)),
                )
            )
        return self._segments

    def shared(self, wanted: U64, versions: int) -> I64:
        """How many of the hashes each version has."""
        counts = np.zeros(versions, dtype=np.int64)
        for segment in self._settle():
            left, right = segment.ranges(wanted)
            sizes = right - left
            if total := int(sizes.sum()):
                starts = np.repeat(left - np.concatenate(([0], np.cumsum(sizes)[:-1])), sizes)
                places = starts + np.arange(total)
                counts += np.bincount(segment.versions[places], minlength=versions)
        return counts

    def weights(self, hashes: U64) -> npt.NDArray[np.float64]:
        """One over the number of owners that have each hash."""
        owners = np.zeros(len(hashes), dtype=np.int64)
        for segment in self._settle():
            owners += segment.owner_counts(hashes)
        return 1.0 / np.maximum(owners, 1)


class CopyIndex:
    """Earlier submissions by fingerprint, in the order of their submission."""

    def __init__(self, bases: Iterable[Fingerprint] = ()) -> None:
        listed = list(bases)
        self._base_files = {base.sha256 for base in listed}
        self._base_code = _join([_hashes(base.code) for base in listed])
        self._base_prose = _join([_hashes(base.prose) for base in listed])
        self._versions: list[_Version] = []
        self._by_sha256: dict[str, list[int]] = {}
        self._owners: dict[str, int] = {}
        self._code, self._prose = _Postings(), _Postings()

    def __len__(self) -> int:
        return len(self._versions)

    def add(self, version: str, hotkey: str, found: Fingerprint) -> None:
        """Add a submission. Earlier ones have to be added first: they are whose it is."""
        number = len(self._versions)
        owner = self._owners.setdefault(hotkey, len(self._owners))
        code = _without(_hashes(found.code), self._base_code)
        prose = _without(_hashes(found.prose), self._base_prose)
        self._versions.append(_Version(version, owner, found.sha256, code, prose))
        self._by_sha256.setdefault(found.sha256, []).append(number)
        self._code.add(code, number, owner)
        self._prose.add(prose, number, owner)

    def identical(self, sha256: str, hotkey: str | None = None) -> str | None:
        """The first version of somebody else with the same bytes; a public base has no owner."""
        if sha256 in self._base_files:
            return None
        own = self._owners.get(hotkey or "")
        for number in self._by_sha256.get(sha256, ()):
            if self._versions[number].owner != own:
                return self._versions[number].name
        return None

    def copied(
        self, found: Fingerprint, policy: Policy, hotkey: str | None = None
    ) -> tuple[Copied, ...]:
        """The version that the code is most like, and the prose, where they are too like."""
        own = self._owners.get(hotkey or "", -1)
        matches = (
            self._most_like("code", found.code, own, policy.copy_min, policy.copy_share),
            self._most_like("prose", found.prose, own, policy.text_min, policy.text_share),
        )
        return tuple(match for match in matches if match is not None)

    def closest(self, found: Fingerprint, hotkey: str | None = None) -> tuple[Copied, ...]:
        """The same, however little alike: for reports and for setting limits."""
        own = self._owners.get(hotkey or "", -1)
        matches = (
            self._most_like("code", found.code, own, 1, 0.0),
            self._most_like("prose", found.prose, own, 1, 0.0),
        )
        return tuple(match for match in matches if match is not None)

    def _most_like(
        self,
        what: str,
        places: Sequence[tuple[int, int, int]],
        own: int,
        least: int,
        share: float,
    ) -> Copied | None:
        postings = self._code if what == "code" else self._prose
        base = self._base_code if what == "code" else self._base_prose
        mine = _without(_hashes(places), base)
        if not len(mine) or not self._versions:
            return None
        shared = postings.shared(mine, len(self._versions))
        others = np.array([version.owner != own for version in self._versions])
        shared = np.where(others, shared, 0)
        best: tuple[float, int, float, float] | None = None
        for number in np.argsort(-shared, kind="stable")[:CANDIDATES].tolist():
            if shared[number] < least:
                break
            theirs = getattr(self._versions[number], what)
            of_theirs = _share(theirs, mine, postings)
            of_mine = _share(mine, theirs, postings)
            like = max(of_theirs, of_mine)
            # Of versions as like as each other the first is whose it is.
            if like >= share and (best is None or like > best[0] + 0.02):
                best = like, number, of_theirs, of_mine
        if best is None:
            return None
        _, number, of_theirs, of_mine = best
        theirs = set(getattr(self._versions[number], what).tolist())
        lines = _merge((a, b) for value, a, b in places if value in theirs)
        name = self._versions[number].name
        return Copied(name, what, round(of_theirs, 3), round(of_mine, 3), lines)


def _hashes(places: Sequence[tuple[int, int, int]]) -> U64:
    return np.array([value for value, _, _ in places], dtype=np.uint64)


def _join(many: Sequence[U64]) -> U64:
    return np.unique(np.concatenate(many)) if many else np.array([], dtype=np.uint64)


def _without(hashes: U64, base: U64) -> U64:
    kept: U64 = hashes[~np.isin(hashes, base)]
    return kept


def _share(part: U64, whole: U64, postings: _Postings) -> float:
    """The weighted share of `part` that `whole` has too."""
    weights = postings.weights(part)
    total = float(weights.sum())
    return float(weights[np.isin(part, whole)].sum()) / total if total else 0.0


def _merge(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 2:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)
