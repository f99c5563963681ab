"""The nouns of the task: products, problems, steps.

Frozen and without behaviour beyond reading themselves from the public
ShoppingBench JSON. Nothing here does I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""Any JSON value."""

JsonObject: TypeAlias = "dict[str, Json]"


class Bucket(StrEnum):
    """The three kinds of problems."""

    PRODUCT = "product"
    SHOP = "shop"
    VOUCHER = "voucher"

    @property
    def category(self) -> str:
        """The name an agent sees: Product, Shop or Voucher."""
        return self.value.capitalize()


@dataclass(frozen=True, slots=True)
class Product:
    """One catalogue entry, as scoring and the tools need it.

    `sku_options` maps an option's name ("1") to its keys and values; `attributes`
    maps a key to its values.
    """

    product_id: str
    shop_id: str
    title: str
    price: float
    service: tuple[str, ...] = ()
    sold_count: int = 0
    short_description: str = ""
    description: str = ""
    sku_options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PriceBand:
    """A price constraint. Bounds are inclusive; `None` is open."""

    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Reward:
    """What a recommended product must satisfy: the answer and its constraints.

    Never leaves the validator: no agent, gateway or sandbox holds one.
    """

    product_id: str
    title: tuple[str, ...] = ()
    price: tuple[PriceBand, ...] = ()
    service: tuple[str, ...] = ()
    sku_options: tuple[Mapping[str, str], ...] = ()
    attributes: tuple[Mapping[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Voucher:
    """A discount and the budget it has to reach."""

    voucher_type: str
    threshold: float
    discount_type: str
    budget: float
    face_value: float | None = None
    discount: float | None = None
    cap: float | None = None
    price_after_voucher: float | None = None


@dataclass(frozen=True, slots=True)
class AgentProblem:
    """All that an agent is told of a problem."""

    problem_id: str
    query: str
    category: str

    def to_json(self) -> dict[str, str]:
        """The dictionary given to `agent_main`."""
        return {"problem_id": self.problem_id, "query": self.query, "category": self.category}


@dataclass(frozen=True, slots=True)
class Problem:
    """A query with its reward, as the validator holds it."""

    problem_id: str
    query: str
    bucket: Bucket
    rewards: tuple[Reward, ...]
    voucher: Voucher | None = None
    difficulty: str | None = None
    title_embeddings: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    pool: str | None = None
    cluster: str | None = None

    def for_agent(self) -> AgentProblem:
        """The part of this problem that an agent may see."""
        return AgentProblem(self.problem_id, self.query, self.bucket.category)
