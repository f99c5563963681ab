"""What a reward asks for, in one form: constraints without order, case, unit, shop or brand.

Left out: product and shop ids and brands (a shop swap changes them), titles (their words
count in `likeness`), price bands (a variant comes with another one, and a reward that is
specific is so without its price: `benchmarks/README.md`). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from arena.problems.normal_form import is_code, tokens
from arena.problems.wording import key_words
from scoring.types import Reward

SPECIFIC = 20.0
"""Bits from which the same canonical reward alone says that two problems are one: in none of
the banks of `benchmarks/clusters.py` do two products share such a reward."""

_BRAND_KEYS = frozenset({"brand", "shop", "seller", "store", "brand classification"})
_KEY_CLASSES = (
    ("colo", "color"),
    ("material", "material"),
    ("fabric", "material"),
    ("size", "size"),
    ("pattern", "pattern"),
    ("flavo", "flavor"),
)
# fmt: off
_COMMON = frozenset(
    word for text in (
        "black", "white", "red", "blue", "green", "yellow", "pink", "purple", "orange", "brown",
        "grey", "gold", "silver", "beige", "navy", "cream", "clear", "multicolor", "olive",
        "skyblue", "s", "m", "l", "xl", "xxl", "xs", "onesize", "regular", "standard",
        "plain", "solid", "casual", "printed", "floral", "striped", "classic", "modern",
        "basic", "simple", "cotton", "leather", "plastic", "metal", "wood", "rubber",
        "polyester", "silicone", "stainless steel", "steel", "glass", "canvas", "unisex",
        "men", "women", "kid", "adult", "universal", "summer", "daily", "yes", "no", "none",
        "default", "other", "normal", "single item", "waterproof", "portable",
    ) for word in tokens(text)
)
_APART = {
    tokens(word)[0]: tokens(kind)[0] if kind else tokens(word)[0]
    for kind, words in {
        "": "black white red green yellow pink purple orange brown grey gold silver",
        "blue": "blue navy skyblue",
        "beige": "beige cream",
    }.items() for word in words.split()
}
_SIZES = frozenset({"xs", "s", "m", "l", "xl", "xxl", "xxxl"})
# fmt: on


@dataclass(frozen=True, slots=True)
class Constraint:
    """One thing that must hold. `bits` estimates how few products it holds for."""

    key: str
    words: tuple[str, ...]
    bits: float

    @property
    def text(self) -> str:
        """Key and words, for comparing and showing."""
        return f"{self.key}={' '.join(self.words)}"


@dataclass(frozen=True, slots=True)
class CanonicalReward:
    """The constraints of one wanted product, or of all that a problem wants."""

    constraints: tuple[str, ...]
    bits: float

    @property
    def specific(self) -> bool:
        """Whether hardly two products of a catalogue can share it."""
        return self.bits >= SPECIFIC


def constraints_of(reward: Reward) -> tuple[Constraint, ...]:
    """What the reward states of options, attributes and services, each once, sorted."""
    found = {}
    for key, value in _pairs(reward):
        words = tuple(sorted(set(tokens(value))))
        name = _key(key)
        if name in _BRAND_KEYS or not words:
            continue
        constraint = Constraint(name, words, _bits(words))
        found[constraint.text] = constraint
    for service in reward.service:
        constraint = Constraint("service", (service.strip().casefold(),), 1.0)
        found[constraint.text] = constraint
    return tuple(found[text] for text in sorted(found))


def canonical(reward: Reward) -> CanonicalReward:
    """The canonical form of one wanted product."""
    return _together([constraints_of(reward)])


def canonical_whole(rewards: Iterable[Reward]) -> CanonicalReward:
    """The canonical form of all that a problem wants, in whatever order."""
    return _together(sorted(map(constraints_of, rewards), key=lambda c: [x.text for x in c]))


@dataclass(frozen=True, slots=True)
class Stated:
    """The plain colours and letter sizes that a reward states: those nobody confuses."""

    colors: frozenset[str]
    sizes: frozenset[str]

    @classmethod
    def of(cls, reward: Reward) -> Stated:
        """What this reward states."""
        stated = [
            (constraint.key, word)
            for constraint in constraints_of(reward)
            for word in constraint.words
        ]
        return cls(
            frozenset(_APART[word] for key, word in stated if key == "color" and word in _APART),
            frozenset(word for key, word in stated if key == "size" and word in _SIZES),
        )

    def excludes(self, other: Stated) -> bool:
        """Whether no product that answers one answers the other: red against black."""
        return any(
            mine and theirs and mine.isdisjoint(theirs)
            for mine, theirs in ((self.colors, other.colors), (self.sizes, other.sizes))
        )


def _together(parts: Iterable[tuple[Constraint, ...]]) -> CanonicalReward:
    texts, bits = [], 0.0
    for number, part in enumerate(parts):
        texts += [f"{number}:{constraint.text}" for constraint in part]
        bits += sum(constraint.bits for constraint in part)
    return CanonicalReward(tuple(texts), bits)


def _pairs(reward: Reward) -> Iterator[tuple[str, str]]:
    """Options and attributes alike: the scorer looks for a pair in both."""
    for option in reward.sku_options:
        yield from option.items()
    for entry in reward.attributes:
        for key, values in entry.items():
            for value in values:
                yield key, value


def _key(key: str) -> str:
    words = key_words(key.casefold())
    return next((name for part, name in _KEY_CLASSES if part in words), words)


def _bits(words: tuple[str, ...]) -> float:
    """Three for a word that half a catalogue may carry, five for a rarer one or a number."""
    rare = [word for word in words if word not in _COMMON]
    if not rare:
        return 3.0
    return 5.0 + 1.0 * (len(rare) - 1) + 1.0 * any(map(is_code, rare))
