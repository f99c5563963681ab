"""From a reward to the words of a shopper. States every constraint, never an id.

The style is that of the public ShoppingBench queries: short requests in plain English
that name the kind of thing, its options, its services and its price. Pure; all chance
comes from the generator that is handed in.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from scoring.types import Bucket, PriceBand, Reward, Voucher

SERVICE_WORDS = {
    "official": ("with LazMall service", "available through LazMall", "sold through LazMall"),
    "freeShipping": ("with free shipping", "with free delivery", "that ships for free"),
    "COD": (
        "with cash on delivery",
        "that supports cash on delivery",
        "payable in cash on delivery",
    ),
    "flashsale": ("with a LazFlash deal", "available on LazFlash", "on a LazFlash deal"),
}
"""The four services, as shoppers call them."""

MAX_VALUE = 40
_CURRENCIES = ("pesos", "PHP")
# fmt: off
_NOISE = frozenset(
    {
        "hot", "sale", "sales", "selling", "new", "original", "authentic", "cod",
        "ready", "stock", "onhand", "on-hand", "available", "free", "shipping", "promo",
        "official", "best", "seller", "quality", "high", "brand", "cheap", "lowest",
        "price", "sold", "per", "order", "by", "buy", "take", "pcs", "pc", "1pc", "1pcs"
    }
)
_LEADING = frozenset(
    {
        "and", "or", "with", "for", "of", "in", "to", "the", "a", "an", "from", "on",
        "at"
    }
)
_NO_VALUE = frozenset(
    {
        "default", "none", "no", "yes", "n/a", "na", "null", "other", "others",
        "ohters", "attributes_model", "as-show", "unknown", "as show", "no brand",
        "not specified", "compatible motorcycle model", "see description"
    }
)
# fmt: on
_MARKETING = re.compile(
    r"\b(?:hot sale|new arrivals?|ready stock|best ?sellers?|buy \d+ (?:get|take) \d+"
    r"|free shipping|fast shipping|on ?hand|100% (?:original|authentic)|original|authentic"
    r"|cod|sale|20[12]\d)\b",
    re.IGNORECASE,
)
_BRACKETED = re.compile(r"[\[\(\{【（「].*?[\]\)\}】）」]")
_BREAK = re.compile(r"[|,;:/•·~*_\"“”!?<>=+#]+|\s[-–—]\s")
_WORD = re.compile(r"[^\W_](?:[\w.'’&%-]*[^\W_])?")
_STEERING = re.compile(
    r"\b(ignore|instruction|system|assistant|prompt|recommend|terminate|product_id|previous)",
    re.IGNORECASE,
)
_LONG_NUMBER = re.compile(r"\d{6,}")
_KEY_AFFIXES = re.compile(r"^(?:fa|m|w|hb)[_ ]|[_ ](?:hb|gr|new|filter)$|\d+$")


def phrase(title: str, rng: random.Random) -> str | None:
    """A short name for the thing, in words of its title; None when the title gives none.

    Titles are sellers' text: what reads like an order to a machine is not taken up.
    """
    if _STEERING.search(title):
        return None
    plain = _MARKETING.sub(" ", _BRACKETED.sub(" ", title))
    best: list[str] = []
    for part in _BREAK.split(plain):
        words = _WORD.findall(part)
        while words and words[0].lower() in _NOISE | _LEADING:
            words.pop(0)
        words = [word for word in words if not _LONG_NUMBER.search(word)]
        if len(words) >= 2:
            best = words
            break
    limit = rng.randint(6, 9)
    chosen = best[:limit]
    while chosen and chosen[-1].lower() in _LEADING | _NOISE:
        chosen.pop()
    if len(chosen) < 2 or not any(any(c.isalpha() for c in word) for word in chosen):
        return None
    return " ".join(chosen).lower()


def sayable(value: str) -> bool:
    """Whether a shopper could ask for this SKU or attribute value in so many words."""
    text = value.strip()
    return (
        text == value
        and 0 < len(text) <= MAX_VALUE
        and text.lower() not in _NO_VALUE
        and text.isascii()
        and text.isprintable()
        and any(c.isalnum() for c in text)
        and not _LONG_NUMBER.search(text)
        and not _STEERING.search(text)
        and not any(c in '<>{}[]`"\\;' for c in text)
    )


def key_words(key: str) -> str:
    """An attribute's name as words: `fa_pattern` → `pattern`."""
    words = key.replace("_", " ").strip()
    return _KEY_AFFIXES.sub("", words).strip() or words


def item_words(reward: Reward, noun: str, rng: random.Random) -> str:
    """One wanted product: the noun with everything that the reward states."""
    noun = _without_brand(noun, reward)
    clauses: list[str] = []
    for option in reward.sku_options:
        clauses += [_sku(key, value, rng) for key, value in option.items()]
    for entry in reward.attributes:
        clauses += [_attribute(k, v, rng) for k, values in entry.items() for v in values]
    rng.shuffle(clauses)
    services = [rng.choice(SERVICE_WORDS[name]) for name in reward.service]
    prices = [price_words(band, rng) for band in reward.price]
    return join((f"{_article(noun)}{noun}", *clauses, *services, *prices))


