"""Leak clusters: problems of which one gives the answer to another stand in one cluster.

Two problems are joined when they share a rewarded product, when their canonical rewards
are the same and specific, when a product that one wants is listed like one of the other's,
or when their queries ask the same in other words. Joined is transitive. Grows problem by
problem, without comparing all with all; the groups do not depend on the order, the names
do: a cluster is named after its first problem, and keeps the older name when two meet.
Pure, in memory: the same problems in the same order give the same clusters, so nothing
needs to be stored but the problems.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from arena.exceptions import ClusterError
from arena.problems.canonical_reward import Stated, canonical, canonical_whole
from arena.problems.identity import problem_id_of
from arena.problems.likeness import (
    Bag,
    Neighbours,
    Sketch,
    likeness,
    listing_bag,
    sketch_of,
    wording_bag,
)
from arena.problems.suite import problem_to_json
from scoring.types import Problem

LISTING_ALIKE = 0.70
WORDING_ALIKE = 0.70
"""Likeness from which two listings, or two queries, are one: chosen on the curve in
`benchmarks/README.md`."""
TWO_CONTENTS = "cluster.two_contents"
"""Code of ClusterError. Stable."""
_CONTENT = b"leak clusters: content"
_LATELY = 256
"""Problems whose face is kept: who asks about one mostly adds it next."""


class Rule(StrEnum):
    """Why two problems are one cluster; the first that holds is told."""

    PRODUCT = "product"
    """They share a rewarded product."""
    REWARD = "reward"
    """They have the same canonical reward, and hardly another product can satisfy it."""
    LISTING = "listing"
    """They want products whose titles and stated constraints are nearly the same."""
    WORDING = "wording"
    """Their queries are near-duplicates."""


@dataclass(frozen=True, slots=True)
class Link:
    """One reason to join: `problem` is like the earlier `other`, from 0 to 1."""

    rule: Rule
    problem: str
    other: str
    alike: float


@dataclass(frozen=True, slots=True)
class Joined:
    """Where a new problem came: its cluster, the clusters that became one with it, and why.

    One link tells of each cluster it met; none when it stands alone.
    """

    cluster: str
    merged: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From where two listings or two queries are alike."""

    listing: float = LISTING_ALIKE
    wording: float = WORDING_ALIKE


class Clusters:
    """The clusters of the problems that were added."""

    def __init__(self, thresholds: Thresholds | None = None) -> None:
        limits = thresholds or Thresholds()
        self._ids: list[str] = []
        self._numbers: dict[str, int] = {}
        self._contents: list[str] = []
        self._parents: list[int] = []
        self._groups: dict[int, list[int]] = {}
        self._names: dict[str, int] = {}
        self._products: dict[str, int] = {}
        self._rewards: dict[tuple[str, ...], int] = {}
        self._listings = _Index(Rule.LISTING, limits.listing)
        self._wordings = _Index(Rule.WORDING, limits.wording)
        self._links: list[Link] = []
        self._faces: dict[str, tuple[Problem, _Face]] = {}

    @classmethod
    def of(cls, problems: Iterable[Problem], thresholds: Thresholds | None = None) -> Clusters:
        """The clusters of these problems."""
        clusters = cls(thresholds)
        for problem in problems:
            clusters.add(problem)
        return clusters

    def __len__(self) -> int:
        return len(self._groups)

    def __contains__(self, problem_id: object) -> bool:
        return problem_id in self._numbers

    @property
    def links(self) -> Sequence[Link]:
        """Every link that joined something, in order."""
        return self._links

    def find(self, problem_id: str) -> str | None:
        """The present name of the problem's cluster; None for an unknown problem."""
        number = self._numbers.get(problem_id)
        return None if number is None else _name(self._ids[self._root(number)])

    def resolve(self, cluster: str) -> str:
        """The present name of a cluster by a name it has or had; others stand for themselves."""
        number = self._names.get(cluster)
        return cluster if number is None else _name(self._ids[self._root(number)])

    def members(self, cluster: str) -> tuple[str, ...]:
        """The problems of a cluster, in the order they came, by a name it has or had."""
        number = self._names.get(cluster)
        return () if number is None else self._members(self._root(number))

    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """All clusters with their problems, oldest first."""
        return {_name(self._ids[root]): self._members(root) for root in sorted(self._groups)}

    def links_of(self, problem: Problem) -> tuple[Link, ...]:
        """Whom this problem would be joined with, one link a cluster; nothing is changed."""
        return tuple(self._meet(problem, self._face(problem)).values())

    def add(self, problem: Problem) -> Joined:
        """Take a problem in. Adding it again changes nothing.

        Raises ClusterError when another problem has its id.
        """
        content = problem_id_of(problem_to_json(problem), _CONTENT)
        known = self._numbers.get(problem.problem_id)
        if known is not None:
            if self._contents[known] != content:
                raise ClusterError(
                    f"two problems have the id {problem.problem_id[:80]}, "
                    "which would stand in the clusters of both",
                    code=TWO_CONTENTS,
                )
            return Joined(_name(self._ids[self._root(known)]))
        face = self._face(problem)
        met = self._meet(problem, face)
        number = self._append(problem.problem_id, content)
        self._remember(number, face)
        self._links += met.values()
        roots = sorted(met)
        for root in (*roots[1:], number) if roots else ():
            self._parents[root] = roots[0]
            self._groups[roots[0]] += self._groups.pop(root)
        if not roots:
            self._names[_name(problem.problem_id)] = number
        return Joined(
            cluster=_name(self._ids[roots[0] if roots else number]),
            merged=tuple(_name(self._ids[root]) for root in roots[1:]),
            links=tuple(met[root] for root in roots),
        )

    def _face(self, problem: Problem) -> _Face:
        """What is compared of a problem, from lately if it is the same."""
        known = self._faces.get(problem.problem_id)
        if known is not None and known[0] == problem:
            return known[1]
        if len(self._faces) >= _LATELY:
            self._faces.clear()
        face = _Face.of(problem)
        self._faces[problem.problem_id] = problem, face
        return face

    def _append(self, problem_id: str, content: str) -> int:
        number = len(self._ids)
        self._ids.append(problem_id)
        self._numbers[problem_id] = number
        self._contents.append(content)
        self._parents.append(number)
        self._groups[number] = [number]
        return number

    def _remember(self, number: int, face: _Face) -> None:
        for product in face.products:
            self._products.setdefault(product, number)
        for reward in face.rewards:
            self._rewards.setdefault(reward, number)
        for listing in face.listings:
            self._listings.add(number, listing)
        self._wordings.add(number, face.wording)

    def _meet(self, problem: Problem, face: _Face) -> dict[int, Link]:
        """The clusters that a problem is joined with, by their root, and the first reason."""
        met: dict[int, Link] = {}
        for rule, other, alike in self._reasons(face, met):
            root = self._root(other)
            if root not in met:
                met[root] = Link(rule, problem.problem_id, self._ids[other], alike)
        return met

    def _reasons(self, face: _Face, met: Mapping[int, Link]) -> Iterator[tuple[Rule, int, float]]:
        """Those it is joined with. Whose cluster it has `met` already is not compared again."""
        for product in face.products:
            if (other := self._products.get(product)) is not None:
                yield Rule.PRODUCT, other, 1.0
        for reward in face.rewards:
            if (other := self._rewards.get(reward)) is not None:
                yield Rule.REWARD, other, 1.0
        told = [(self._listings, listing) for listing in face.listings]
        for index, text in (*told, (self._wordings, face.wording)):
            for other, candidate in index.candidates(text):
                if self._root(other) not in met:
                    alike = text.likeness(candidate)
                    if alike >= index.threshold:
                        yield index.rule, other, alike

    def _root(self, number: int) -> int:
        root = number
        while self._parents[root] != root:
            root = self._parents[root]
        while self._parents[number] != root:
            self._parents[number], number = root, self._parents[number]
        return root

    def _members(self, root: int) -> tuple[str, ...]:
        return tuple(self._ids[number] for number in sorted(self._groups[root]))


