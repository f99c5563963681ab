"""Where a thought names a datum that the tools had shown.

Strict on purpose: a datum counts when it stands there plainly. One broken up by
invisible characters, or spelled with look-alike letters and digits, names nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from judge.observations import Observations, Words

MAX_TOKENS = 50_000
"""Words of one text of thinking; a model cannot write more within its limits by far."""
MAX_SHARED = 5
"""Products that may share a stretch of title, and it still names one of them."""
MIN_ID = 4
"""Digits of the shortest id that is recognised."""
LONG_ID = 7
"""Digits from which a number can only be an id."""

_TOKEN = re.compile(r"\w+")
_NUMBER = re.compile(r"(?<![\w.])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\w)", re.ASCII)
_PRICED_BEFORE = re.compile(
    r"(?:₱|\$|php|pesos?|price[ds]?|costs?|costing|at|for|of|only|is|=|:)\s*\W{0,3}$", re.IGNORECASE
)
_PRICED_AFTER = re.compile(r"\s?(?:php|pesos?|₱)", re.IGNORECASE)
_QUOTES = "\"'“”‘’`«»"


class DatumKind(StrEnum):
    """What of a tool's answer a thought names."""

    PRODUCT = "product_id"
    TITLE = "title"
    PRICE = "price"
    VALUE = "value"
    SHOP = "shop_id"
    FIGURE = "figure"


@dataclass(frozen=True, slots=True)
class Mention:
    """`[start, end)` of a text names a datum of one of `products` (none for a figure)."""

    kind: DatumKind
    start: int
    end: int
    products: frozenset[str]


class Query:
    """What the problem says itself: naming that again shows nothing of the results."""

    def __init__(self, text: str) -> None:
        self.words = frozenset(_TOKEN.findall(text.casefold()[:100_000]))
        self.numbers = frozenset(_value(m[0]) for m in _NUMBER.finditer(text[:100_000]))


