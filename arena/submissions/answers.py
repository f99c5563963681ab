"""Does a file know the answers? Ids, queries and titles of the bank, as keyed hashes.

An index holds no text: 64-bit keyed hashes of product ids, and of word runs of queries and
reward titles that are distinctive (not the wording that all queries share, nor words of
every shop). With a secret key it tells its holder nothing that guessing would not.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from arena.submissions.common_words import COMMON_WORDS
from arena.submissions.encoded import MIN_RUN, decoded, encoded_runs
from arena.submissions.form import Lines
from arena.submissions.reading import Reading
from arena.submissions.rules import Rule, Violation, violation
from scoring.types import Problem

RUN = 5
"""Words of a run, in their order."""
TELLING = 2
"""Of them, words that are not everyone's."""
TRIPLE = 3
"""Telling words that stand near each other, in any order."""
SHARED_BY = 3
"""A run that so many problems have is common wording."""
ENOUGH = 3
"""Runs of one problem that make a match; fewer do when they are half of all it has."""
NEAR = 4
"""Telling words of a query that are so near are a pair, in any order."""
GROUP = (2, 12)
"""Telling words of a text that may be one problem's keywords; of their pairs it needs 3, and
a third of all."""
FRAGMENTS = 12
"""Problems of which a file's short texts have a pair: a table of fragments. An honest list of
synonyms touches five of 369 real problems."""
PROBLEMS = 4
"""Or so many problems with any run: the keys of a table of fragments."""
MAX_WORDS = 200_000
_WORD = re.compile(r"[^\W_]+")

U64 = npt.NDArray[np.uint64]
U32 = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class _Runs:
    """Hashes of runs, sorted, each with its problem; and how many each problem has."""

    hashes: U64
    problem: U32
    per_problem: U32

    def places(self, wanted: U64) -> npt.NDArray[np.int64]:
        """Where the hashes stand that are there."""
        if not len(self.hashes):
            return np.array([], dtype=np.int64)
        places = np.minimum(np.searchsorted(self.hashes, wanted), len(self.hashes) - 1)
        found: npt.NDArray[np.int64] = places[self.hashes[places] == wanted]
        return found


@dataclass(frozen=True, slots=True)
class _Match:
    problem: int
    line: int
    words: str
    runs: int


