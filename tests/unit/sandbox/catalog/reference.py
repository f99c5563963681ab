"""Lucene's BM25 once more, slow and plain: what the compiled search is held against."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np

from sandbox.catalog.analysis import analyse


def stored_length(length: int) -> int:
    """The length as Lucene remembers it: exact below 24, then four significant bits."""
    if length < 24:
        return length
    rest = length - 24
    lost = max(0, rest.bit_length() - 4)
    return 24 + (rest >> lost << lost)


def ranking(texts: Mapping[str, str], q: str) -> list[tuple[str, np.float32]]:
    """(id, score) of all documents that match, best first, ties by id."""
    f = np.float32
    counts = {i: Counter(analyse(text)) for i, text in texts.items()}
    lengths = {i: c.total() for i, c in counts.items()}
    n = sum(1 for length in lengths.values() if length)
    if not n:
        return []
    average = f(sum(lengths.values()) / n)
    scores: dict[str, float] = {}
    for term, boost in Counter(analyse(q)).items():
        holding = [i for i, c in counts.items() if c[term]]
        df = len(holding)
        weight = f(boost) * f(math.log(1 + (n - df + 0.5) / (df + 0.5)))
        for i in holding:
            length = f(stored_length(lengths[i]))
            inverse = f(1) / (f(0.9) * ((f(1) - f(0.4)) + f(0.4) * length / average))
            score = weight - weight / (f(1) + f(counts[i][term]) * inverse)
            scores[i] = scores.get(i, 0.0) + float(score)
    ranked = sorted(scores, key=lambda i: (-f(scores[i]), i))
    return [(i, f(scores[i])) for i in ranked]
