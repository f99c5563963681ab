"""What a shopper asks for, read from the query alone.

A query becomes a `Task`: the items in the order asked, each with its words, price
band and services, and the voucher's terms when there are any. Nothing here knows a
catalogue or an answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sandbox.standin.splitting import split_items, strip_request
from scoring.types import Bucket

_CURRENCY = r"(?:php|₱|\$|p(?=\s?\d))"
_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_MONEY = r"\s*(?:php\b|pesos?\b|₱)"
_COST = r"(?:pric(?:e|es|ed|ing)|costs?|costing|worth|budget)"
_LINK = r"(?:\s+(?:is|are|of|range|ranging|tag|anywhere|should|be|listed|it|for|at|and|cost))*"

_BETWEEN = re.compile(
    rf"(?P<cost>{_COST}{_LINK}\s+)?(?:between|from|within|ranging from|(?:in the )?range of)\s+"
    rf"(?P<before>{_CURRENCY})?\s*(?P<low>{_NUMBER})(?:{_MONEY})?\s*(?:and|to|-|–)\s*"
    rf"{_CURRENCY}?\s*(?P<high>{_NUMBER})(?P<after>{_MONEY})?",
    re.IGNORECASE,
)
_MORE = (
    r"(?:above|over|more than|greater than|higher than|exceed(?:s|ing)?|at least|"
    r"starting (?:at|from)|upwards of|beyond)"
)
_LESS = (
    r"(?:below|under|less than|lower than|cheaper than|at most|up to|no more than|"
    r"not exceeding|within|maximum of)"
)


def _bound(words: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<cost>{_COST}{_LINK}\s+)?{words}\s+(?P<before>{_CURRENCY})?\s*"
        rf"(?P<bound>{_NUMBER})(?P<after>{_MONEY})?(?![\w%])",
        re.IGNORECASE,
    )


_ABOVE = _bound(_MORE)
_BELOW = _bound(_LESS)

SERVICES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("official", re.compile(r"\blaz\s?mall\b", re.IGNORECASE)),
    (
        "freeShipping",
        re.compile(
            r"\b(?:free|complimentary)[ -](?:shipping|delivery)\b|\bship(?:s|ped)? (?:for )?free\b",
            re.IGNORECASE,
        ),
    ),
    (
        "COD",
        re.compile(
            r"\b(?:cash|pay|payment|paid|payable)(?:\s+\w+){0,3}?\s+(?:on|upon|at)\s+delivery\b"
            r"|\bcash(?:\s+\w+){0,2}?\s+when\b|\bCOD\b",
            re.IGNORECASE,
        ),
    ),
    ("flashsale", re.compile(r"\blaz\s?flash\b|\bflash[ -]?(?:sale|deal)s?\b", re.IGNORECASE)),
)
"""Service as the tools know it, and the wordings shoppers use for it."""

_PERKS = re.compile(
    r"(?:(?:guaranteed|100%|full)\s+)?authenticity(?:\s+(?:guarantees?|promise))?|genuine guarantee"
    r"|(?:\d+-day\s+)?(?:quick|easy|fast|hassle-free)\s+returns?|return guarantees?"
    r"|(?:fast|quick|\d+-day)\s+(?:shipping|delivery)|trusted (?:sellers?|services?)"
    r"|(?:limited[- ]time\s+)?(?:special\s+)?(?:deals?|offers?|promo(?:tion)?s?|perks?|benefits?)\b"
    r"|\b(?:laz(?:mall|flash)\s+)?services?\b",
    re.IGNORECASE,
)
"""What the services bring with them: said in queries, found in no product."""


@dataclass(frozen=True, slots=True)
class Need:
    """One item wanted: its own words, without price and services, and both apart."""

    text: str
    low: float | None = None
    high: float | None = None
    services: tuple[str, ...] = ()

    @property
    def price(self) -> str | None:
        """The price band as find_product takes it, or None."""
        if self.low is None and self.high is None:
            return None
        return f"{_plain_number(self.low)}-{_plain_number(self.high)}"

    def affords(self, price: float) -> bool:
        """Whether a price lies in the band; the bounds belong to it."""
        return (self.low is None or price >= self.low) and (self.high is None or price <= self.high)


@dataclass(frozen=True, slots=True)
class VoucherTerms:
    """The rules of a voucher as a query states them. `value` is pesos or percent."""

    budget: float
    threshold: float
    kind: str
    value: float
    cap: float
    same_shop: bool

    def total_after(self, total: float, *, one_shop: bool) -> float:
        """What `total` comes to."""
        if total < self.threshold or (self.same_shop and not one_shop):
            return total
        if self.kind == "fixed":
            return total - self.value
        discount = total * self.value / 100
        return total - (min(discount, self.cap) if self.cap else discount)


@dataclass(frozen=True, slots=True)
class Task:
    """A query, understood."""

    bucket: Bucket
    needs: tuple[Need, ...]
    voucher: VoucherTerms | None = None

    @property
    def one_shop(self) -> bool:
        """Whether everything has to come from one shop."""
        return self.bucket is Bucket.SHOP or bool(self.voucher and self.voucher.same_shop)


def _plain_number(value: float | None) -> str:
    return "" if value is None else f"{value:g}" if value < 1e6 else str(int(value))


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def read_price(text: str) -> tuple[str, float | None, float | None]:
    """Take the price band out of `text`; return what is left, and the bounds.

    A bound counts only beside a currency or a word of cost: "above 5000 mAh" is no price.
    """
    for match in _BETWEEN.finditer(text):
        if _is_money(match):
            low, high = sorted((_number(match["low"]), _number(match["high"])))
            return _cut(text, match), low, high
    bounds: list[float | None] = []
    for pattern in (_ABOVE, _BELOW):
        found = next(filter(_is_money, pattern.finditer(text)), None)
        bounds.append(_number(found["bound"]) if found else None)
        text = _cut(text, found) if found else text
    return text, bounds[0], bounds[1]


def _is_money(match: re.Match[str]) -> bool:
    return any(match[group] for group in ("cost", "before", "after"))


def _cut(text: str, match: re.Match[str]) -> str:
    return f"{text[: match.start()]} {text[match.end() :]}"


def read_services(text: str) -> tuple[str, tuple[str, ...]]:
    """Take the services out of `text`; return what is left, and their names for the tools."""
    found = []
    for name, pattern in SERVICES:
        if pattern.search(text):
            found.append(name)
            text = pattern.sub(" ", text)
    return (_PERKS.sub(" ", text) if found else text), tuple(found)


_LOOSE_END = re.compile(
    r"(?:[\s,.;?!]|\b(?:and|with|a|an|the|that|which|is|are|comes?|has|have|for|where|supports?)\b)+$",
    re.IGNORECASE,
)
"""What is left hanging where a price or a service was taken out."""


def read_need(text: str) -> Need:
    """Read one item's words."""
    rest, low, high = read_price(text)
    rest, services = read_services(rest)
    rest = re.sub(r"\s+(?=[,.;?!])", "", " ".join(rest.split()))
    return Need(_LOOSE_END.sub("", rest) or text.strip(), low, high, services)