class AnswerIndex:
    """What no file may hold. Build it with `build`; the same input and key give the same index."""

    def __init__(self, key: bytes, ids: U64, queries: _Runs, pairs: _Runs, titles: _Runs) -> None:
        self._key = key
        self._ids = ids
        self._queries = queries
        self._pairs = pairs
        self._titles = titles

    @classmethod
    def build(
        cls, problems: Iterable[Problem], *, product_ids: Iterable[str] = (), key: bytes = b""
    ) -> AnswerIndex:
        """Index problems with their answers; `product_ids` are further ids, of a catalogue say."""
        listed = list(problems)
        ids = {_hash(key, "id", r.product_id) for p in listed for r in p.rewards}
        ids.update(_hash(key, "id", product_id) for product_id in product_ids)
        queries = [[p.query] for p in listed]
        titles = [[title for r in p.rewards for title in r.title] for p in listed]
        return cls(
            key,
            _array(ids),
            _index([list(_all_runs(key, "query", texts)) for texts in queries]),
            _index(
                [[_hash(key, "pair", p) for t in texts for p in _pairs(t)] for texts in queries]
            ),
            _index([list(_all_runs(key, "title", texts)) for texts in titles]),
        )

    @property
    def size(self) -> tuple[int, int]:
        """How many ids and how many runs of words it knows."""
        return len(self._ids), len(self._queries.hashes) + len(self._titles.hashes)

    def violations(self, reading: Reading) -> list[Violation]:
        """What a file knows of the bank. Each known id, and the best place of each match."""
        found = list(self._known_ids(reading.numbers))
        texts = [*_variants(reading.texts)]
        for rule, kind, runs in (
            (Rule.QUERY, "query", self._queries),
            (Rule.TITLE, "title", self._titles),
        ):
            for match in self._matches(kind, runs, texts):
                told = f"{match.runs} word runs of one {kind}, with: {match.words}"
                found.append(violation(rule, match.line, 0, told))
        found += self._known_keywords(texts)
        return found

    def _known_ids(self, numbers: Sequence[tuple[str, int]]) -> Iterator[Violation]:
        if not numbers or not len(self._ids):
            return
        for turned in (False, True):
            digits = [(d[::-1] if turned else d, line) for d, line in numbers]
            hashes = np.array([_hash(self._key, "id", d) for d, _ in digits], dtype=np.uint64)
            for place in np.flatnonzero(np.isin(hashes, self._ids)):
                number, line = digits[int(place)]
                told = f"{number[::-1]}, turned round" if turned else number
                yield violation(Rule.PRODUCT_ID, line, 0, told)

    def _known_keywords(self, texts: Sequence[tuple[int, str]]) -> Iterator[Violation]:
        """Short texts, and lists of words, that name one problem by its keywords."""
        touched: dict[int, int] = {}
        for line, text in texts:
            words = sorted(set(_telling(text))) if len(text) < 400 else []
            if not GROUP[0] <= len(words) <= GROUP[1]:
                continue
            pairs = [f"{a} {b}" for i, a in enumerate(words) for b in words[i + 1 :]]
            hashes = np.array([_hash(self._key, "pair", p) for p in pairs], dtype=np.uint64)
            problems = Counter(self._pairs.problem[self._pairs.places(hashes)].tolist())
            for problem in problems:
                touched.setdefault(problem, line)
            count = max(problems.values(), default=0)
            if count >= 3 and count * 3 >= len(pairs):
                told = f"keywords of one query: {' '.join(words)}"
                yield violation(Rule.QUERY, line, 0, told)
        if len(touched) >= FRAGMENTS:
            told = f"short texts name {len(touched)} problems by two words each"
            yield violation(Rule.QUERY, min(touched.values()), 0, told)

    def _matches(self, kind: str, runs: _Runs, texts: Sequence[tuple[int, str]]) -> list[_Match]:
        """Problems of which the texts hold enough; all of them when they are many."""
        seen: dict[int, tuple[int, str]] = {}
        if not len(runs.hashes):
            return []
        for line, text in texts:
            lines = Lines(text, line)
            for value, place, words in _runs(self._key, kind, text):
                seen.setdefault(value, (lines.at(place), words))
        hashes = np.fromiter(seen, dtype=np.uint64, count=len(seen))
        if not len(hashes):
            return []
        problems: Counter[int] = Counter()
        first: dict[int, tuple[int, str]] = {}
        for place in runs.places(hashes).tolist():
            value, problem = int(runs.hashes[place]), int(runs.problem[place])
            problems[problem] += 1
            first[problem] = min(first.get(problem, seen[value]), seen[value])
        enough = [
            problem
            for problem, count in problems.items()
            if count >= min(ENOUGH, max(1, -(-int(runs.per_problem[problem]) // 2)))
        ]
        if len(problems) >= PROBLEMS:
            enough = list(problems)
        matches = [_Match(p, *first[p], problems[p]) for p in enough]
        return sorted(matches, key=lambda m: (m.line, -m.runs, m.words))


def _hash(key: bytes, kind: str, text: str) -> int:
    data = f"{kind}\0{text}".encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8, key=key[:64]).digest(), "big")


def _array(values: Iterable[int]) -> U64:
    return np.array(sorted(values), dtype=np.uint64)


def _index(hashes: Sequence[Sequence[int]]) -> _Runs:
    """The distinctive ones of each problem's hashes."""
    owners: dict[int, list[int]] = {}
    for problem, many in enumerate(hashes):
        for value in set(many):
            owners.setdefault(value, []).append(problem)
    kept = sorted((v, p[0]) for v, p in owners.items() if len(p) < SHARED_BY)
    per_problem = np.zeros(len(hashes), dtype=np.uint32)
    for _, problem in kept:
        per_problem[problem] += 1
    return _Runs(
        np.array([v for v, _ in kept], dtype=np.uint64),
        np.array([p for _, p in kept], dtype=np.uint32),
        per_problem,
    )


def _all_runs(key: bytes, kind: str, texts: Iterable[str]) -> Iterator[int]:
    return (value for text in texts for value, _, _ in _runs(key, kind, text))


def _telling(text: str) -> list[str]:
    words = [match[0].casefold() for match in _WORD.finditer(text)]
    return [w for w in words if w not in COMMON_WORDS and not w.isdigit()]


def _pairs(text: str) -> Iterator[str]:
    """Telling words that stand near each other, two and two in the alphabet's order."""
    words = _telling(text)
    for i, word in enumerate(words):
        for other in words[i + 1 : i + 1 + NEAR]:
            if word != other:
                yield " ".join(sorted((word, other)))


def _runs(key: bytes, kind: str, text: str) -> Iterator[tuple[int, int, str]]:
    """Hash, place and words of each run: five in order, or three telling ones near together."""
    words = [(m[0].casefold(), m.start()) for m in _WORD.finditer(text)][:MAX_WORDS]
    telling = [(w, p) for w, p in words if w not in COMMON_WORDS and not w.isdigit()]
    for i in range(len(words) - RUN + 1):
        run = [w for w, _ in words[i : i + RUN]]
        if sum(w not in COMMON_WORDS and not w.isdigit() for w in run) >= TELLING:
            yield _hash(key, f"{kind} run", " ".join(run)), words[i][1], " ".join(run)
    for i in range(len(telling) - TRIPLE + 1):
        triple = sorted(w for w, _ in telling[i : i + TRIPLE])
        if len(set(triple)) == TRIPLE:
            shown = " ".join(w for w, _ in telling[i : i + TRIPLE])
            yield _hash(key, f"{kind} triple", " ".join(triple)), telling[i][1], shown


def _variants(texts: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Texts as they stand, turned round, by rot13, and out of base 64 and hexadecimal."""
    for line, text in texts:
        yield line, text
        if " " in text and len(text) >= 20:
            yield line, text[::-1]
            yield line, codecs.encode(text, "rot13")
        if len(text) >= MIN_RUN:
            for run in encoded_runs(text):
                yield from ((line, told) for told in decoded(run))
