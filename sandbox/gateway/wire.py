"""The SN15 search wire: a raw request target in, an answer of the catalogue out.

Agents quote `q` themselves before their HTTP client quotes it again, and the server
decodes once: `men's bag` is searched as `men%27s bag`. That is kept, because
observations must be those of the real network (`vectors/wire.jsonl`). Nothing here
relaxes a search: that is the tool's business, in the agent's own code or on
`POST /tools/find_product`.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl

from sandbox.catalog.interface import Catalog
from sandbox.exceptions import ToolError
from sandbox.strict_json import check_text
from sandbox.tools.arguments import MAX_QUERY_CHARS, Arguments
from sandbox.tools.search import listing, split_services, view_product_information
from scoring.types import Json, JsonObject

SEARCH_PREFIX = "/search/"
SEARCH_TOOLS = ("find_product", "view_product_information")
MAX_FIELDS = 32


@dataclass(frozen=True, slots=True)
class WireCall:
    """A search as it came over the wire; the values are texts, decoded once."""

    name: str
    arguments: dict[str, str]
    query: str
    """The raw query string, undecoded."""

    @property
    def as_json(self) -> JsonObject:
        """The arguments as a JSON object."""
        return dict(self.arguments)


def parse_target(target: str) -> WireCall:
    """Read a request target such as `/search/find_product?q=men%2527s%2Bbag&page=1`.

    Of a field that stands twice, the last one counts. Raises ToolError for another path
    and for a query string that is not UTF-8, holds a NUL byte or has too many fields.
    """
    path, _, query = target.partition("?")
    name = path.removeprefix(SEARCH_PREFIX)
    if not path.startswith(SEARCH_PREFIX) or name not in SEARCH_TOOLS:
        raise ToolError(f"there is no search {path[:200]!r}", code="tool.unknown")
    return WireCall(name, decode_query(query), query)


def decode_query(query: str) -> dict[str, str]:
    """Decode a query string once: `+` and `%20` are spaces, UTF-8 throughout.

    Raises ToolError.
    """
    try:
        fields = parse_qsl(
            query, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS
        )
        for name, value in fields:
            check_text(name)
            check_text(value)
    except UnicodeDecodeError:
        raise ToolError("the query string is not UTF-8", code="tool.bad_encoding") from None
    except ValueError as error:
        raise ToolError(f"the query string: {error}", code="tool.bad_encoding") from None
    return dict(fields)


def answer(call: WireCall, catalog: Catalog) -> Json:
    """What the wire answers: for a search up to ten products, without relaxations.

    A page that is missing or no whole number from 1 to 5 gives []; fields that are not
    known count for nothing, as upstream. Raises ToolError when a value is too long.
    """
    if call.name == "view_product_information":
        ids = call.arguments.get("product_ids", "")
        return view_product_information(Arguments(call.name, {"product_ids": ids}), catalog)
    return _find(Arguments(call.name, call.as_json), catalog)


def _find(arguments: Arguments, catalog: Catalog) -> Json:
    q = arguments.text("q", limit=MAX_QUERY_CHARS) or ""
    shop_id = arguments.text("shop_id", limit=MAX_QUERY_CHARS) or None
    price = arguments.text("price", limit=MAX_QUERY_CHARS) or None
    sort = arguments.text("sort", limit=MAX_QUERY_CHARS) or None
    services = split_services(arguments.text("service", limit=MAX_QUERY_CHARS))
    page = arguments.text("page", limit=MAX_QUERY_CHARS) or ""
    if page not in ("1", "2", "3", "4", "5"):
        return []
    found = catalog.find(
        q, page=int(page), shop_id=shop_id, price=price, sort=sort, service=services
    )
    return [listing(product) for product in found]
