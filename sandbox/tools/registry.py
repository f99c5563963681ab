"""The seven tools by name, and the one way to call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sandbox.catalog.interface import Catalog
from sandbox.exceptions import ToolError
from sandbox.tools.arguments import Arguments
from sandbox.tools.closing import recommend_product, terminate
from sandbox.tools.match import check_product_match
from sandbox.tools.same_shop import find_products_in_same_shop
from sandbox.tools.search import find_product, view_product_information
from sandbox.tools.voucher import calculate_voucher
from scoring.types import Json

_WITH_CATALOG: Mapping[str, Callable[[Arguments, Catalog], Json]] = {
    "find_product": find_product,
    "view_product_information": view_product_information,
    "check_product_match": check_product_match,
    "find_products_in_same_shop": find_products_in_same_shop,
}
_ALONE: Mapping[str, Callable[[Arguments], Json]] = {
    "calculate_voucher": calculate_voucher,
    "recommend_product": recommend_product,
    "terminate": terminate,
}

TOOL_NAMES: tuple[str, ...] = (*_WITH_CATALOG, *_ALONE)
"""The seven tools, in the order an agent meets them."""


def searches(name: str) -> bool:
    """Whether the tool reads the catalogue, and so may take milliseconds of CPU."""
    return name in _WITH_CATALOG


def call_tool(name: str, arguments: Mapping[str, Json], catalog: Catalog) -> Json:
    """Call a tool and return what it answers.

    Raises ToolError (AGENT) for an unknown tool or arguments that cannot be read, and
    nothing else but what the catalogue raises.
    """
    given = Arguments(name, arguments)
    if name in _WITH_CATALOG:
        return _WITH_CATALOG[name](given, catalog)
    if name in _ALONE:
        return _ALONE[name](given)
    raise ToolError(
        f"there is no tool {name[:100]!r}; there are {', '.join(TOOL_NAMES)}",
        code="tool.unknown",
    )
