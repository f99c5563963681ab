"""Whether a rewording of one wanted item asks for exactly the same.

A rewording may change the order of what is said, and the words that carry no wish: it
must keep every number, option, attribute and service, each value with what it is a value
of, and the direction of a price; and it may add no word that is not among `PLAIN_WORDS`.
Strict on purpose: a refused rewording costs a little variety, an accepted one that asks
for something else costs every agent a problem. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from arena.problems.wording import key_words
from scoring.types import PriceBand, Reward

MAX_GROWTH = 2.0
"""A rewording is at most this much longer than the original, and 80 characters."""


class Flaw(StrEnum):
    """What is wrong with a rewording. Stable: counts of them are shown."""

    FORM = "form"
    """Empty, too long, of several lines, or with characters that the original lacks."""
    LEAK = "leak"
    """It has a product id, or a title that the original does not quote."""
    PRICE = "price"
    """The price is missing, another one, or bounds the other way."""
    SERVICE = "service"
    """A service is missing or added."""
    VALUE = "value"
    """An option or attribute is missing."""
    SWAPPED = "swapped"
    """A value stands with the name of another one."""
    NUMBER = "number"
    """A number is missing, added or changed."""
    LOST = "lost_word"
    """A word of the thing itself is missing."""
    ADDED = "added_word"
    """There is a word that may carry a wish of its own."""


PLAIN_WORDS = frozenset(
    """
    a an the this that these those it its it's they them their one which who whose and also
    plus as at by for from in into of on to with within is are be being been am was has have
    having comes come coming offered offers offer offering available sold sells sell
    carrying carry carries provided includes include including featuring features feature i
    i'm i'd i'll im me my we we'd us our you your would please looking look search searching
    want wanted wants need needed needs should must can could like find show get buy order
    hoping hope help interested after kindly where while then so made make material color
    colour colored coloured option options product products item items price priced prices
    cost costs costing shop store seller delivery shipping called named brand
    """.split()  # noqa: SIM905 - a list of words reads better as prose
)
"""Words that carry no wish. Not among them: or, not, without, similar, cheap, new, set…"""

_BEFORE = r"(?:(?:php|pesos?|₱|p) ?)?"
_AFTER = r"(?: ?(?:php|pesos?|₱|p)\b)?"
_ABOVE = (
    r"(?<!no )(?<!not )(?:above|over|more than|at least|starting (?:at|from)|upwards? of"
    r"|exceeding|higher than|no less than|not less than|greater than|from)"
)
_BELOW = (
    r"(?<!no )(?<!not )(?:below|under|less than|at most|up to|no more than|not more than"
    r"|cheaper than|lower than|not exceeding|not over|not above)"
)
_TO = r" ?(?:to|-|–) ?"
_PRICES: dict[str, tuple[str, ...]] = {
    "above": (
        rf"{_ABOVE} {_BEFORE}LOW\b{_AFTER}(?!{_TO}\d)",
        rf"\bLOW{_AFTER} (?:or more|or above|and above|and up)\b",
    ),
    "below": (
        rf"{_BELOW} {_BEFORE}HIGH\b{_AFTER}",
        rf"\bHIGH{_AFTER} (?:or less|or below|and below|at most)\b",
    ),
    "between": (
        rf"between {_BEFORE}LOW{_AFTER} and {_BEFORE}HIGH\b{_AFTER}",
        rf"(?:from )?{_BEFORE}\bLOW{_AFTER}{_TO}{_BEFORE}HIGH\b{_AFTER}",
    ),
}
"""How a price may be said; LOW and HIGH stand for its bounds, in whole pesos."""
_SERVICES = {
    "official": r"\blazmall\b",
    "freeShipping": (
        r"\b(?:free (?:shipping|delivery)"
        r"|(?:ships?|shipped|delivered|delivers?)(?: for)? free)\b"
    ),
    "COD": r"\b(?:cash on delivery|cod)\b",
    "flashsale": r"\blazflash\b(?: deals?\b)?",
}
_SERVICE_WORDS = frozenset(
    {"service", "deal", "supports", "support", "payable", "ships", "through"}
)
"""Words that the original says around a service; a rewording need not repeat them."""
_TOKEN = re.compile(r"[^\W_]+(?:[.'’/&%+-][^\W_]+)*%?")
_ALWAYS_ALLOWED = frozenset(" ,.;:'’()-–₱")
_HINTS = {"material": "made", "brand": "brand"}
"""Words that tell of which attribute a value is, besides the attribute's name."""
_REACH = 3
_SEPARATORS = frozenset(",;:()")


@dataclass(frozen=True, slots=True)
class Item:
    """One wanted product in the generator's words, and what it asks for."""

    words: str
    reward: Reward


