"""Porter's stemmer in the form that Lucene's PorterStemFilter runs. Pure.

Source: M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980, with
the two departures of the author's own later code (-bli for -abli, and -logi) and its
rule that words of one or two letters stay as they are. Anything but a, e, i, o, u and
some y counts as a consonant, letters of other scripts and digits included.
"""

from __future__ import annotations

from collections.abc import Iterable

Rule = tuple[str, str]

DOUBLE_SUFFIXES: tuple[Rule, ...] = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("logi", "log"),
)
SIMPLE_SUFFIXES: tuple[Rule, ...] = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
)
LAST_SUFFIXES = (
    "al",
    "ance",
    "ence",
    "er",
    "ic",
    "able",
    "ible",
    "ant",
    "ement",
    "ment",
    "ent",
    "sion",
    "tion",
    "ou",
    "ism",
    "ate",
    "iti",
    "ous",
    "ive",
    "ize",
)


class _Letters(dict[int, str]):
    """Letter → "v" or "c"; y stays, its neighbour decides."""

    def __missing__(self, key: int) -> str:
        return "c"


_LETTERS = _Letters({ord(letter): "v" for letter in "aeiou"} | {ord("y"): "y"})


def _shape(word: str) -> str:
    """One "v" or "c" a letter. Porter's measure m is the number of "vc" in it."""
    shape = word.translate(_LETTERS)
    if "y" not in shape:
        return shape
    marks: list[str] = []
    for mark in shape:
        if mark == "y":
            marks.append("v" if marks and marks[-1] == "c" else "c")
        else:
            marks.append(mark)
    return "".join(marks)


def _measure(word: str) -> int:
    return _shape(word).count("vc")


def _ends_double(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _ends_cvc(word: str) -> bool:
    return len(word) > 2 and _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


def _inflections(word: str) -> str:
    """Steps 1a to 1c: plurals, -ed, -ing, final y."""
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("eed"):
        if _measure(word[:-3]):
            word = word[:-1]
    else:
        stem = word[:-2] if word.endswith("ed") else word[:-3] if word.endswith("ing") else ""
        if "v" in _shape(stem):
            word = _repair(stem)
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    return word


def _repair(stem: str) -> str:
    """Give back what -ed or -ing took: hop(p)ing, fil(e)ing, conflat(e)d."""
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if _ends_double(stem):
        return stem if stem[-1] in "lsz" else stem[:-1]
    if _measure(stem) == 1 and _ends_cvc(stem):
        return stem + "e"
    return stem


def _replace(word: str, rules: Iterable[Rule]) -> str:
    """Steps 2 and 3: the first suffix that fits decides, whether it is replaced or not."""
    for suffix, instead in rules:
        if word.endswith(suffix):
            stem = word[: -len(suffix)]
            return stem + instead if _measure(stem) else word
    return word


def _strip(word: str) -> str:
    """Step 4: what is left of -ion words keeps its s or t."""
    for suffix in LAST_SUFFIXES:
        if word.endswith(suffix):
            stem = word[: -len(suffix)] if suffix[1:] != "ion" else word[:-3]
            return stem if _measure(stem) > 1 else word
    return word


def _tidy(word: str) -> str:
    """Step 5: final e, double l."""
    if word.endswith("e"):
        m = _measure(word)
        if m > 1 or (m == 1 and not _ends_cvc(word[:-1])):
            word = word[:-1]
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word


def stem(word: str) -> str:
    """The stem of a lower-case word. Never raises, whatever the word."""
    if not word.isascii() and max(word) > "\uffff":
        # Lucene stems UTF-16 units: a pictograph counts as two letters.
        units = word.encode("utf-16-le", "surrogatepass")
        pairs = (units[i : i + 2] for i in range(0, len(units), 2))
        split = "".join(pair.decode("utf-16-le", "surrogatepass") for pair in pairs)
        return _stem(split).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _stem(word)


def _stem(word: str) -> str:
    if len(word) <= 2:
        return word
    word = _inflections(word)
    if len(word) > 1:
        word = _replace(word, DOUBLE_SUFFIXES)
        word = _replace(word, SIMPLE_SUFFIXES)
        word = _strip(word)
        word = _tidy(word)
    return word