def _without_brand(noun: str, reward: Reward) -> str:
    """The noun without a brand that is asked for in so many words anyway."""
    brands = {
        v.lower() for entry in reward.attributes for v in entry.get("brand", ()) if " " not in v
    }
    words = [word for word in noun.split(" ") if word not in brands]
    return " ".join(words) if len(words) >= 2 else noun


def _article(noun: str) -> str:
    if noun.endswith("s") and not noun.endswith("ss"):
        return ""
    return "an " if noun[0].lower() in "aeiou" else "a "


def _sku(key: str, value: str, rng: random.Random) -> str:
    name = key_words(key)
    if "color" in name or "colour" in name:
        return rng.choice((f"in {value}", f"in {value} color", f"in the color {value}"))
    if "size" in name.split() or name == "sizes":
        return rng.choice((f"size {value}", f"in size {value}"))
    if name in ("variation", "variant", "type", "select", "model", "style", "design"):
        return rng.choice((f"in the {name} {value}", f"with {name} option {value}"))
    return rng.choice((f"with {name} {value}", f"with the {name} option {value}"))


def _attribute(key: str, value: str, rng: random.Random) -> str:
    name = key_words(key)
    if name == "brand":
        return rng.choice((f"from the brand {value}", f"by the brand {value}"))
    if "material" in name.split():
        return rng.choice((f"made of {value}", f"made from {value}"))
    if "color" in name or "colour" in name:
        return rng.choice((f"in {value}", f"{value} in color"))
    if name in ("pattern", "style", "design"):
        return rng.choice(("with", "in")) + f" {_article(value)}{value} {name}"
    return rng.choice((f"with {name} {value}", f"with {value} as the {name}"))


def price_words(band: PriceBand, rng: random.Random) -> str:
    """A price band in words; its bounds are whole pesos."""
    currency = rng.choice(_CURRENCIES)
    low, high = (None if b is None else f"{b:.0f}" for b in (band.low, band.high))
    if high is None:
        pattern = rng.choice(("priced above {0} {2}", "costing more than {0} {2}"))
    elif low is None:
        pattern = rng.choice(("priced below {1} {2}", "costing less than {1} {2}"))
    else:
        pattern = rng.choice(
            (
                "priced between {0} and {1} {2}",
                "priced from {0} to {1} {2}",
                "costing between {0} and {1} {2}",
            )
        )
    return pattern.format(low, high, currency)


def join(parts: Sequence[str]) -> str:
    """A list in prose."""
    return ", ".join(parts) if len(parts) < 3 else f"{', '.join(parts[:-1])}, and {parts[-1]}"


def query_words(
    bucket: Bucket, items: Sequence[str], voucher: Voucher | None, rng: random.Random
) -> str:
    """The whole query: what is wanted, in order, and the rules of the voucher."""
    if bucket is Bucket.SHOP:
        return _shop_request(items, rng)
    request = _request(items, rng)
    return f"{request}\n\n{voucher_words(voucher)}" if voucher else request


def _request(items: Sequence[str], rng: random.Random) -> str:
    if len(items) == 1:
        opener = rng.choice(("Looking for {}.", "I'm looking for {}.", "Show me {}.", "Find {}."))
        return opener.format(items[0])
    style = rng.randrange(3)
    if style == 0:
        return f"I'm looking for these items: {_numbered(items)}."
    if style == 1:
        return _spoken("I'm looking for these items.", items)
    return f"Looking for {'; also '.join(items)}."


def _shop_request(items: Sequence[str], rng: random.Random) -> str:
    style = rng.randrange(3)
    if style == 0:
        return (
            f"Find a shop that offers these items: {_numbered(items)}. "
            "The shop should sell all these products."
        )
    if style == 1:
        return _spoken("Looking for a shop that offers these items.", items) + (
            " All products should be from the same shop."
        )
    return f"Find shops offering all of these: {_numbered(items)}."


def _numbered(items: Sequence[str]) -> str:
    return "; ".join(f"({i}) {item}" for i, item in enumerate(items, start=1))


def _spoken(opening: str, items: Sequence[str]) -> str:
    ordinals = ["First", "Second", "Third", "Fourth", "Fifth"][: len(items)]
    if len(items) > 1:
        ordinals[-1] = "Lastly"
    told = [f"{ordinal}, {item}." for ordinal, item in zip(ordinals, items, strict=True)]
    return " ".join([opening, *told])


def voucher_words(voucher: Voucher) -> str:
    """The rules of a voucher, exactly as the public queries word them."""
    where = (
        "The voucher applies to all products."
        if voucher.voucher_type == "platform"
        else "The voucher only applies to the products from the same shop."
    )
    if voucher.discount_type == "fixed":
        what = f"It provides a fixed discount of `{voucher.face_value:.0f}`."
    else:
        what = (
            f"It provides a percentage discount of `{(voucher.discount or 0) * 100:.0f}%` "
            f"with a cap of `{voucher.cap:.0f}`."
        )
    return (
        f"My budget is only `{voucher.budget:.0f}`, "
        "but I have a voucher with the following rules:\n"
        f"1. {where}\n"
        "2. It is valid only when the total price of the products exceeds "
        f"`{voucher.threshold:.0f}`.\n"
        f"3. {what}"
    )
