"""Weighs candidates against what is wanted, on what the tools said of them.

A word of the wish counts more the fewer candidates have it; a candidate is what its
title, its attributes and one of its SKU options say together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sandbox.standin.needs import Need
from sandbox.standin.words import telling, words
from scoring.types import Json


@dataclass(frozen=True, slots=True)
class Candidate:
    """A product as the search results and, once viewed, its details describe it."""

    product_id: str
    shop_id: str
    title: str
    price: float
    services: tuple[str, ...]
    rank: int = 0
    options: tuple[Mapping[str, str], ...] = ()
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    viewed: bool = False


@dataclass(frozen=True, slots=True)
class Weighed:
    """A candidate with its score and the reasons: values that fit, words left open."""

    candidate: Candidate
    score: float
    fits: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


def read_hits(result: Json, rank: int = 0) -> list[Candidate]:
    """Candidates of a find_product answer; what is not a product is left out."""
    found: list[Candidate] = []
    for entry in result if isinstance(result, list) else []:
        if not isinstance(entry, dict) or not entry.get("product_id"):
            continue
        price, services = entry.get("price"), entry.get("service")
        found.append(
            Candidate(
                product_id=str(entry["product_id"]),
                shop_id=str(entry.get("shop_id", "")),
                title=str(entry.get("title", "")),
                price=float(price) if isinstance(price, int | float) else math.inf,
                services=tuple(map(str, services)) if isinstance(services, list) else (),
                rank=rank + len(found),
            )
        )
    return found


def add_details(candidates: Iterable[Candidate], result: Json) -> list[Candidate]:
    """The candidates with what view_product_information said of them."""
    details = {
        str(entry.get("product_id")): entry
        for entry in (result if isinstance(result, list) else [])
        if isinstance(entry, dict)
    }
    return [
        _detailed(c, details[c.product_id]) if c.product_id in details else c for c in candidates
    ]


def _detailed(candidate: Candidate, entry: dict[str, Json]) -> Candidate:
    options, attributes = entry.get("sku_options"), entry.get("attributes")
    return replace(
        candidate,
        options=tuple(
            {str(k): str(v) for k, v in option.items()}
            for option in (options.values() if isinstance(options, dict) else ())
            if isinstance(option, dict)
        ),
        attributes={
            str(key): tuple(map(str, values if isinstance(values, list) else [values]))
            for key, values in (attributes.items() if isinstance(attributes, dict) else ())
        },
        viewed=True,
    )


def _facets(candidate: Candidate) -> tuple[set[str], list[tuple[set[str], Mapping[str, str]]]]:
    """Words of title and attributes; words of each SKU option (at least the empty one)."""
    base = set(words(candidate.title))
    for values in candidate.attributes.values():
        base.update(words(" ".join(values)))
    options = [(set(words(" ".join(o.values()))), o) for o in candidate.options]
    return base, [*options, (set(), {})]


def _rarity(wanted: Iterable[str], facets: Iterable[set[str]]) -> dict[str, float]:
    pool = list(facets)
    weights = {}
    for word in wanted:
        having = sum(word in facet for facet in pool)
        weights[word] = 1.0 + 0.5 * math.log((len(pool) + 1) / (having + 1))
    return weights


def weigh(need: Need, candidates: Sequence[Candidate]) -> list[Weighed]:
    """All candidates, best first. Ties keep the search's order."""
    wanted = telling(need.text)
    asked = set(words(need.text))
    facets = [_facets(c) for c in candidates]
    weights = _rarity(wanted, (base.union(*(o for o, _ in opts)) for base, opts in facets))
    total = sum(weights.values()) or 1.0
    weighed = []
    for candidate, (base, options) in zip(candidates, facets, strict=True):
        best, option = max(
            (
                (sum(w for t, w in weights.items() if t in base | o), chosen)
                for o, chosen in options
            ),
            key=lambda pair: (pair[0], len(pair[1])),
        )
        fits = _fitting_values(asked, candidate, option)
        have = base | set(words(" ".join(option.values())))
        broken = _broken(need, candidate)
        score = best / total + 0.06 * min(len(fits), 5) - 0.8 * len(broken)
        score += 0.05 * _fullness(candidate) - 0.001 * candidate.rank
        lacks = tuple(shown for form, shown in wanted.items() if form not in have)
        weighed.append(Weighed(candidate, score, tuple(fits), lacks, broken))
    return sorted(weighed, key=lambda w: (-w.score, w.candidate.rank))


def _fitting_values(asked: set[str], candidate: Candidate, option: Mapping[str, str]) -> list[str]:
    """Attribute and option values whose every word was asked for, as "key: value"."""
    pairs = [(k, v) for k, values in candidate.attributes.items() for v in values]
    fits = []
    for key, value in [*option.items(), *pairs]:
        parts = [w for w in words(value) if w not in {"int", "other"}]
        if parts and all(part in asked for part in parts):
            fits.append(f"{key}: {value}")
    return list(dict.fromkeys(fits))


def _fullness(candidate: Candidate) -> float:
    """How much the title says, up to twenty words: of two that fit alike, the one that says more
    is the safer choice."""
    return min(len(set(words(candidate.title))), 20) / 20


def _broken(need: Need, candidate: Candidate) -> tuple[str, ...]:
    """Conditions of the wish that the candidate breaks for certain."""
    broken = [f"no {s}" for s in need.services if s not in candidate.services]
    if not need.affords(candidate.price):
        broken.append(f"price {candidate.price:g} outside {need.price}")
    return tuple(broken)