def flaws(item: Item, reworded: str) -> tuple[Flaw, ...]:
    """What is wrong with the rewording; empty when it asks for exactly the same."""
    if not _well_formed(item, reworded):
        return (Flaw.FORM,)
    found = list(_leaks(item, reworded))
    before, after = _plain(item.words), _plain(reworded)
    for band in item.reward.price:
        before, _ = _without_price(before, band)
        after, stated = _without_price(after, band)
        if not stated:
            found.append(Flaw.PRICE)
    if _services(before) != _services(after) or not _services(after) >= set(item.reward.service):
        found.append(Flaw.SERVICE)
    before, after = _without_services(before), _without_services(after)
    found += _value_flaws(item.reward, before, after)
    found += _word_flaws(before, after)
    return tuple(dict.fromkeys(found))


def _well_formed(item: Item, reworded: str) -> bool:
    limit = MAX_GROWTH * len(item.words) + 80
    allowed = _ALWAYS_ALLOWED | set(item.words)
    return (
        bool(reworded.strip())
        and len(reworded) <= limit
        and reworded.isprintable()
        and all(c in allowed or (c.isascii() and c.isalnum()) for c in reworded)
    )


def _leaks(item: Item, reworded: str) -> Iterator[Flaw]:
    lowered, original = reworded.lower(), item.words.lower()
    texts = (item.reward.product_id, *item.reward.title)
    if any(text and text.lower() in lowered and text.lower() not in original for text in texts):
        yield Flaw.LEAK


def _plain(text: str) -> str:
    """Lower case, single spaces, no commas within numbers."""
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text.lower().replace("’", "'"))
    # "I would like" wishes for the thing, "like" alone for something near it.
    text = re.sub(r"\b(i'd|we'd|would) like\b", r"\1", text)
    return " ".join(text.split())


def _without_price(text: str, band: PriceBand) -> tuple[str, bool]:
    """The text without the words of this price, and whether they were there."""
    kind = "above" if band.high is None else "below" if band.low is None else "between"
    low, high = (f"{bound or 0:.0f}" for bound in (band.low, band.high))
    for pattern in _PRICES[kind]:
        match = re.search(pattern.replace("LOW", low).replace("HIGH", high), text)
        if match:
            return f"{text[: match.start()]} ; {text[match.end() :]}", True
    return text, False


def _services(text: str) -> set[str]:
    return {name for name, pattern in _SERVICES.items() if re.search(pattern, text)}


def _without_services(text: str) -> str:
    for pattern in _SERVICES.values():
        text = re.sub(pattern, " ; ", text)
    return text


def _pairs(reward: Reward) -> Iterator[tuple[str, str]]:
    for option in reward.sku_options:
        yield from option.items()
    for entry in reward.attributes:
        for key, values in entry.items():
            yield from ((key, value) for value in values)


def _value_flaws(reward: Reward, before: str, after: str) -> Iterator[Flaw]:
    """Values that are missing, or that stand with the name of another one."""
    pairs = [(key, _plain(value)) for key, value in _pairs(reward)]
    if not all(_spans(after, value) for _, value in pairs):
        yield Flaw.VALUE
        return
    for key, own in pairs:
        old, new = (
            {v for _, v in pairs if any(_together(text, name, v) for name in _names(key))}
            for text in (before, after)
        )
        if own in old and not {own} <= new <= old:
            yield Flaw.SWAPPED


def _together(text: str, name: str, value: str) -> bool:
    """Whether a value stands by a name: nothing between but a few plain words."""
    return any(
        _joins(text[min(a[1], b[1]) : max(a[0], b[0])])
        for a in _spans(text, name)
        for b in _spans(text, value)
        if a[1] <= b[0] or b[1] <= a[0]
    )


def _joins(between: str) -> bool:
    words = _TOKEN.findall(between)
    return (
        len(words) <= _REACH
        and not any(c in _SEPARATORS for c in between)
        and PLAIN_WORDS.issuperset(words)
    )


def _spans(text: str, part: str) -> list[tuple[int, int]]:
    """Where `part` stands in the text as words of its own."""
    pattern = rf"(?<![^\W_]){re.escape(part)}(?![^\W_])"
    return [match.span() for match in re.finditer(pattern, text)]


def _names(key: str) -> Iterator[str]:
    """What may stand for an attribute in a text."""
    words = _plain(key_words(key))
    yield words
    yield from (hint for part, hint in _HINTS.items() if part in words.split())


def _word_flaws(before: str, after: str) -> Iterator[Flaw]:
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    if _numbers(old) != _numbers(new):
        yield Flaw.NUMBER
    plain = PLAIN_WORDS | _SERVICE_WORDS
    kept = {_stem(word) for word in new}
    if any(_stem(word) not in kept for word in _content(old, plain)):
        yield Flaw.LOST
    known = {_stem(word) for word in old}
    if any(_stem(word) not in known for word in _content(new, plain)):
        yield Flaw.ADDED


def _numbers(words: Iterable[str]) -> Counter[str]:
    return Counter(word for word in words if any(c.isdigit() for c in word))


def _content(words: Iterable[str], plain: frozenset[str]) -> list[str]:
    return [w for w in words if w not in plain and not any(c.isdigit() for c in w)]


def _stem(word: str) -> str:
    """One or several of it."""
    return word[:-1] if len(word) > 3 and word.endswith("s") else word
