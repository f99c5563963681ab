"""What an agent may be called: the same words from `arena agent check` and from the arena."""

from __future__ import annotations

import unicodedata

_PUNCTUATION = frozenset(" ._-+:#@()")


def stored_name(name: str) -> str:
    """A name in the form in which it is stored: trimmed, NFC."""
    return unicodedata.normalize("NFC", name.strip())


def name_fault(name: str, limit: int) -> str | None:
    """Why no agent may have this name; None when one may. `limit` is in characters.

    Letters, marks and digits of any script, and a little punctuation: nothing that means
    something to a shell, a path, a page or a query, since names go everywhere.
    """
    if len(name) > limit:  # before anything that costs more, the longer it is
        return f"the name has {len(name)} characters, {limit} are allowed"
    found = stored_name(name)
    if not found:
        return "the name is empty"
    if len(found) > limit:
        return f"the name has {len(found)} characters, {limit} are allowed"
    odd = [c for c in found if c not in _PUNCTUATION and unicodedata.category(c)[0] not in "LMN"]
    if odd or unicodedata.category(found[0])[0] not in "LN" or ".." in found:
        return (
            "a name is made of letters, digits, spaces and ._-+:#@(), begins with a letter or a"
            " digit and has no two dots in a row"
        )
    return None
