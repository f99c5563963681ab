"""Telling encoded data from words, identifiers, addresses and patterns. Standard library only."""

from __future__ import annotations

import base64
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

MIN_RUN = 20
_RUN = re.compile(rf"[A-Za-z0-9+/=_-]{{{MIN_RUN},}}")
_HEX = re.compile(r"[0-9a-fA-F]+")
_BASE32 = re.compile(r"[A-Z2-7=]+")
_DENSE = re.compile(r"[!-~]{60,}")
_URL = re.compile(r"^[a-z]+://|^/|\.(?:com|org|net|io|ph)/")
_LETTERS = re.compile(r"[^\W\d_a-zA-Z]{60,}")
CHANGES = 0.42
"""Share of neighbouring characters of different kinds; in identifiers it is below 0.35."""
DENSE_BITS = 5.15
"""Entropy a character of base 85; long patterns stay below 5."""
PACKED = 48


def encoded_runs(text: str) -> Iterator[str]:
    """Runs that read as hexadecimal, base 32, 64 or 85."""
    for match in _RUN.finditer(text):
        run = match[0]
        if _is_encoded(run.strip("=")) or any(decoded(run)):
            yield run
    for match in _DENSE.finditer(text):
        run = match[0]
        if not _RUN.fullmatch(run) and entropy(run) >= DENSE_BITS and not _URL.search(run):
            yield run


def decoded(run: str) -> Iterator[str]:
    """The texts that a run may stand for: what decodes to plain words is encoded, for sure."""
    for decode in _DECODERS:
        try:
            text = decode(run).decode("utf-8")
        except ValueError:
            continue
        if text.isprintable() and sum(c.isalpha() or c == " " for c in text) > len(text) // 2:
            yield text


_DECODERS: tuple[Callable[[str], bytes], ...] = (
    bytes.fromhex,
    lambda run: base64.b64decode(_plain64(run), validate=True),
    lambda run: base64.b32decode(run + "=" * (-len(run) % 8)),
    base64.b85decode,
)


def _plain64(run: str) -> str:
    return run.replace("-", "+").replace("_", "/") + "=" * (-len(run) % 4)


def _is_encoded(run: str) -> bool:
    digits = sum(c.isdigit() for c in run)
    if len(run) < MIN_RUN or digits == len(run):
        return False
    if _HEX.fullmatch(run):
        return digits >= len(run) // 8
    if _BASE32.fullmatch(run) and "_" not in run:
        return digits > 0 and entropy(run) > 3.2 and _changes(run) > 0.15
    upper, lower = any(map(str.isupper, run)), any(map(str.islower, run))
    if not (upper and lower):
        return False
    return _changes(run) >= CHANGES and entropy(run) >= 3.6


def _changes(run: str) -> float:
    kinds = ["u" if c.isupper() else "l" if c.islower() else "d" if c.isdigit() else c for c in run]
    changed = sum(a != b for a, b in pairwise(kinds))
    return changed / max(len(run) - 1, 1)


def entropy(text: str) -> float:
    """Shannon entropy in bits a character, of the characters' frequencies."""
    counts = Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())


def is_packed(text: str) -> bool:
    """Bytes, or letters of large alphabets, that are used as digits."""
    odd = private = 0
    for character in text:
        code = ord(character)
        if (code < 0x20 and character not in "\t\n\r\x1b") or 0x7F <= code < 0xA0:
            odd += 1
        elif code >= 0xE000 and unicodedata.category(character) in ("Co", "Cn"):
            private += 1
    if private >= 12 or (len(text) >= PACKED and odd >= len(text) * 0.15):
        return True
    return any(
        len(set(match[0])) >= 0.8 * min(len(match[0]), 120) for match in _LETTERS.finditer(text)
    )
