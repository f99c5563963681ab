"""What the wire and the tools answered: the measure of what an agent showed its model.

A call that reached the gateway has its answer there. Helper tools that ran in agent code
are recomputed from the searches and views that they made over the wire, and from the
catalogue where those do not suffice and one is at hand.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import cast

from corpus_export.types import ResultSource
from sandbox.catalog.interface import Catalog
from sandbox.exceptions import ToolError
from sandbox.provenance.calls import (
    CHECK,
    FIND,
    RECOMMEND,
    SAME_SHOP,
    TERMINATE,
    VIEW,
    VOUCHER,
    Call,
    normalise,
)
from sandbox.provenance.coverage import Cover, cover_for, relaxations_of
from sandbox.tools import call_tool
from sandbox.trace import ToolEvent, Trace
from scoring.types import Json, JsonObject, Product

CLOSING = frozenset({RECOMMEND, TERMINATE})
"""Tools whose answer is a confirmation; the wire of SN15 has no door for them."""
HELPERS = frozenset({CHECK, SAME_SHOP, VOUCHER}) | CLOSING
"""Tools that agents run in their own code."""
MAX_SEARCHES = 20
"""Searches of a catalogue in one trajectory; what would need more is not recomputed."""


@dataclass(frozen=True, slots=True)
class Truth:
    """The answer to a call, and who gave it: the wire, or the tool that was asked again."""

    value: Json
    source: ResultSource


class Wire:
    """The tool calls of a trace in normal form, taken one by one by the turns they answer."""

    def __init__(self, trace: Trace) -> None:
        self.calls: list[tuple[int, Call, ToolEvent]] = [
            (at, normalise(str(event.name), event.arguments), event)
            for at, event in enumerate(trace.events)
            if isinstance(event, ToolEvent)
        ]
        self._taken: set[int] = set()
        self._catalog: RecordedCatalog | None = None

    @property
    def untaken(self) -> int:
        """Calls that answered no turn."""
        return len(self.calls) - len(self._taken)

    def answer(
        self,
        call: Call,
        arguments: JsonObject | None,
        start: int,
        stop: int,
        catalog: Catalog | None,
    ) -> Truth | None:
        """What answers a call that was emitted between two places of the trace, if known."""
        event = self.take(call, start, stop)
        if event is not None and event.status == 200:
            return Truth(event.result, ResultSource.WIRE)
        self._take_work(call, start, stop)
        if call.name not in HELPERS:
            return None
        try:
            value = call_tool(call.name, arguments or {}, self._recorded(catalog))
        except ToolError as error:
            value = {"error": error.message}
        except NotRecordedError:
            return None
        return Truth(value, ResultSource.RECOMPUTED)

    def take(self, call: Call, start: int, stop: int) -> ToolEvent | None:
        """The dispatch of `call` between two places of the trace, or None.

        A request repeated after a failure is one call, and its last answer counts; so is a
        search that found nothing in a shop and was widened.
        """
        answer: ToolEvent | None = None
        for i in self._between(start, stop) if call.key is not None else ():
            _, made, event = self.calls[i]
            if made.key == call.key:
                self._taken.add(i)
                answer = event
                if event.status == 200:
                    return self._widened(call, event, i, stop)
        return answer

    def taken(self, index: int) -> bool:
        """Whether the call with this number has answered a turn."""
        return index in self._taken

    def _between(self, start: int, stop: int) -> list[int]:
        first = bisect_right(self.calls, start, key=itemgetter(0))
        end = bisect_left(self.calls, stop, key=itemgetter(0))
        return [i for i in range(first, end) if i not in self._taken]

    def _widened(self, call: Call, event: ToolEvent, index: int, stop: int) -> ToolEvent:
        cover = relaxations_of(call, event.result)
        for again in self._covered(cover, self.calls[index][0], stop):
            event = again
        return event

    def _take_work(self, call: Call, start: int, stop: int) -> None:
        """Take the views and searches that a helper makes on its own."""
        for _ in self._covered(cover_for(call), start, stop):
            pass

    def _covered(self, cover: Cover | None, start: int, stop: int) -> Iterator[ToolEvent]:
        for i in self._between(start, stop) if cover is not None else ():
            _, made, event = self.calls[i]
            if cover is not None and cover.accepts(made):
                self._taken.add(i)
                cover.take(made)
                cover.learn(made, event.result)
                if event.status == 200:
                    yield event

    def _recorded(self, behind: Catalog | None) -> RecordedCatalog:
        if self._catalog is None:
            made = ((call, event) for _, call, event in self.calls)
            self._catalog = RecordedCatalog(made, behind)
        return self._catalog


class NotRecordedError(Exception):
    """The wire does not hold what a recomputation needs."""


class RecordedCatalog:
    """A catalogue that knows what the wire answered, and asks `behind` for the rest.

    At most `MAX_SEARCHES` times: a search costs milliseconds, and a same-shop call can ask
    for hundreds.
    """

    content_hash = ""
    engine = "recorded"

    def __init__(self, calls: Iterable[tuple[Call, ToolEvent]], behind: Catalog | None) -> None:
        self._pages: dict[str, list[Json]] = {}
        self._details: dict[str, JsonObject] = {}
        self._behind = behind
        self._searches_left = MAX_SEARCHES
        for call, event in calls:
            if event.status != 200 or call.key is None or not isinstance(event.result, list):
                continue
            if call.name == FIND:
                self._pages[call.key] = event.result
            elif call.name == VIEW:
                for item in event.result:
                    if isinstance(item, dict):
                        self._details[str(item.get("product_id"))] = item

    def __len__(self) -> int:
        return len(self._behind) if self._behind is not None else len(self._details)

    def find(
        self,
        q: str,
        *,
        page: int = 1,
        shop_id: str | None = None,
        price: str | None = None,
        sort: str | None = None,
        service: Sequence[str] = (),
    ) -> list[Product]:
        """The page that the wire answered. Raises NotRecordedError."""
        asked: JsonObject = {"q": q, "page": page, "shop_id": shop_id, "price": price}
        asked |= {"sort": sort, "service": ",".join(service)}
        found = self._pages.get(normalise(FIND, asked).key or "")
        if found is not None:
            return [_product(item) for item in found if isinstance(item, dict)]
        if self._behind is None or self._searches_left == 0:
            raise NotRecordedError
        self._searches_left -= 1
        return self._behind.find(
            q, page=page, shop_id=shop_id, price=price, sort=sort, service=service
        )

    def product(self, product_id: str) -> Product | None:
        """The product as it was viewed. Raises NotRecordedError."""
        if self._behind is not None:
            return self._behind.product(product_id)
        if product_id not in self._details:
            raise NotRecordedError
        return _product(self._details[product_id])

    def products(self, product_ids: Iterable[str]) -> dict[str, Product]:
        """Those that exist, as they were viewed. Raises NotRecordedError."""
        found = ((i, self.product(i)) for i in product_ids)
        return {i: product for i, product in found if product is not None}

    def ids(self) -> Iterable[str]:
        """All ids that are known."""
        return self._behind.ids() if self._behind is not None else sorted(self._details)


def is_shortening(shown: Json, full: Json, depth: int = 32) -> bool:
    """Whether `shown` is `full` with texts and lists cut and keys left out; also when equal."""
    if shown == full:
        return True
    if depth == 0:
        return False
    if isinstance(shown, str) and isinstance(full, str):
        return full.startswith(shown.rstrip().removesuffix("...").removesuffix("…").rstrip())
    if isinstance(shown, list) and isinstance(full, list):
        return len(shown) <= len(full) and all(
            is_shortening(s, f, depth - 1) for s, f in zip(shown, full, strict=False)
        )
    if isinstance(shown, dict) and isinstance(full, dict):
        return all(k in full and is_shortening(v, full[k], depth - 1) for k, v in shown.items())
    return False


def _product(item: JsonObject) -> Product:
    """A product as far as one answer shows it."""
    price = item.get("price")
    sku = item.get("sku_options")
    attributes = item.get("attributes")
    return Product(
        product_id=str(item.get("product_id", "")),
        shop_id=str(item.get("shop_id", "")),
        title=str(item.get("title", "")),
        price=cast("float", price) if isinstance(price, int | float) else 0.0,
        short_description=str(item.get("short_description", "")),
        description=str(item.get("description", "")),
        sku_options={
            str(name): {str(k): str(v) for k, v in option.items()}
            for name, option in (sku.items() if isinstance(sku, dict) else ())
            if isinstance(option, dict)
        },
        attributes={
            str(key): tuple(str(v) for v in values)
            for key, values in (attributes.items() if isinstance(attributes, dict) else ())
            if isinstance(values, list)
        },
    )
