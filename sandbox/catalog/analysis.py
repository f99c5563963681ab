"""Text to index terms, as Anserini's default English analyser does it.

StandardTokenizer → possessive 's off → lower case, per character → 33 English stop
words off → Porter's stemmer. The index and the queries go through the same function;
`ANALYSIS_VERSION` stands in the manifest of every index and changes with any change of
its output. Pure.
"""

from __future__ import annotations

from sandbox.catalog.stemmer import stem
from sandbox.catalog.tokenizer import tokens

ANALYSIS_VERSION = "lucene-english-1"

# fmt: off
STOP_WORDS = frozenset((
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is",
    "it", "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there",
    "these", "they", "this", "to", "was", "will", "with",
))
# fmt: on

_CACHE_SIZE = 1 << 16
_cache: dict[str, str | None] = {}


def normalise(token: str) -> str | None:
    """The index term of one token as written; None for a stop word."""
    word = token
    if len(word) >= 2 and word[-1] in "sS" and word[-2] in "'’＇":
        word = word[:-2]
    word = _lower(word)
    return None if word in STOP_WORDS else stem(word)


def _cached(token: str) -> str | None:
    known = _cache.get(token, "")
    if known != "":
        return known
    if len(_cache) >= _CACHE_SIZE:
        _cache.clear()
    result = _cache[token] = normalise(token)
    return result


def _lower(word: str) -> str:
    """Lower case one character at a time: no final sigma, İ becomes a plain i."""
    if word.isascii():
        return word.lower()
    return "".join("i" if c == "İ" else c.lower() for c in word)


def analyse(text: str) -> list[str]:
    """The terms of `text`, in order, repeated as often as they occur."""
    return [t for t in map(_cached, tokens(text)) if t is not None]
