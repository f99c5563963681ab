"""Words made comparable: what a shopper writes and what a catalogue writes.

"Large" and "int:l", "grey" and "gray", "500 ml" and "500ml", "striped" and "stripes"
have to meet. General English and the units of trade, nothing of any one catalogue.
"""

from __future__ import annotations

import re

from sandbox.standin.lexicon import FILLER, SAME

_UNIT = re.compile(
    r"(?<=\d)[\s-]+(?=(?:ml|kg|mg|mm|cm|gb|tb|mah|inch(?:es)?|pcs?|oz|ft|hz|mp|watts?|volts?|g|l|m|w|v)\b)"
)
_PHRASES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b(?:extra|x)[ -]large\b"), "xl"),
    (re.compile(r"\b(?:extra|x)[ -]small\b"), "xs"),
    (re.compile(r"\bpure (?=cotton|silk|wool|linen|leather)"), "100 "),
    (re.compile(r"\bmulti[ -]?packs?\b"), "multipack"),
    (re.compile(r"\bt[ -]?shirts?\b|\btees?\b"), "tshirt shirt"),
    (re.compile(r"\bwater[ -]?(?:proof|resistant|resistance)\b"), "waterproof"),
    (re.compile(r"\b(?:type|usb)[ -]c\b"), "typec"),
    (re.compile(r"\bhand-?made\b"), "handmade"),
    (re.compile(r"(?<=\d)[ -]*(?:inch(?:es)?\b|[\"”″])"), "inch "),
    (re.compile(r"['’]s\b"), ""),
    (re.compile(r"(?<=\d)\s*%"), ""),
)
_SUFFIXES = (
    ("ies", "y"),
    ("sses", "ss"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("xes", "x"),
    ("ing", ""),
    ("ed", ""),
    ("s", ""),
)
_WORD = re.compile(r"[^\W_]+(?:\.\d+)?")


def stem(word: str) -> str:
    """A rough stem: plural, -ing and -ed go, and a final e."""
    if not word.isalpha() or len(word) < 4:
        return word
    for suffix, instead in _SUFFIXES:
        if word.endswith(suffix) and not word.endswith("ss") and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)] + instead
            break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "sl":
        word = word[:-1]
    return word.rstrip("e") if len(word) > 3 else word


def _tokens(text: str) -> list[str]:
    text = text.lower()
    for pattern, instead in _PHRASES:
        text = pattern.sub(instead, text)
    text = _UNIT.sub("", text)
    return [SAME.get(word, word) for word in _WORD.findall(text)]


def words(text: str) -> list[str]:
    """The comparable words of `text`, in order, with repetitions."""
    return [stem(token) for token in _tokens(text)]


_FILLER_STEMS = frozenset(stem(SAME.get(w, w)) for w in FILLER)


def telling(text: str) -> dict[str, str]:
    """The words of `text` that tell things apart: comparable form to a readable one, in order."""
    forms: dict[str, str] = {}
    for token in _tokens(text):
        forms.setdefault(stem(token), token)
    return {form: token for form, token in forms.items() if form not in _FILLER_STEMS}


def keywords(text: str, limit: int = 24) -> str:
    """A search query: the words of `text` as written, without those of asking."""
    kept = []
    for word in re.findall(r"[^\s,;()\[\]\"?!]+", text):
        bare = word.strip(".:'").lower()
        if bare and bare not in FILLER:
            kept.append(word.strip(".:'"))
    return " ".join(kept[:limit])
