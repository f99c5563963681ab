"""Small problems, products and dialogues for the tests of this room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scoring.types import (
    Bucket,
    Json,
    JsonObject,
    PriceBand,
    Problem,
    Product,
    Reward,
    Voucher,
)


def product(product_id: str = "7", **fields: Any) -> Product:
    given: dict[str, Any] = {"shop_id": "1", "title": "thing", "price": 10.0}
    return Product(product_id=product_id, **(given | fields))


def reward(product_id: str = "7", **fields: Any) -> Reward:
    return Reward(product_id=product_id, **({"title": ("thing",)} | fields))


def problem(
    *rewards: Reward, bucket: Bucket = Bucket.PRODUCT, voucher: Voucher | None = None
) -> Problem:
    return Problem("p1", "q", bucket, rewards or (reward(),), voucher=voucher)


def call(name: str, **parameters: Json) -> JsonObject:
    return {"name": name, "parameters": parameters}


def step(*calls: Json, think: Json = "t", timestamp: Json = 1, **message: Json) -> JsonObject:
    fields: JsonObject = {"think": think, **message}
    if calls:
        fields["tool_call"] = list(calls)
    return {"completion": {"message": fields}, "extra_info": {"timestamp": timestamp}}


def recommend(product_ids: Json) -> JsonObject:
    return call("recommend_product", product_ids=product_ids)


def terminate(status: Json = "success") -> JsonObject:
    return call("terminate", status=status)


def dialogue(product_ids: Json = "7") -> list[Json]:
    return [step(recommend(product_ids)), step(terminate())]


def catalogue(*products: Product) -> dict[str, Product]:
    return {p.product_id: p for p in products}


def band(low: float | None, high: float | None) -> PriceBand:
    return PriceBand(low, high)


def voucher(budget: float, **fields: Any) -> Voucher:
    given: dict[str, Any] = {
        "voucher_type": "platform",
        "threshold": 100.0,
        "discount_type": "fixed",
        "face_value": 30.0,
    }
    return Voucher(budget=budget, **(given | fields))


def ids(items: Sequence[Product]) -> str:
    return ",".join(p.product_id for p in items)
