"""find_product and view_product_information: what an agent sees of the catalogue."""

from __future__ import annotations

from sandbox.catalog.interface import Catalog
from sandbox.tools.arguments import MAX_QUERY_CHARS, Arguments, split_ids
from scoring.types import Json, JsonObject, Product

DEFAULT = "default"
"""A value of `sort` and `service` that means: not given."""


def find_product(arguments: Arguments, catalog: Catalog) -> Json:
    """Search, with the relaxations of the upstream tool.

    Inside a shop an empty answer is tried again without `service`, then with the
    first two words of `q` and without `service`.
    """
    arguments.only("q", "page", "shop_id", "price", "sort", "service")
    q = arguments.required_text("q", limit=MAX_QUERY_CHARS)
    page = arguments.page()
    shop_id = arguments.text("shop_id") or None
    price = arguments.text("price") or None
    sort = _given(arguments.text("sort"))
    services = split_services(_given(arguments.comma_list("service")))
    tries = [(q, services)]
    if shop_id is not None:
        tries += [(q, ()), (first_words(q, 2), ())]
    found: list[Product] = []
    for words, wanted in dict.fromkeys(tries):
        found = catalog.find(
            words, page=page, shop_id=shop_id, price=price, sort=sort, service=wanted
        )
        if found:
            break
    return [listing(product) for product in found]


def view_product_information(arguments: Arguments, catalog: Catalog) -> Json:
    """Descriptions, attributes and SKU options; unknown ids are left out."""
    arguments.only("product_ids")
    ids = split_ids(arguments.tool, arguments.required_comma_list("product_ids"))
    return [details(product) for product in catalog.products(ids).values()]


def listing(product: Product) -> JsonObject:
    """A product as a search lists it."""
    return {
        "product_id": product.product_id,
        "shop_id": product.shop_id,
        "title": product.title,
        "price": product.price,
        "service": list(product.service),
        "sold_count": product.sold_count,
    }


def details(product: Product) -> JsonObject:
    """A product as `view_product_information` shows it."""
    return {
        "product_id": product.product_id,
        "short_description": product.short_description,
        "description": product.description,
        "attributes": attributes_json(product),
        "sku_options": {name: dict(option) for name, option in product.sku_options.items()},
    }


def attributes_json(product: Product, limit: int | None = None) -> JsonObject:
    """The product's attributes (the first `limit`) as JSON."""
    items = list(product.attributes.items())[:limit]
    return {key: list(values) for key, values in items}


def first_words(text: str, count: int) -> str:
    """The first `count` words of `text`, as the upstream retries shorten a query."""
    return " ".join(text.split()[:count])


def split_services(text: str | None) -> tuple[str, ...]:
    """A comma list of services; what the catalogue does not know it ignores."""
    return tuple(part.strip() for part in text.split(",") if part.strip()) if text else ()


def _given(value: str | None) -> str | None:
    return None if not value or value == DEFAULT else value
