"""check_product_match: does a product have the attributes that were asked for?"""

from __future__ import annotations

from sandbox.catalog.interface import Catalog
from sandbox.exceptions import ToolError
from sandbox.tools.arguments import Arguments, as_object, read_json_text
from sandbox.tools.search import attributes_json
from scoring.types import Json, JsonObject, Product

SUMMARY_ATTRIBUTES = 10
MAX_REQUIREMENTS = 500
"""In one call; real ones have a handful. Each is searched for in the whole description."""

_BETWEEN_VALUES = " ||| "
"""Stands between joined values, so that no match runs from one value into the next
without naming it; observable in the upstream tool, hence the same here."""


def check_product_match(arguments: Arguments, catalog: Catalog) -> Json:
    """Report which of the required attributes the product has.

    A requirement holds when its value, in lower case, is a substring of that
    attribute's values, or of all attribute and SKU values joined, or of the short
    description and description. Upstream means to read SKU options and skips them;
    here they count (`vectors/tools.jsonl`).
    """
    arguments.only("product_id", "requirements")
    product_id = arguments.required_text("product_id").strip()
    raw = arguments.values.get("requirements")
    if isinstance(raw, str):
        arguments.text("requirements")  # bounds it
    try:
        wanted = as_object(read_json_text(raw))
    except ValueError:
        wanted = None
    if wanted is None:
        return {"matched": False, "error": "Invalid requirements JSON"}
    if len(wanted) > MAX_REQUIREMENTS:
        raise ToolError(f"{arguments.tool}: more than {MAX_REQUIREMENTS} requirements in one call")
    product = catalog.product(product_id)
    if product is None:
        return {
            "matched": False,
            "error": "Product not found",
            "matches": [],
            "mismatches": list(wanted),
        }
    return _report(product, wanted)


def _report(product: Product, wanted: JsonObject) -> JsonObject:
    searchable = _Searchable(product)
    matches: list[Json] = []
    mismatches: list[Json] = []
    for key, value in wanted.items():
        (matches if searchable.has(key, str(value).lower()) else mismatches).append(key)
    return {
        "matched": not mismatches,
        "matches": matches,
        "mismatches": mismatches,
        "product_summary": {
            "product_id": product.product_id,
            "attributes": attributes_json(product, SUMMARY_ATTRIBUTES),
        },
    }


class _Searchable:
    """The three lower-case texts in which a required value is looked for."""

    def __init__(self, product: Product) -> None:
        # Of two attributes that differ only in case, the first one speaks.
        self._by_key: dict[str, str] = {}
        values: list[str] = []
        for key, items in product.attributes.items():
            lowered = [item.lower() for item in items]
            values += lowered
            self._by_key.setdefault(key.lower(), " ".join(lowered))
        for option in product.sku_options.values():
            values += [value.lower() for value in option.values()]
        self._all = _BETWEEN_VALUES.join(values)
        self._text = f"{product.short_description} {product.description}".lower()

    def has(self, key: str, value: str) -> bool:
        """Whether the required `value` of `key` is found anywhere."""
        return (
            value in self._by_key.get(key.lower(), "") or value in self._all or value in self._text
        )
