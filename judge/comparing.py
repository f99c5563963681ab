"""Does a step compare candidates, with a reason? Told from its mentions and its words.

This is a ceiling, not a verdict: where it says no, no judge may say yes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from judge.mentions import DatumKind, Mention, Query, ThoughtText

BEFORE = 2
AFTER = 1
"""Sentences around a reason in which the candidates may be named."""
IDENTITIES = frozenset({DatumKind.PRODUCT, DatumKind.TITLE, DatumKind.PRICE})
"""What a candidate can be named by."""
CRITERIA = frozenset({DatumKind.PRICE, DatumKind.VALUE, DatumKind.SHOP, DatumKind.FIGURE})
"""Data that a reason can rest on."""

_SENTENCE_END = re.compile(r"(?<=[.!?;。！？；])\s+|(?<=[。！？；])|\n+")
_CONTRAST = re.compile(
    r"""\b(?:because|since|as\ it|so|therefore|thus|hence|due\ to|whereas|while|although|though
    |however|but|instead|rather|unlike|than|versus|vs|against|over|prefer\w*|better|best|worse
    |cheap\w*|lower|lowest|higher|highest|more|less|fewer|only|exceeds?|lacks?|lacking|missing
    |breaks?|fails?|violates?|outside|does\ not|doesn't|do\ not|isn't|not|no|both|neither|wins?
    |beats?|closer|closest|exact\w*|dahil|kaysa|mas|porque|pero)\b
    |因为|因此|所以|但|比|更|而|优于|没有|不""",
    re.IGNORECASE | re.VERBOSE,
)
_CRITERION = re.compile(
    r"""\b(?:price[ds]?|costs?|cheap\w*|expensive|budget|afford\w*|shipping|delivery|cod|lazmall
    |official|freeshipping|flashsale|lazflash|service|voucher|discount|threshold|material
    |colou?r|size|brand|capacity|weight|length|pack|condition|constraints?|requirements?
    |range|band|sold|rating|shop|title|lower|higher)\b|价格|颜色|尺寸|品牌|材质""",
    re.IGNORECASE | re.VERBOSE,
)
_STOP_WORDS = """
a an and are as at be by can for find from have i in is it item items looking me need of on one or
price product products shop that the them this to want which with you
"""
_STOP = frozenset(_STOP_WORDS.split())


def sentences(text: str) -> list[tuple[int, int]]:
    """The sentences and lines of a text, as places; all of it but the gaps."""
    spans = []
    at = 0
    for gap in _SENTENCE_END.finditer(text):
        if gap.start() > at:
            spans.append((at, gap.start()))
        at = max(at, gap.end())
    if at < len(text):
        spans.append((at, len(text)))
    return spans


def candidates(mentions: Iterable[Mention]) -> list[Mention]:
    """Mentions that name different candidates, one for each.

    A stretch of title or a price that several products share names one candidate at
    most, and none that is named already.
    """
    named: set[str] = set()
    chosen: list[Mention] = []
    identities = [m for m in mentions if m.kind in IDENTITIES]
    for mention in sorted(identities, key=lambda m: (len(m.products), m.start)):
        if not named & mention.products:
            chosen.append(mention)
            named |= mention.products
    return sorted(chosen, key=lambda m: m.start)


def compared(
    thought: ThoughtText,
    mentions: Sequence[Mention],
    query: Query,
    masked: Sequence[tuple[int, int]] = (),
) -> list[tuple[int, int]]:
    """The stretches of a step that compare two candidates or more and give a reason.

    A reason is a sentence with a word of contrast or cause that rests on a datum, a
    criterion or a condition of the query; the candidates are named in it or next to it.
    """
    spans = sentences(thought.text)
    found: list[tuple[int, int]] = []
    named = [(m.start, m.end) for m in mentions]
    inside = [[mentions[k] for k in ks] for ks in _by_sentence(spans, named)]
    blots = _by_sentence(spans, masked)
    for i, (start, end) in enumerate(spans):
        first, last = max(0, i - BEFORE), min(len(spans) - 1, i + AFTER)
        if sum(len(inside[k]) for k in range(first, last + 1)) < 2:
            continue
        near = [m for k in range(first, last + 1) for m in inside[k]]
        if len(candidates(near)) < 2:
            continue
        hidden = [masked[k] for k in blots[i]]
        if not _reasons(thought.text, start, end, inside[i], query, hidden):
            continue
        stop = max(end, *(m.end for m in near))
        found.append((min(start, *(m.start for m in near)), stop))
    return found


def _by_sentence(
    spans: Sequence[tuple[int, int]], stretches: Sequence[tuple[int, int]]
) -> list[list[int]]:
    """For each sentence the stretches (by number) that touch it; both stand in order."""
    inside: list[list[int]] = [[] for _ in spans]
    i = 0
    for k, (start, end) in enumerate(stretches):
        while i + 1 < len(spans) and spans[i][1] <= start:
            i += 1
        j = i
        while j < len(spans) and spans[j][0] < end:
            inside[j].append(k)
            j += 1
    return inside


def _reasons(
    text: str,
    start: int,
    end: int,
    mentions: Sequence[Mention],
    query: Query,
    masked: Sequence[tuple[int, int]],
) -> bool:
    # What is named is no word of cause: a title may well hold "more" or "no".
    hidden = [*masked, *((m.start, m.end) for m in mentions)]
    sentence = _blotted(text, start, end, hidden)
    if not _CONTRAST.search(sentence):
        return False
    if any(m.kind in CRITERIA for m in mentions) or _CRITERION.search(sentence):
        return True
    words = re.findall(r"\w+", sentence.casefold())
    return any(len(w) >= 3 and w in query.words and w not in _STOP for w in words)


def _blotted(text: str, start: int, end: int, hidden: Iterable[tuple[int, int]]) -> str:
    parts = []
    at = start
    for a, b in sorted(hidden):
        if b <= at or a >= end:
            continue
        parts.append(text[at : max(at, a)])
        parts.append(" ¤ ")
        at = min(b, end)
    parts.append(text[at:end])
    return "".join(parts)
