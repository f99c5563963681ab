"""Lucene's StandardTokenizer: UAX #29 word segmentation with emoji, as a small automaton.

The grammar below is written as a regular expression over word-break classes, turned
into a deterministic automaton once, and run over text by a compiled loop. The longest
match wins, as in Lucene; a code point that starts no token is passed over.

Sources: Unicode Standard Annex #29 (WB5-WB13b), Unicode Technical Standard #51 (emoji
sequences), and the documented departures of Lucene's StandardTokenizer: Han and
Hiragana one token a character, South-East Asian scripts one token a run, tokens of at
most 255 UTF-16 units. Touches nothing but the table `wordbreak.txt` beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sandbox.catalog.compiled import compiled

MAX_TOKEN_UNITS = 255
"""Longest token, in UTF-16 code units; Lucene's default."""

CLASSES = (
    "Other",
    "ALetter",
    "Complex_Context",
    "Complex_Extend",
    "Digit",
    "Double_Quote",
    "Emoji",
    "Emoji_Letter",
    "Emoji_Modifier",
    "Emoji_Selector",
    "Extend",
    "ExtendNumLet",
    "Han",
    "Hangul",
    "Hebrew_Letter",
    "Hiragana",
    "Katakana",
    "KeyCap",
    "KeyCap_Symbol",
    "MidLetter",
    "MidNum",
    "MidNumLet",
    "Numeric",
    "Regional_Indicator",
    "Single_Quote",
    "Tag",
    "Tag_End",
    "Text_Selector",
    "ZWJ",
)

Arc = tuple[int, frozenset[str] | None, int]


class Fragment(NamedTuple):
    """A piece of the automaton under construction: its first and last state."""

    first: int
    last: int


class Grammar:
    """Builds a nondeterministic automaton (Thompson's construction)."""

    def __init__(self) -> None:
        self.arcs: list[Arc] = []
        self._states = 0

    def _state(self) -> int:
        self._states += 1
        return self._states - 1

    def one(self, *classes: str) -> Fragment:
        """One code point of any of the classes."""
        unknown = set(classes) - set(CLASSES)
        if unknown:
            raise ValueError(f"unknown word-break classes {sorted(unknown)}")
        part = Fragment(self._state(), self._state())
        self.arcs.append((part.first, frozenset(classes), part.last))
        return part

    def seq(self, *parts: Fragment) -> Fragment:
        """The parts, one after another."""
        for left, right in pairwise(parts):
            self.arcs.append((left.last, None, right.first))
        return Fragment(parts[0].first, parts[-1].last)

    def either(self, *parts: Fragment) -> Fragment:
        """Any one of the parts."""
        whole = Fragment(self._state(), self._state())
        for part in parts:
            self.arcs.append((whole.first, None, part.first))
            self.arcs.append((part.last, None, whole.last))
        return whole

    def some(self, part: Fragment) -> Fragment:
        """The part once or more."""
        whole = self.either(part)
        self.arcs.append((part.last, None, part.first))
        return whole

    def optional(self, part: Fragment) -> Fragment:
        """The part or nothing."""
        whole = self.either(part)
        self.arcs.append((whole.first, None, whole.last))
        return whole

    def many(self, part: Fragment) -> Fragment:
        """The part any number of times, or not at all."""
        return self.optional(self.some(part))


EXTEND_SANS_SELECTORS = (
    "Complex_Extend",
    "Emoji_Modifier",
    "Extend",
    "KeyCap",
    "Tag",
    "Tag_End",
    "ZWJ",
)
EXTEND = (*EXTEND_SANS_SELECTORS, "Text_Selector", "Emoji_Selector")


def _extended(g: Grammar, *classes: str) -> Fragment:
    """WB4: a code point with the extending ones that follow it."""
    return g.seq(g.one(*classes), g.many(g.one(*EXTEND)))


def _letters(g: Grammar) -> Fragment:
    return _extended(g, "ALetter", "Emoji_Letter", "Hangul", "Hebrew_Letter")


def _digits(g: Grammar) -> Fragment:
    return _extended(g, "Digit", "Numeric")


def _joiners(g: Grammar) -> Fragment:
    return g.many(_extended(g, "ExtendNumLet"))


def _run(g: Grammar, item: Fragment, between: Fragment, again: Fragment) -> Fragment:
    return g.seq(item, g.many(g.seq(between, again)))


def _number(g: Grammar) -> Fragment:
    """WB8, WB11, WB12."""
    middle = _extended(g, "MidNum", "MidNumLet", "Single_Quote")
    return _run(g, _digits(g), g.either(_joiners(g), middle), _digits(g))


def _word_piece(g: Grammar) -> Fragment:
    """WB5-WB7c, WB9, WB10, WB13: between two runs of joiners."""
    katakana = _run(g, _extended(g, "Katakana"), _joiners(g), _extended(g, "Katakana"))
    hebrew = g.seq(
        _extended(g, "Hebrew_Letter"),
        g.either(
            _extended(g, "Single_Quote"),
            g.seq(_extended(g, "Double_Quote"), _extended(g, "Hebrew_Letter")),
        ),
    )
    middle = _extended(g, "MidLetter", "MidNumLet", "Single_Quote")
    letters = _run(g, _letters(g), g.either(_joiners(g), middle), _letters(g))
    return g.either(katakana, g.some(g.either(hebrew, _number(g), letters)))


