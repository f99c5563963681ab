"""The arguments of a search, read exactly as upstream reads them. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Item = TypeVar("Item")

SERVICES = ("official", "freeShipping", "COD", "flashsale")
"""The services that filter; the bit of each is its place. Others are ignored."""

PAGE_SIZE = 10
LAST_PAGE = 5

MAX_TERMS = 1024
"""Lucene refuses a query of more distinct terms; it finds nothing."""

MAX_QUERY = 1 << 16
"""Characters of a query; no request line upstream is longer. Keeps work bounded."""

_QUERY_SYNTAX = re.compile(r'[+\-&|!(){}\[\]^"~*?:\\/]')


class Sort(StrEnum):
    """Orders of the kept products; every other word keeps the order of relevance."""

    PRICE_ASCENDING = "priceasc"
    PRICE_DESCENDING = "pricedesc"
    SOLD = "order"


@dataclass(frozen=True, slots=True)
class Filters:
    """What a product must satisfy. Bounds are inclusive; `services` is a set of bits."""

    shop_id: str | None
    low: float
    high: float
    services: int

    @property
    def any(self) -> bool:
        """Whether they filter at all."""
        return self != Filters(None, -math.inf, math.inf, 0)


def clean_query(q: str) -> str:
    """The query without Lucene's syntax characters; each becomes a space."""
    return _QUERY_SYNTAX.sub(" ", q)


def read_filters(shop_id: str | None, price: str | None, service: Sequence[str]) -> Filters:
    """An empty `shop_id` filters nothing; all known services must be there."""
    low, high = price_range(price)
    return Filters(shop_id or None, low, high, service_bits(service))


def price_range(price: str | None) -> tuple[float, float]:
    """ "lo-hi", "lo-", "-hi"; anything else is no bound at all."""
    everything = (-math.inf, math.inf)
    parts = (price or "").split("-")
    if len(parts) != 2:
        return everything
    try:
        low = float(parts[0]) if parts[0].strip() else -math.inf
        high = float(parts[1]) if parts[1].strip() else math.inf
    except ValueError:
        return everything
    return everything if math.isnan(low) or math.isnan(high) else (low, high)


def service_bits(services: Sequence[str]) -> int:
    """The known services as bits."""
    return sum({1 << SERVICES.index(s) for s in services if s in SERVICES})


def arrange(
    numbers: list[int],
    sort: str | None,
    prices: npt.NDArray[np.float64],
    sold: npt.NDArray[np.int64],
) -> list[int]:
    """The kept products in the order asked for; equals stay in order of relevance.

    `prices` and `sold` are indexed by the numbers of the products.
    """
    match sort:
        case Sort.PRICE_ASCENDING:
            return sorted(numbers, key=prices.__getitem__)
        case Sort.PRICE_DESCENDING:
            return sorted(numbers, key=prices.__getitem__, reverse=True)
        case Sort.SOLD:
            return sorted(numbers, key=sold.__getitem__, reverse=True)
        case _:
            return numbers


def one_page(items: list[Item], page: int) -> list[Item]:
    """Ten of the kept; nothing outside pages 1 to 5."""
    if not 1 <= page <= LAST_PAGE:
        return []
    return items[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