@dataclass(frozen=True, slots=True)
class _Text:
    """A listing or a wording, and its sketch if it says enough to be like another."""

    bag: Bag
    stated: Stated
    sketch: Sketch | None

    @classmethod
    def of(cls, bag: Bag, stated: Stated) -> _Text:
        return cls(bag, stated, sketch_of(bag))

    def likeness(self, other: _Text) -> float:
        return 0.0 if self.stated.excludes(other.stated) else likeness(self.bag, other.bag)


@dataclass(frozen=True, slots=True)
class _Face:
    """What is compared of a problem."""

    products: tuple[str, ...]
    rewards: tuple[tuple[str, ...], ...]
    listings: tuple[_Text, ...]
    wording: _Text

    @classmethod
    def of(cls, problem: Problem) -> _Face:
        whole = canonical_whole(problem.rewards)
        rewards = (whole, *map(canonical, problem.rewards))
        stated = tuple(map(Stated.of, problem.rewards))
        # Of a query for several products it is not known which of them a color belongs to.
        told = stated[0] if len(stated) == 1 else Stated(frozenset(), frozenset())
        return cls(
            products=tuple(dict.fromkeys(reward.product_id for reward in problem.rewards)),
            rewards=tuple(dict.fromkeys(r.constraints for r in rewards if r.specific)),
            listings=tuple(map(_Text.of, map(listing_bag, problem.rewards), stated)),
            wording=_Text.of(wording_bag(problem), told),
        )


class _Index:
    """Texts of one kind, and the number of the problem that each belongs to."""

    def __init__(self, rule: Rule, threshold: float) -> None:
        self.rule, self.threshold = rule, threshold
        self._near = Neighbours()
        self._texts: list[tuple[int, _Text]] = []

    def candidates(self, text: _Text) -> Iterator[tuple[int, _Text]]:
        """The texts that may be like this one, with their problems, oldest first."""
        if text.sketch is not None:
            for place in self._near.find(text.sketch):
                yield self._texts[place]

    def add(self, number: int, text: _Text) -> None:
        """Take one in."""
        if text.sketch is not None:
            self._near.add(len(self._texts), text.sketch)
            self._texts.append((number, replace(text, sketch=None)))


def _name(problem_id: str) -> str:
    """The name of the cluster that this problem began."""
    return f"c-{hashlib.sha256(problem_id.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