class ThoughtText:
    """A text of thinking, in words with their places."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def tokens(self) -> list[tuple[str, int, int]]:
        """Words without case, and where they stand."""
        found = []
        for match in _TOKEN.finditer(self.text):
            found.append((match[0].casefold(), match.start(), match.end()))
            if len(found) >= MAX_TOKENS:
                break
        return found


def find_mentions(
    thought: ThoughtText, shown: Observations, query: Query, seen: Callable[[str], bool]
) -> list[Mention]:
    """Every datum of `shown` that `thought` names, in order.

    `seen` says whether a product stood in the model's prompt: what a model was not shown
    it cannot have reasoned about. What the query says already is left out.
    """
    found: list[Mention] = []
    for mention in _all(thought, shown, query):
        if mention.kind is DatumKind.FIGURE:
            found.append(mention)
            continue
        products = frozenset(p for p in sorted(mention.products)[:50] if seen(p))
        if products:
            found.append(Mention(mention.kind, mention.start, mention.end, products))
    return sorted(found, key=lambda m: (m.start, m.end))


def unknown_ids(text: str, known: Callable[[str], bool]) -> list[tuple[int, int]]:
    """Places of long numbers that can only be ids, and that the model had not been shown."""
    return [
        (m.start(), m.end())
        for m in _NUMBER.finditer(text)
        if len(m[0]) >= LONG_ID and m[0].isdigit() and not known(m[0])
    ]


def _all(thought: ThoughtText, shown: Observations, query: Query) -> Iterator[Mention]:
    yield from _ids(thought, shown)
    yield from _numbers(thought.text, shown, query)
    yield from _titles(thought, shown, query)
    yield from _values(thought, shown, query)


def _ids(thought: ThoughtText, shown: Observations) -> Iterator[Mention]:
    for match in _TOKEN.finditer(thought.text):
        word = match[0]
        if len(word) < MIN_ID:
            continue
        if word in shown.products:
            yield Mention(DatumKind.PRODUCT, match.start(), match.end(), frozenset((word,)))
        elif word in shown.shops:
            products = frozenset(shown.shops[word])
            yield Mention(DatumKind.SHOP, match.start(), match.end(), products)


def _numbers(text: str, shown: Observations, query: Query) -> Iterator[Mention]:
    for match in _NUMBER.finditer(text):
        if len(match[0]) > 20:
            continue
        number = _value(match[0])
        if number in query.numbers:
            continue
        products = shown.prices.get(number)
        if products and _is_price(text, match):
            yield Mention(DatumKind.PRICE, match.start(), match.end(), frozenset(products))
        elif products is None and number in shown.figures and _is_price(text, match):
            yield Mention(DatumKind.FIGURE, match.start(), match.end(), frozenset())


def _is_price(text: str, match: re.Match[str]) -> bool:
    """Whether a number is meant as a price: a bare `10` is more often a count."""
    if "." in match[0]:
        return True
    before = text[max(0, match.start() - 14) : match.start()]
    after = text[match.end() : match.end() + 8]
    return bool(_PRICED_BEFORE.search(before) or _PRICED_AFTER.match(after))


def _titles(thought: ThoughtText, shown: Observations, query: Query) -> Iterator[Mention]:
    """The longest stretches of words that stand so in a title."""
    tokens = thought.tokens
    i = 0
    while i + 1 < len(tokens):
        products = shown.pairs.get((tokens[i][0], tokens[i + 1][0]))
        if not products or not _adjacent(thought.text, tokens[i][2], tokens[i + 1][1]):
            i += 1
            continue
        end = i + 1
        while end + 1 < len(tokens) and _adjacent(thought.text, tokens[end][2], tokens[end + 1][1]):
            further = shown.pairs.get((tokens[end][0], tokens[end + 1][0]))
            both = products & further if further else None
            if not both:
                break
            products, end = both, end + 1
        words = [token[0] for token in tokens[i : end + 1]]
        if len(products) <= MAX_SHARED and _tells(words, query):
            start, stop = tokens[i][1], tokens[end][2]
            yield Mention(DatumKind.TITLE, start, stop, frozenset(products))
        i = end + 1


def _tells(words: list[str], query: Query) -> bool:
    """Whether words of a title name more than the query did."""
    new = {w for w in words if w not in query.words}
    if any(_is_code(w) for w in new):
        return True
    return sum(len(w) >= 4 or not w.isascii() for w in new) >= 2


def _is_code(word: str) -> bool:
    return len(word) >= 3 and not word.isalpha() and not word.isdigit()


def _values(thought: ThoughtText, shown: Observations, query: Query) -> Iterator[Mention]:
    tokens = thought.tokens
    i = 0
    while i < len(tokens):
        known = shown.values.get(tokens[i][0])
        found = _longest(tokens, i, known, query) if known else None
        if found is not None and known is not None:
            start, stop = tokens[i][1], tokens[i + len(found) - 1][2]
            if _stands_out(thought.text, start, stop, found):
                yield Mention(DatumKind.VALUE, start, stop, frozenset(known[found]))
            i += len(found)
        else:
            i += 1


def _longest(
    tokens: list[tuple[str, int, int]], i: int, known: dict[Words, set[str]], query: Query
) -> Words | None:
    best: Words | None = None
    for words in known:
        n = len(words)
        if (best is None or n > len(best)) and all(
            i + k < len(tokens) and tokens[i + k][0] == words[k] for k in range(n)
        ):
            best = words
    return best if best and not query.words.issuperset(best) else None


def _stands_out(text: str, start: int, end: int, words: Words) -> bool:
    """A value of one plain word ("light") is as likely prose, unless it is quoted."""
    if len(words) > 1 or _is_code(words[0]):
        return True
    if len(words[0]) < 2 or start == 0 or end >= len(text):
        return False
    return text[start - 1] in _QUOTES and text[end] in _QUOTES


def _adjacent(text: str, end: int, start: int) -> bool:
    gap = text[end:start]
    return len(gap) <= 3 and "\n" not in gap


def _value(number: str) -> float:
    return float(number.replace(",", "")) if len(number) <= 40 else -1.0
