"""How alike two requests are: bags of weighed words, candidates by MinHash, then compared.

Words that only dress a request ("I'm looking for …, priced below … with free shipping")
weigh nothing, so that a template shared by half the bank makes nobody alike. Words of a
constraint count twice, numbers and models' names more than words. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import cast

import numpy as np
from datasketch import MinHash, MinHashLSH
from rapidfuzz import process
from rapidfuzz.distance import Indel

from arena.problems.canonical_reward import constraints_of
from arena.problems.normal_form import is_code, number, tokens
from scoring.types import Problem, Reward

Bag = Mapping[str, float]
"""Words with what each weighs."""

WORD, CODE, CONSTRAINT = 1.0, 2.0, 2.0
"""A word weighs 1, one with a digit 2; either twice that when a constraint states it."""
LEAST = 3.0
"""A bag that weighs less says too little to be like another one."""
ALIKE_WORDS = 0.84
"""Normalised Indel similarity (rapidfuzz) from which two words are one, misspelt."""
BANDS, ROWS = 20, 4
"""Of the MinHash: two bags that share 0.7 of their weight meet with probability 0.996."""

# fmt: off
_GRAMMAR = frozenset(
    word for text in (
        "a an and any are as at be but by can could do each for from has have i i'm in into is it "
        "its me my of on one or other our so some such than that the their them there these they "
        "this those to under up was we which will with would you your both either not then next no",
    ) for word in tokens(text)
)
_DRESS = _GRAMMAR | frozenset(
    word for text in (
        # asking
        "look looking find finding show search searching want wanting need needing like get buy "
        "buying purchase purchasing order help please recommend shop shops store stores seller "
        "sellers offer offers offering sell sells selling item items product products thing "
        "things available option options choice feature features featuring include includes "
        "including made make crafted come comes coming support supports type kind style variant "
        "variation model color size design brand material set first second third fourth fifth "
        "last lastly finally also same all following list preferably should must hunting "
        "interested after additionally plus another",
        # prices and services
        "price priced pricing cost costs costing peso pesos php worth budget below above between "
        "less more over around least most cheaper maximum minimum up free shipping ship ships "
        "ship delivery delivered cash cod lazmall lazflash deal deals sale flash flashsale "
        "official pay payable voucher discount service services",
        # sellers
        "new arrival original authentic genuine hot best quality high ready stock limited edition "
        "promo 100% onhand",
    ) for word in tokens(text)
)
# fmt: on
_PERMUTATIONS = MinHash(num_perm=BANDS * ROWS, seed=1, scheme="affine32").permutations
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_COUNTED = re.compile(r"\(\d\)|(?:^|\s)\d\.(?=\s|$)")
_VOUCHER = re.compile(r"\b(?:voucher|budget|coupon|discount|total price)\b", re.IGNORECASE)


def listing_bag(reward: Reward) -> Bag:
    """What one wanted product is: the words of its title, and of its constraints."""
    bag: dict[str, float] = {}
    brands = _brand_words(reward)
    for title in reward.title:
        for token in tokens(title):
            if token not in _DRESS and token not in brands:
                bag[token] = CODE if is_code(token) else WORD
    for token in _constraint_words((reward,)):
        bag[token] = CONSTRAINT * (CODE if is_code(token) else WORD)
    return bag


def wording_bag(problem: Problem) -> Bag:
    """What a query asks for, without prices, services, vouchers and manners."""
    stated = _constraint_words(problem.rewards)
    prices = {
        number(bound)
        for reward in problem.rewards
        for band in reward.price
        for bound in (band.low, band.high)
        if bound is not None
    }
    brands = {word for reward in problem.rewards for word in _brand_words(reward)}
    bag: dict[str, float] = {}
    for token in tokens(_request(problem)):
        if token in stated:
            bag[token] = CONSTRAINT * (CODE if is_code(token) else WORD)
        elif token not in _DRESS and token not in prices and token not in brands:
            bag[token] = CODE if is_code(token) else WORD
    return bag


def likeness(one: Bag, other: Bag) -> float:
    """The share of their weight that two bags have in common, from 0 to 1.

    A weighed Jaccard index in which words that differ by spelling only count as one. Bags
    that say too little (`LEAST`) are like nothing.
    """
    if sum(one.values()) < LEAST or sum(other.values()) < LEAST:
        return 0.0
    common = sum(max(one[word], other[word]) for word in one.keys() & other.keys())
    mine = {word: weight for word, weight in one.items() if word not in other}
    theirs = {word: weight for word, weight in other.items() if word not in one}
    apart = sum(mine.values()) + sum(theirs.values())
    for weight_mine, weight_theirs in _misspelt(mine, theirs):
        common += max(weight_mine, weight_theirs)
        apart -= weight_mine + weight_theirs
    return common / (common + apart)


class Sketch:
    """The MinHash of a bag."""

    __slots__ = ("minhash",)

    def __init__(self, bag: Bag) -> None:
        self.minhash = MinHash(
            num_perm=BANDS * ROWS, seed=1, scheme="affine32", permutations=_PERMUTATIONS
        )
        self.minhash.update_batch(list(_weighed(bag)))


def sketch_of(bag: Bag) -> Sketch | None:
    """The MinHash of a bag; None when it says too little to be like any."""
    return Sketch(bag) if sum(bag.values()) >= LEAST else None


class Neighbours:
    """Sketches by number, and which of them may be like a new one (datasketch's LSH)."""

    def __init__(self) -> None:
        self._lsh = MinHashLSH(num_perm=BANDS * ROWS, params=(BANDS, ROWS))

    def find(self, sketch: Sketch) -> list[int]:
        """The numbers of those that may be like it, in order."""
        return sorted(cast("list[int]", self._lsh.query(sketch.minhash)))

    def add(self, key: int, sketch: Sketch) -> None:
        """Take one in."""
        self._lsh.insert(key, sketch.minhash, check_duplication=False)


def _weighed(bag: Bag) -> Iterable[bytes]:
    """Each word as often as it weighs, so that MinHash sees the weighed index."""
    for word, weight in bag.items():
        data = word.encode("utf-8", "surrogatepass")
        yield from (data + bytes((0, copy)) for copy in range(round(weight)))


def _misspelt(mine: Bag, theirs: Bag) -> list[tuple[float, float]]:
    """Weights of the pairs of long words, one of each side, that differ by spelling only."""
    left = sorted(word for word in mine if len(word) > 4 and not is_code(word))
    right = sorted(word for word in theirs if len(word) > 4 and not is_code(word))
    if not left or not right:
        return []
    if left > right:  # the same pairs whoever comes first
        left, right, mine, theirs = right, left, theirs, mine
    scores = process.cdist(
        left, right, scorer=Indel.normalized_similarity, score_cutoff=ALIKE_WORDS, dtype=np.float32
    )
    pairs, used = [], set()
    for i, word in enumerate(left):
        best = max(range(len(right)), key=lambda j, row=scores[i]: (row[j], -j))  # type: ignore[misc]
        if scores[i][best] >= ALIKE_WORDS and best not in used:
            used.add(best)
            pairs.append((mine[word], theirs[right[best]]))
    return pairs


def _constraint_words(rewards: Iterable[Reward]) -> set[str]:
    return {
        word
        for reward in rewards
        for constraint in constraints_of(reward)
        if constraint.key != "service"
        for word in constraint.words
        if word not in _GRAMMAR
    }


def _brand_words(reward: Reward) -> set[str]:
    return {
        token
        for entry in reward.attributes
        for key, values in entry.items()
        if key.casefold() == "brand"
        for value in values
        for token in tokens(value)
    }


def _request(problem: Problem) -> str:
    """The query without the sentences that tell of a voucher."""
    text = _COUNTED.sub(" ", problem.query)
    if problem.voucher is None:
        return text
    return " ".join(part for part in _SENTENCE.split(text) if not _VOUCHER.search(part))
