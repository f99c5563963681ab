"""find_products_in_same_shop: one shop that sells everything on a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.catalog.interface import Catalog
from sandbox.exceptions import ToolError
from sandbox.tools.arguments import MAX_QUERY_CHARS, MAX_SPECS, Arguments, read_json_text
from sandbox.tools.search import first_words, split_services
from scoring.types import Json, JsonObject, Product

MAX_SHOPS = 10


@dataclass(frozen=True, slots=True)
class _Spec:
    """One product asked for."""

    q: str
    price: str | None
    service: tuple[str, ...]


def find_products_in_same_shop(arguments: Arguments, catalog: Catalog) -> Json:
    """Find the first shop in which every query has a hit.

    The first query's first page names the candidate shops (at most ten, in order of
    appearance), each with that first product. Every further query is searched inside
    the shop with its price and without its service, then shortened to two words, then
    to one; its first hit is taken.
    """
    arguments.only("product_queries")
    raw = arguments.values.get("product_queries")
    if isinstance(raw, str):
        arguments.text("product_queries")  # bounds it
    try:
        decoded = read_json_text(raw)
    except ValueError:
        return {"found": False, "error": "Invalid JSON for product_queries"}
    if not isinstance(decoded, list) or not decoded:
        return {"found": False, "error": "product_queries must be a non-empty JSON array"}
    specs = _read_specs(arguments.tool, decoded)
    first = specs[0]
    hits = catalog.find(first.q, page=1, price=first.price, service=first.service)
    if not hits:
        return {
            "found": False,
            "error": f"No results for first product: {first.q}",
            "shops_tried": 0,
        }
    by_shop: dict[str, Product] = {}
    for product in hits:
        if product.shop_id:
            by_shop.setdefault(product.shop_id, product)
    candidates = list(by_shop.items())[:MAX_SHOPS]
    for tried, (shop_id, product) in enumerate(candidates, start=1):
        rest = _all_in_shop(catalog, shop_id, specs[1:])
        if rest is not None:
            return {
                "found": True,
                "shop_id": shop_id,
                "products": [_brief(p) for p in (product, *rest)],
                "shops_tried": tried,
            }
    return {
        "found": False,
        "error": f"Could not find all {len(specs)} products in any single shop",
        "shops_tried": len(candidates),
    }


def _all_in_shop(catalog: Catalog, shop_id: str, specs: Sequence[_Spec]) -> list[Product] | None:
    found: list[Product] = []
    for spec in specs:
        for words in dict.fromkeys((spec.q, first_words(spec.q, 2), first_words(spec.q, 1))):
            hits = catalog.find(words, page=1, shop_id=shop_id, price=spec.price)
            if hits:
                found.append(hits[0])
                break
        else:
            return None
    return found


def _read_specs(tool: str, decoded: list[Json]) -> list[_Spec]:
    if len(decoded) > MAX_SPECS:
        raise ToolError(f"{tool}: more than {MAX_SPECS} products in one call")
    specs = []
    for item in decoded:
        if not isinstance(item, dict):
            raise ToolError(f"{tool}: every item of product_queries must be an object with q")
        spec = Arguments(tool, item)
        price = spec.text("price", limit=MAX_QUERY_CHARS) or None
        services = split_services(spec.comma_list("service"))
        specs.append(_Spec(spec.text("q", limit=MAX_QUERY_CHARS) or "", price, services))
    return specs


def _brief(product: Product) -> JsonObject:
    return {
        "product_id": product.product_id,
        "title": product.title,
        "price": product.price,
        "shop_id": product.shop_id,
    }
