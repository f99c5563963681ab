"""What a rule-based model does in one turn, and how a plan of turns is written.

A plan is a generator: it yields a `Move` and is sent the answers to its calls. It
holds no state between requests; `replay` runs it again over the answers that a
conversation already holds.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias

from scoring.types import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call: name and arguments."""

    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class Move:
    """One turn: what was thought, the calls, and words for the shopper."""

    think: str
    calls: tuple[Call, ...] = ()
    response: str = ""


Plan: TypeAlias = Generator[Move, tuple[Json, ...], None]
"""Yields moves; receives one answer a call, None for one that could not be read."""


def search(
    q: str,
    *,
    page: int = 1,
    price: str | None = None,
    services: tuple[str, ...] = (),
    shop_id: str | None = None,
) -> Call:
    """A find_product call; filters that are not set are left out."""
    arguments: JsonObject = {"q": q, "page": page}
    if shop_id:
        arguments["shop_id"] = shop_id
    if price:
        arguments["price"] = price
    if services:
        arguments["service"] = ",".join(services)
    return Call("find_product", arguments)


def view(product_ids: list[str]) -> Call:
    """A view_product_information call."""
    return Call("view_product_information", {"product_ids": ",".join(product_ids)})


def recommend(product_ids: list[str]) -> Call:
    """A recommend_product call."""
    return Call("recommend_product", {"product_ids": ",".join(product_ids)})


def terminate(status: str) -> Call:
    """A terminate call."""
    return Call("terminate", {"status": status})