def _word(g: Grammar) -> Fragment:
    """WB13a, WB13b: pieces with joiners (underscores) between and around them."""
    again = g.seq(g.some(_extended(g, "ExtendNumLet")), _word_piece(g))
    return g.seq(_joiners(g), _word_piece(g), g.many(again), _joiners(g))


def _emoji_element(g: Grammar) -> Fragment:
    extending = g.many(g.one(*EXTEND_SANS_SELECTORS))
    pictograph = g.seq(
        g.many(g.one("ZWJ")),
        g.one("Emoji", "Emoji_Letter"),
        extending,
        g.optional(g.one("Emoji_Selector")),
    )
    modifier = g.seq(g.one("Emoji_Modifier"), g.many(g.one(*EXTEND_SANS_SELECTORS)))
    return g.either(pictograph, modifier)


def _emoji(g: Grammar) -> Fragment:
    """UTS #51 emoji sequences: joined, tagged, keycaps and flags."""
    joined = g.many(g.seq(g.one("ZWJ"), _emoji_element(g)))
    tagged = g.seq(g.some(g.one("Tag")), g.one("Tag_End"))
    keycap = g.seq(
        g.one("Digit", "KeyCap_Symbol"),
        g.many(g.one(*EXTEND_SANS_SELECTORS)),
        g.optional(g.one("Emoji_Selector")),
        g.one("KeyCap"),
        g.many(g.one(*EXTEND_SANS_SELECTORS)),
    )
    flag = g.seq(_extended(g, "Regional_Indicator"), _extended(g, "Regional_Indicator"))
    return g.either(g.seq(_emoji_element(g), g.either(joined, tagged)), keycap, flag)


def _token(g: Grammar) -> Fragment:
    south_east_asian = g.some(
        g.seq(g.one("Complex_Context", "Complex_Extend"), g.many(g.one(*EXTEND)))
    )
    return g.either(
        _emoji(g), _word(g), south_east_asian, _extended(g, "Han"), _extended(g, "Hiragana")
    )


class Automaton(NamedTuple):
    """`steps[state, class]` is the next state, 0 is dead, 1 the start."""

    steps: npt.NDArray[np.uint16]
    accepting: npt.NDArray[np.bool_]


@cache
def automaton() -> Automaton:
    """The grammar as a deterministic automaton (subset construction)."""
    grammar = Grammar()
    whole = _token(grammar)
    silent: dict[int, list[int]] = {}
    reading: dict[int, list[tuple[frozenset[str], int]]] = {}
    for source, classes, target in grammar.arcs:
        if classes is None:
            silent.setdefault(source, []).append(target)
        else:
            reading.setdefault(source, []).append((classes, target))

    def closure(states: Iterable[int]) -> frozenset[int]:
        seen = set(states)
        todo = list(seen)
        while todo:
            for target in silent.get(todo.pop(), ()):
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        return frozenset(seen)

    start = closure([whole.first])
    numbers: dict[frozenset[int], int] = {frozenset(): 0, start: 1}
    queue, rows = [start], [[0] * len(CLASSES)]
    for states in queue:
        row = []
        for name in CLASSES:
            targets = closure(
                target for s in states for cs, target in reading.get(s, ()) if name in cs
            )
            if targets not in numbers:
                numbers[targets] = len(numbers)
                queue.append(targets)
            row.append(numbers[targets])
        rows.append(row)
    accepting = np.zeros(len(numbers), np.bool_)
    for states, number in numbers.items():
        accepting[number] = whole.last in states
    return Automaton(np.array(rows, np.uint16), accepting)


@cache
def class_table() -> npt.NDArray[np.uint8]:
    """The class of each of the 1,114,112 code points, as an index into `CLASSES`."""
    table = np.zeros(0x110000, np.uint8)
    text = resources.files(__package__).joinpath("wordbreak.txt").read_text("ascii")
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        span, name = line.split()
        first, _, last = span.partition("..")
        table[int(first, 16) : int(last or first, 16) + 1] = CLASSES.index(name)
    return table


@compiled
def _scan(
    codes: npt.NDArray[np.uint32],
    table: npt.NDArray[np.uint8],
    steps: npt.NDArray[np.uint16],
    accepting: npt.NDArray[np.bool_],
) -> npt.NDArray[np.int64]:
    """Token bounds in `codes`, rows of (start, end)."""
    n = codes.size
    bounds = np.empty((n, 2), np.int64)
    found = 0
    start = 0
    while start < n:
        state, units, end, i = 1, 0, start, start
        while i < n:
            units += 2 if codes[i] > 0xFFFF else 1
            if units > MAX_TOKEN_UNITS:
                break
            state = steps[state, table[codes[i]]]
            if state == 0:
                break
            i += 1
            if accepting[state]:
                end = i
        if end > start:
            bounds[found, 0] = start
            bounds[found, 1] = end
            found += 1
            start = end
        else:
            start += 1
    return bounds[:found]


def token_bounds(text: str) -> npt.NDArray[np.int64]:
    """Where the tokens of `text` lie: rows of (start, end), in code points.

    Never raises, whatever the text: lone surrogates and NUL are no letters.
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    machine = automaton()
    bounds: npt.NDArray[np.int64] = _scan(codes, class_table(), machine.steps, machine.accepting)
    return bounds


def tokens(text: str) -> Iterator[str]:
    """The tokens of `text`, as written."""
    return (text[start:end] for start, end in token_bounds(text).tolist())
