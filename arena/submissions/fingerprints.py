"""Fingerprints of a file's code and prose, for the comparison with others.

Code: winnowing (Schleimer, Wilkerson, Aiken: Winnowing, SIGMOD 2003) over the canonical
tokens of each function, with names by the distance to their last occurrence (Baker:
Parameterized duplication in strings, 1997), and each longer statement by itself, so that
what is put between two statements does not part them. Prose: word triples of longer
texts. Hashes are the same in every process. Standard library only.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from arena.submissions.canonical import OWN, Canonical, Token
from arena.submissions.form import Lines
from arena.submissions.scopes import Scopes

GRAM = 8
"""Tokens of a window."""
WINDOW = 3
"""Windows of which one is kept: every run of 17 equal tokens shares a fingerprint."""
STATEMENT = 12
"""Tokens of a statement that says something by itself."""
MIN_WORDS = 6
"""A shorter text is no prose."""
_WORD = re.compile(r"[^\W_]+")

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a file has of its own, as 64-bit hashes, each with its first and last line."""

    sha256: str
    code: tuple[tuple[int, int, int], ...]
    prose: tuple[tuple[int, int, int], ...]


def fingerprint(
    source: bytes, tree: ast.Module, scopes: Scopes, texts: Iterable[tuple[int, str]]
) -> Fingerprint:
    """The fingerprint of a file that was parsed; `texts` are its strings."""
    code: dict[int, Place] = {}
    for unit in Canonical(tree, scopes).units:
        _winnow(unit, code)
        _statements(unit, code)
    prose: dict[int, Place] = {}
    for line, text in texts:
        _triples(line, text, prose)
    return Fingerprint(hashlib.sha256(source).hexdigest(), _sorted(code), _sorted(prose))


def _sorted(found: dict[int, Place]) -> tuple[tuple[int, int, int], ...]:
    return tuple((value, first, last) for value, (first, last) in sorted(found.items()))


def _hash(parts: Sequence[str]) -> int:
    text = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def _encode(tokens: Sequence[Token]) -> list[str]:
    """Own names as how far back they stood last, within these tokens."""
    last: dict[str, int] = {}
    found = []
    for index, (token, _) in enumerate(tokens):
        if token.startswith(OWN):
            found.append(f"\x02{index - last[token] if token in last else 0}")
            last[token] = index
        else:
            found.append(token)
    return found


def _lines(tokens: Sequence[Token]) -> Place:
    return min(line for _, line in tokens), max(line for _, line in tokens)


def _winnow(unit: Sequence[Token], found: dict[int, Place]) -> None:
    grams = [unit[i : i + GRAM] for i in range(len(unit) - GRAM + 1)]
    hashes = [_hash(_encode(gram)) for gram in grams]
    kept = -1
    for start in range(len(hashes) - WINDOW + 1):
        window = range(start, start + WINDOW)
        least = min(window, key=lambda i: (hashes[i], -i))
        if least != kept:
            kept = least
            found.setdefault(hashes[least], _lines(grams[least]))


_HEADS = frozenset({"Assign", "Return", "Expr", "If", "For", "While", "With", "def", "Raise"})


def _statements(unit: Sequence[Token], found: dict[int, Place]) -> None:
    """Each simple statement, and the head of each compound one."""
    starts = [i for i, (token, _) in enumerate(unit) if token in _HEADS]
    for start, end in pairwise([*starts, len(unit)]):
        if end - start >= STATEMENT:
            tokens = unit[start:end]
            found.setdefault(_hash(["\x03", *_encode(tokens)]), _lines(tokens))


def _triples(line: int, text: str, found: dict[int, Place]) -> None:
    words = [(m[0].lower(), m.start()) for m in _WORD.finditer(text)]
    if len(words) < MIN_WORDS:
        return
    lines = Lines(text, line)
    for triple in zip(words, words[1:], words[2:], strict=False):
        if sum(len(word) for word, _ in triple) < 8:
            continue
        here = lines.at(triple[0][1])
        found.setdefault(_hash(["\x04", *(word for word, _ in triple)]), (here, here))
