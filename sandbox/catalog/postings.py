"""Inverted lists: collected in runs on disk, merged into one compressed-row layout.

Memory is bounded by the run and the merge sizes below plus the vocabulary; the number
of documents adds nothing. Touches the directory it is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sandbox.catalog.analysis import normalise
from sandbox.catalog.compiled import compiled
from sandbox.catalog.strings import write_strings
from sandbox.catalog.tokenizer import token_bounds

TERMS = "terms"
DOCS = "posting_docs.npy"
FREQUENCIES = "posting_tfs.npy"
STARTS = "posting_starts.npy"

MAX_FREQUENCY = 0xFFFF
"""Highest count of a term in a document that is told apart."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be held in memory at once; about 300 MB in all."""

    batch_characters: int = 1 << 20
    run_postings: int = 1 << 22
    merge_postings: int = 1 << 23
    token_cache: int = 1 << 20


DEFAULT_LIMITS = Limits()


class Vocabulary(dict[str, int]):
    """Token as written → number of its term, -1 for a stop word."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        self.terms: dict[str, int] = {}

    def __missing__(self, token: str) -> int:
        term = normalise(token)
        number = -1 if term is None else self.terms.setdefault(term, len(self.terms))
        if len(self) >= self._limit:
            self.clear()
        self[token] = number
        return number


class PostingsWriter:
    """Takes texts in order, numbers them from 0, and writes the inverted lists."""

    def __init__(self, directory: Path, limits: Limits = DEFAULT_LIMITS) -> None:
        self._directory = directory
        self._limits = limits
        self._vocabulary = Vocabulary(limits.token_cache)
        self._texts: list[str] = []
        self._characters = 0
        self._next = 0
        self._keys: list[npt.NDArray[np.uint64]] = []
        self._counts: list[npt.NDArray[np.uint16]] = []
        self._held = 0
        self._runs: list[Path] = []
        self._lengths: list[npt.NDArray[np.int64]] = []

    def append(self, text: str) -> None:
        """Add the text of the next document."""
        self._texts.append(text)
        self._characters += len(text)
        if self._characters >= self._limits.batch_characters:
            self._analyse()

    def _analyse(self) -> None:
        """Turn the waiting texts into (term, document) keys and counts."""
        if not self._texts:
            return
        joined = "\n".join(self._texts)  # a line break is part of no token
        ends = np.cumsum([len(text) + 1 for text in self._texts])
        bounds = token_bounds(joined)
        vocabulary = self._vocabulary
        terms = np.array([vocabulary[joined[s:e]] for s, e in bounds.tolist()], np.int64)
        docs = np.searchsorted(ends, bounds[:, 0], side="right")
        kept = terms >= 0
        terms, docs = terms[kept], docs[kept]
        self._lengths.append(np.bincount(docs, minlength=len(self._texts)))
        keys = terms.astype(np.uint64) << np.uint64(32) | (docs + self._next).astype(np.uint64)
        distinct, counts = np.unique(keys, return_counts=True)
        self._keys.append(distinct)
        self._counts.append(np.minimum(counts, MAX_FREQUENCY).astype(np.uint16))
        self._held += distinct.size
        self._next += len(self._texts)
        self._texts.clear()
        self._characters = 0
        if self._held >= self._limits.run_postings:
            self._spill()

    def _spill(self) -> None:
        if not self._held:
            return
        run = self._directory / f"run-{len(self._runs)}"
        np.save(f"{run}.keys.npy", np.concatenate(self._keys))
        np.save(f"{run}.tfs.npy", np.concatenate(self._counts))
        self._runs.append(run)
        self._keys.clear()
        self._counts.clear()
        self._held = 0

    def lengths(self) -> npt.NDArray[np.int64]:
        """Terms in each text so far, stop words not counted."""
        self._analyse()
        return np.concatenate([np.zeros(0, np.int64), *self._lengths])

    def finish(self, numbers: npt.NDArray[np.uint32]) -> tuple[int, int]:
        """Write the files with documents renumbered; returns (terms, postings).

        `numbers[i]` is the final number of the text that was appended as number i.
        """
        self._analyse()
        self._spill()
        terms = sorted(self._vocabulary.terms)
        ranks = np.empty(len(terms), np.int64)
        for rank, term in enumerate(terms):
            ranks[self._vocabulary.terms[term]] = rank
        write_strings(self._directory, TERMS, terms)
        starts = self._starts(ranks)
        np.save(self._directory / STARTS, starts)
        self._merge(ranks, starts, numbers)
        for run in self._runs:
            Path(f"{run}.keys.npy").unlink()
            Path(f"{run}.tfs.npy").unlink()
        return len(terms), int(starts[-1])

    def _starts(self, ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        frequencies = np.zeros(ranks.size, np.int64)
        for run in self._runs:
            terms = np.load(f"{run}.keys.npy", mmap_mode="r") >> np.uint64(32)
            frequencies += np.bincount(ranks[terms.astype(np.int64)], minlength=ranks.size)
        starts = np.zeros(ranks.size + 1, np.int64)
        np.cumsum(frequencies, out=starts[1:])
        return starts

    def _merge(
        self,
        ranks: npt.NDArray[np.int64],
        starts: npt.NDArray[np.int64],
        numbers: npt.NDArray[np.uint32],
    ) -> None:
        """Fill the lists, a range of terms at a time."""
        total = int(starts[-1])
        docs = np.lib.format.open_memmap(self._directory / DOCS, "w+", np.uint32, (total,))
        tfs = np.lib.format.open_memmap(self._directory / FREQUENCIES, "w+", np.uint16, (total,))
        low = 0
        while low < ranks.size:
            limit = int(starts[low]) + self._limits.merge_postings
            high = max(low + 1, int(np.searchsorted(starts, limit, side="right")) - 1)
            packed = np.empty(int(starts[high] - starts[low]), np.uint64)
            cursors = starts[low:high] - starts[low]
            for run in self._runs:
                keys = np.load(f"{run}.keys.npy", mmap_mode="r")
                counts = np.load(f"{run}.tfs.npy", mmap_mode="r")
                _distribute(keys, counts, ranks, numbers, low, high, cursors, packed)
            _sort_lists(packed, starts[low : high + 1])
            docs[starts[low] : starts[high]] = packed >> np.uint64(16)
            tfs[starts[low] : starts[high]] = packed & np.uint64(MAX_FREQUENCY)
            low = high
        docs.flush()
        tfs.flush()


@compiled
def _distribute(
    keys: npt.NDArray[np.uint64],
    counts: npt.NDArray[np.uint16],
    ranks: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.uint32],
    low: int,
    high: int,
    cursors: npt.NDArray[np.int64],
    packed: npt.NDArray[np.uint64],
) -> None:
    """Put each key of a run, as (document, count), into the list of its term."""
    for k in range(keys.size):
        rank = ranks[keys[k] >> np.uint64(32)]
        if low <= rank < high:
            doc = np.uint64(numbers[keys[k] & np.uint64(0xFFFFFFFF)])
            packed[cursors[rank - low]] = doc << np.uint64(16) | np.uint64(counts[k])
            cursors[rank - low] += 1


@compiled
def _sort_lists(packed: npt.NDArray[np.uint64], starts: npt.NDArray[np.int64]) -> None:
    for t in range(starts.size - 1):
        packed[starts[t] - starts[0] : starts[t + 1] - starts[0]].sort()
