"""What the tools showed: products with their titles, prices, shops and values, by name.

Filled event by event, so that nothing is known before it was shown. Pure; the work is
linear in what is new, and bounded.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from sandbox.trace import ToolEvent
from scoring.types import Json

MAX_PRODUCTS = 20_000
MAX_NODES = 200_000
"""Values of tool results looked at in one trace."""
MAX_WORDS = 60
"""Words of one title or value; what follows names nothing more."""
TITLE_KEYS = ("title",)
VALUE_KEYS = ("attributes", "sku_options")

_WORD = re.compile(r"\w+")
_EMPTY_VALUES = "yes no none other others not specified standard default n a na true false"
_SAYS_NOTHING = frozenset(_EMPTY_VALUES.split())

Words = tuple[str, ...]


def words_of(text: str) -> Words:
    """The words of a text, without case."""
    return tuple(_WORD.findall(text[: MAX_WORDS * 20].casefold())[:MAX_WORDS])


@dataclass(slots=True)
class Shown:
    """One product as the tools showed it."""

    product_id: str
    event: int
    """`seq` of the tool event that showed it first."""
    titles: set[str] = field(default_factory=set)


class Observations:
    """The products shown so far, found by what a text may call them."""

    def __init__(self) -> None:
        self.products: dict[str, Shown] = {}
        self.shops: defaultdict[str, set[str]] = defaultdict(set)
        self.prices: defaultdict[float, set[str]] = defaultdict(set)
        self.pairs: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        """Two words that follow each other in a title."""
        self.values: defaultdict[str, dict[Words, set[str]]] = defaultdict(dict)
        """Attribute and SKU values by their first word."""
        self.title_words: set[str] = set()
        self.figures: dict[float, int] = {}
        """Numbers of results that are no products (a voucher's), by the event that showed them."""
        self._nodes = 0

    def learn(self, event: ToolEvent) -> None:
        """Take note of a tool's answer. Never raises on its content."""
        if event.status != 200:
            return
        for item in self._objects(event.result):
            product_id = item.get("product_id")
            if isinstance(product_id, str | int) and not isinstance(product_id, bool):
                self._learn_product(str(product_id), item, event.seq)
            else:
                for value in item.values():
                    number = _number(value)
                    if number is not None and number >= 1:
                        self.figures.setdefault(number, event.seq)

    def _learn_product(self, product_id: str, item: dict[str, Json], seq: int) -> None:
        shown = self.products.get(product_id)
        if shown is None:
            if len(self.products) >= MAX_PRODUCTS:
                return
            shown = self.products[product_id] = Shown(product_id, seq)
        shop = item.get("shop_id")
        if isinstance(shop, str | int):
            self.shops[str(shop)].add(product_id)
        price = _number(item.get("price"))
        if price is not None:
            self.prices[price].add(product_id)
        title = item.get("title")
        if isinstance(title, str) and title not in shown.titles:
            shown.titles.add(title)
            words = words_of(title)
            self.title_words.update(words)
            for pair in itertools.pairwise(words):
                self.pairs[pair].add(product_id)
        for key in VALUE_KEYS:
            for text in self._texts(item.get(key)):
                words = words_of(text)
                if words and not _SAYS_NOTHING.issuperset(words):
                    self.values[words[0]].setdefault(words, set()).add(product_id)

    def _objects(self, root: Json) -> Iterator[dict[str, Json]]:
        """The objects inside a result, outermost first; a product's own parts stay inside it."""
        stack: list[Json] = [root]
        while stack and self._nodes < MAX_NODES:
            self._nodes += 1
            value = stack.pop()
            if isinstance(value, dict):
                yield value
                if "product_id" in value:
                    continue
                stack += [v for v in value.values() if isinstance(v, dict | list)]
            elif isinstance(value, list):
                stack += value[::-1]

    def _texts(self, root: Json) -> Iterator[str]:
        stack: list[Json] = [root]
        while stack and self._nodes < MAX_NODES:
            value = stack.pop()
            if isinstance(value, str):
                self._nodes += 1
                yield value
            elif isinstance(value, dict):
                stack += value.values()
            elif isinstance(value, list):
                stack += value


def product_ids(result: Json) -> Iterator[str]:
    """The ids of the products in a result, bounded."""
    stack: list[Json] = [result]
    for _ in range(MAX_PRODUCTS):
        if not stack:
            return
        value = stack.pop()
        if isinstance(value, dict):
            found = value.get("product_id")
            if isinstance(found, str | int) and not isinstance(found, bool):
                yield str(found)
            else:
                stack += [v for v in value.values() if isinstance(v, dict | list)]
        elif isinstance(value, list):
            stack += value


def _number(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and not (len(value) < 20 and value[:1].isdigit()):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
