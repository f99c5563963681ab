"""Untrusted text made harmless for a judge model, code point by code point.

Every character becomes exactly one character, so that an offset in the shown text is
the same offset in the raw one. Tags, brackets of templates, delimiters, role labels and
everything invisible (control, bidi, zero-width, tag characters, variation selectors)
turn into look-alikes that mean nothing.
"""

from __future__ import annotations

import regex

HIDDEN = "·"
"""Stands for a character that cannot be seen."""
_SAME = {"<": "‹", ">": "›", "«": "‹", "»": "›", "＜": "‹", "＞": "›", "﹤": "‹", "﹥": "›",
         "⟪": "‹", "⟫": "›", "《": "‹", "》": "›"}  # fmt: skip
_TABLE = str.maketrans(_SAME)
_INVISIBLE = regex.compile(
    r"(?V1)[\p{C}\p{Zl}\p{Zp}\p{Variation_Selector}\p{Default_Ignorable_Code_Point}--[\n\t]]"
)
_CONTROL = regex.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_TEMPLATE = regex.compile(r"\[(/?(?:INST|SYS|SYSTEM|ASSISTANT|USER|TOOL)[A-Z_]{0,20})\]", regex.I)
_ROLE = regex.compile(
    r"(?m)^([ \t#*>_-]{0,8}(?:system|assistant|user|human|developer|judge|tool|event|gateway)"
    r"[ \t]{0,3})[:：]",
    regex.I,
)
_FENCE = regex.compile(r"`{3,}|={5,}|#{3,}|-{5,}|~{3,}|\*{5,}")
_FLAT = str.maketrans("`=#-~*", "ˋ＝♯‐˜∗")


def neutral(text: str) -> str:
    """The text as a judge is shown it; as many code points as before. Never raises."""
    hidden = _CONTROL if text.isascii() else _INVISIBLE
    text = hidden.sub(HIDDEN, text).translate(_TABLE)
    text = _TEMPLATE.sub(r"(\1)", text)
    text = _ROLE.sub(r"\1∶", text)
    return _FENCE.sub(lambda m: m[0].translate(_FLAT), text)