_VOUCHER = re.compile(r"\bvoucher\b", re.IGNORECASE)
_BUDGET = re.compile(r"budget\D{0,30}?(\d[\d,]*(?:\.\d+)?)", re.IGNORECASE)
_THRESHOLD = re.compile(
    r"(?:total price|total|order|spend)\D{0,60}?(?:exceeds?|reach(?:es)?|over|above|at least)"
    r"\D{0,10}?(\d[\d,]*(?:\.\d+)?)",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"(\d[\d,]*(?:\.\d+)?)\s*%`?\s*", re.IGNORECASE)
_CAP = re.compile(r"(?:cap|maximum|up to)\D{0,20}?(\d[\d,]*(?:\.\d+)?)", re.IGNORECASE)
_FIXED = re.compile(r"discount\D{0,20}?(\d[\d,]*(?:\.\d+)?)", re.IGNORECASE)
_SAME_SHOP = re.compile(r"same (?:shop|store|seller)|one (?:shop|store|seller)", re.IGNORECASE)


def read_voucher(text: str) -> VoucherTerms | None:
    """Read the rules of a voucher; None when a number is missing."""
    budget, threshold = _BUDGET.search(text), _THRESHOLD.search(text)
    rules = text[text.lower().find("voucher") :]
    percent, fixed, cap = _PERCENT.search(rules), _FIXED.search(rules), _CAP.search(rules)
    value = percent or fixed
    if not budget or not value:
        return None
    return VoucherTerms(
        budget=_number(budget[1]),
        threshold=_number(threshold[1]) if threshold else 0.0,
        kind="percentage" if percent else "fixed",
        value=_number(value[1]),
        cap=_number(cap[1]) if percent and cap else 0.0,
        same_shop=bool(_SAME_SHOP.search(rules)),
    )


_SHOP_ASKED = re.compile(
    r"\b(?:shops?|stores?|sellers?)\b[^.;:]{0,40}?\b(?:offer|sell|has|have|carr|stock|with|where)"
    r"|\b(?:find|show me|looking for|need)\s+(?:me\s+)?(?:a|one|any|some)?\s*"
    r"(?:shops?|stores?|sellers?)\b",
    re.IGNORECASE,
)


def classify(query: str) -> Bucket:
    """Which kind of problem a query is."""
    if _VOUCHER.search(query) and re.search(r"budget", query, re.IGNORECASE):
        return Bucket.VOUCHER
    if _SHOP_ASKED.search(query):
        return Bucket.SHOP
    return Bucket.PRODUCT


def read_task(query: str) -> Task:
    """Understand a whole query. Always gives at least one need."""
    bucket = classify(query)
    if bucket is Bucket.PRODUCT:
        return Task(bucket, (read_need(strip_request(query) or query),))
    wish, voucher = query, None
    if bucket is Bucket.VOUCHER:
        voucher = read_voucher(query)
        start = re.search(r"\bmy budget\b|\bbudget\b|\bvoucher\b", query, re.IGNORECASE)
        wish = query[: start.start()] if start and start.start() > 10 else query
    needs = tuple(read_need(item) for item in split_items(wish))
    return Task(bucket, needs or (read_need(wish),), voucher)
