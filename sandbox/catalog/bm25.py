"""Lucene's BM25 to the bit, and the choice of the best, as compiled loops.

k1 and b are Anserini's defaults. A term's score is computed in 32-bit floats, the sum
over terms in 64-bit floats and cast back, document lengths go through Lucene's
one-byte SmallFloat: each rounding decides ties. The loops release the interpreter
lock. Pure: arrays in, arrays out.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from sandbox.catalog.compiled import compiled

K1 = np.float32(0.9)
B = np.float32(0.4)

Score = float | np.float32

CAP = 10_000
"""So many of the best survive before the filters, as upstream asks of Lucene."""

KEPT = 50
"""So many of those that pass the filters are kept."""

UNTOUCHED = -1.0
"""What an accumulator holds for a document that no term has reached."""

_EXACT_LENGTHS = 24


def _restored(code: int) -> int:
    """SmallFloat.int4ToLong: four significant bits, so each code is a lower bound."""
    bits, shift = code & 0x07, (code >> 3) - 1
    return bits if shift == -1 else (bits | 0x08) << shift


@cache
def length_table() -> npt.NDArray[np.int64]:
    """Document length by norm byte: exact up to 40, coarser after."""
    return np.array(
        [
            code if code < _EXACT_LENGTHS else _EXACT_LENGTHS + _restored(code - _EXACT_LENGTHS)
            for code in range(256)
        ],
        np.int64,
    )


def norm_bytes(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """The byte that stands for each length, in terms (SmallFloat.intToByte4)."""
    lengths_by_byte = length_table()
    return (np.searchsorted(lengths_by_byte, lengths, side="right") - 1).astype(np.uint8)


def norm_inverses(total_terms: int, documents: int) -> npt.NDArray[np.float32]:
    """For each norm byte 1 / (k1 · ((1 − b) + b · length / average length))."""
    one = np.float32(1)
    average = np.float32(total_terms / documents) if documents else one
    lengths = length_table().astype(np.float32)
    return (one / (K1 * ((one - B) + B * lengths / average))).astype(np.float32)


def idf(documents: int, frequency: int) -> np.float32:
    """ln(1 + (N − df + 0.5) / (df + 0.5)), as a 32-bit float."""
    return np.float32(math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5)))


@compiled
def accumulate(
    docs: npt.NDArray[np.uint32],
    tfs: npt.NDArray[np.uint16],
    first: int,
    last: int,
    weight: np.float32,
    norms: npt.NDArray[np.uint8],
    inverses: npt.NDArray[np.float32],
    scores: npt.NDArray[np.float64],
    touched: npt.NDArray[np.uint32],
    count: int,
) -> int:
    """Add one term's scores; `touched[:count]` lists the documents reached so far."""
    one = np.float32(1)
    for p in range(first, last):
        doc = docs[p]
        x = np.float32(tfs[p]) * inverses[norms[doc]]
        score = weight - weight / (one + x)
        if scores[doc] == UNTOUCHED:
            touched[count] = doc
            count += 1
            scores[doc] = score
        else:
            scores[doc] += score
    return count


@compiled
def _better(score_a: Score, doc_a: int, score_b: Score, doc_b: int) -> bool:
    """Score descending, then product id ascending (documents are numbered by id)."""
    return bool(score_a > score_b or (score_a == score_b and doc_a < doc_b))


@compiled
def _rank(
    score: Score,
    doc: int,
    scores: npt.NDArray[np.float64],
    touched: npt.NDArray[np.uint32],
) -> int:
    """How many of the touched documents are better."""
    better = 0
    for other in touched:
        if _better(np.float32(scores[other]), other, score, doc):
            better += 1
    return better


@compiled
def best(
    scores: npt.NDArray[np.float64],
    touched: npt.NDArray[np.uint32],
    prices: npt.NDArray[np.float64],
    low: float,
    high: float,
    shops: npt.NDArray[np.uint32],
    shop: int,
    services: npt.NDArray[np.uint8],
    wanted: int,
) -> npt.NDArray[np.uint32]:
    """The first `KEPT` of the best `CAP` documents that pass the filters, best first.

    `shop` -1 and `wanted` 0 filter nothing. Documents beyond the cap are found by
    counting the better ones of the weakest kept, which costs one pass and no sort.
    """
    top = np.empty(KEPT, np.uint32)
    top_scores = np.empty(KEPT, np.float32)
    kept = 0
    for doc in touched:
        if shop >= 0 and shops[doc] != shop:
            continue
        if services[doc] & wanted != wanted:
            continue
        if not low <= prices[doc] <= high:
            continue
        score = np.float32(scores[doc])
        if kept == KEPT and not _better(score, doc, top_scores[KEPT - 1], top[KEPT - 1]):
            continue
        i = kept if kept < KEPT else KEPT - 1
        while i > 0 and _better(score, doc, top_scores[i - 1], top[i - 1]):
            top[i], top_scores[i] = top[i - 1], top_scores[i - 1]
            i -= 1
        top[i], top_scores[i] = doc, score
        kept = min(kept + 1, KEPT)
    if touched.size > CAP:
        inside, outside = 0, kept
        if kept and _rank(top_scores[kept - 1], top[kept - 1], scores, touched) < CAP:
            inside = kept
        while inside < outside:
            middle = (inside + outside) // 2
            if _rank(top_scores[middle], top[middle], scores, touched) < CAP:
                inside = middle + 1
            else:
                outside = middle
        kept = inside
    return top[:kept].copy()


@compiled
def forget(scores: npt.NDArray[np.float64], touched: npt.NDArray[np.uint32]) -> None:
    """Make the accumulators ready for the next query."""
    for doc in touched:
        scores[doc] = UNTOUCHED
