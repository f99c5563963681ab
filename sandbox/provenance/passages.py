"""Texts in which a tool's name and argument values may stand close together.

Texts are compared as streams of words: lower case, punctuation and escapes gone, so
that JSON, a URL, a list or a sentence that says the same reads the same.
"""

from __future__ import annotations

import ast
import re
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from threading import Lock
from urllib.parse import unquote

from sandbox.provenance.calls import TOOLS

CLOSE = 240
"""Characters, besides the values themselves, that still count as close to a tool's name."""
MAX_REACH = 4000
MAX_MENTIONS = 500
"""Mentions of one tool looked at in one passage. A prompt that has more is a flood,
and everything in it counts as close."""
TIGHT_WORDS = 4
MAX_SOURCE = 2 << 20
"""Bytes of agent source whose literals are read; larger sources have none."""

_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\[nrt\"'/\\]")
_BREAK = re.compile(r"[.!?;](?=\s)|[\r\n]+")
_NOT_WORDS = re.compile(r"[^\w.]+|(?<!\d)\.|\.(?!\d)|_{4,}")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)
"""Characters that a model reads over and that would part a word in two."""

_BREAK_MARK = "\ue000"
_FILTERS = Lock()
"""Warning filters are the process's: two threads must not swap them at once."""


def word_stream(text: str) -> str:
    """`text` as words between single spaces, with one at each end.

    The ends of sentences and lines are kept as a word of their own.
    """
    text = _BREAK.sub(f" {_BREAK_MARK} ", _plain(text))
    words = _NOT_WORDS.sub(lambda m: " " + _BREAK_MARK * (_BREAK_MARK in m[0]) + " ", text).split()
    return " " + " ".join(words) + " "


def phrase(text: str) -> str:
    """A value as it is looked for in a word stream, without breaks at its ends; may be empty."""
    return word_stream(text).strip(f" {_BREAK_MARK}")


def mentions_tool(text: str) -> bool:
    """Whether a raw text names any tool: others need no closer look."""
    plain = _plain(text)
    return any(tool in plain for tool in TOOLS)


def _plain(text: str) -> str:
    """`text` as a reader takes it: escapes resolved, case folded, nothing invisible in it."""
    if "\\" in text:
        text = _ESCAPE.sub(_unescaped, text)
    if "%" in text:
        text = unquote(text)
    if not text.isascii():
        text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    return text.casefold()


class Passage:
    """One stretch of text, ready to be searched for calls."""

    __slots__ = ("_vocabulary", "words")

    def __init__(self, text: str) -> None:
        self.words = word_stream(text)
        self._vocabulary: frozenset[str] | None = None

    @classmethod
    def of_words(cls, words: str) -> Passage:
        """A passage of a text that is a word stream already."""
        passage = cls("")
        passage.words = words
        return passage

    def masked(self, part: str) -> Passage:
        """The same passage with every copy of `part` (a phrase) blotted out."""
        if not part or part not in self.words:
            return self
        return Passage.of_words(self.words.replace(f" {part} ", f" {_BREAK_MARK} "))

    def windows(self, name: str, values: Sequence[str]) -> Iterator[str]:
        """The surroundings of each mention of `name` in which all `values` (phrases) stand.

        Of a passage that mentions it more than `MAX_MENTIONS` times, the whole.
        """
        yield from self._windows(name, values)
        if self._may_hold(name, values) and self._floods(name):
            yield self.words

    def close(self, name: str, values: Sequence[str]) -> bool:
        """Whether `name` and all `values` stand close together; a flood proves nothing here."""
        return any(True for _ in self._windows(name, values))

    def _windows(self, name: str, values: Sequence[str]) -> Iterator[str]:
        if not values or not self._may_hold(name, values):
            return
        reach = min(CLOSE + sum(len(v) + 1 for v in values), MAX_REACH)
        for at in islice(self._mentions(name), MAX_MENTIONS):
            window = self.words[max(0, at - reach) : at + len(name) + reach]
            if all(f" {v} " in window for v in values):
                yield window

    def _may_hold(self, name: str, values: Sequence[str]) -> bool:
        """A quick no for most: a search through a long text for each value would be slow."""
        if self._vocabulary is None:
            self._vocabulary = frozenset(self.words.split())
        words = (word for value in values for word in value.split())
        return name in self._vocabulary and self._vocabulary.issuperset(words)

    def _floods(self, name: str) -> bool:
        return next(islice(self._mentions(name), MAX_MENTIONS, None), None) is not None

    def states(self, name: str, argument: str, value: str) -> bool:
        """Whether `name` is directly followed by `value`, as in a written call.

        At most a few words stand between, and the argument's name is one of them.
        """
        for at in islice(self._mentions(name), MAX_MENTIONS):
            after = self.words[at + len(name) + 1 : at + len(name) + len(value) + 120]
            found = after.find(f" {value} ")
            gap = after[:found].split() if found >= 0 else [""] * 99
            named = argument in gap and len(gap) - gap.count(_BREAK_MARK) <= TIGHT_WORDS
            if named or not gap:
                return True
        return self._floods(name) and f" {value} " in self.words

    def _mentions(self, name: str) -> Iterator[int]:
        needle = f" {name} "
        at = self.words.find(needle)
        while at >= 0:
            yield at
            at = self.words.find(needle, at + 1)


def source_literals(source: bytes | None) -> str:
    """The constants of a Python source, in order: what its author wrote for every problem.

    Empty when there is no source, or it does not parse.
    """
    if source is None or len(source) > MAX_SOURCE:
        return ""
    try:
        with _FILTERS, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    constants.sort(key=lambda node: (node.lineno, node.col_offset))
    return "\n".join(_constant_text(node.value) for node in constants)


def _constant_text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, int) and value.bit_length() >= 4096:
        return ""
    return str(value)


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else " "
