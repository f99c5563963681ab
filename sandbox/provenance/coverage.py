"""Wire calls that an emitted helper tool makes on its own.

Agents run `check_product_match` and `find_products_in_same_shop` in their own code,
which views and searches over the wire, and `find_product` widens a search that
found nothing in a shop. These wire calls are the emitted call at work: neither the
model's next decision nor the code's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sandbox.provenance.calls import CHECK, FIND, SAME_SHOP, VIEW, Call, Value
from scoring.types import Json

SHOPS_TRIED = 10
"""find_products_in_same_shop tries at most this many shops (notes/upstream)."""
TRIES_PER_SPEC = 3
"""In each: the query, its first two words, its first word."""
MAX_SPECS = 16
"""Specs read from one call; more is no shopping list."""


@dataclass(slots=True)
class CheckCover:
    """`check_product_match` looks at its product once."""

    product_id: str
    left: int = 1

    def accepts(self, call: Call) -> bool:
        """Whether `call` is that one view."""
        return self.left > 0 and call.name == VIEW and call.arguments == self._view()

    def take(self, call: Call) -> None:
        """Count the view."""
        self.left -= 1

    def learn(self, call: Call, result: Json) -> None:
        """One view is all, whatever it shows."""

    def _view(self) -> dict[str, Value]:
        return {"product_ids": self.product_id}


@dataclass(slots=True)
class RelaxationCover:
    """The two wider searches of `find_product` after nothing was found in a shop."""

    without_service: str | None
    two_words: str | None

    def accepts(self, call: Call) -> bool:
        """Whether `call` is a wider search not made yet."""
        return call.key is not None and call.key in (self.without_service, self.two_words)

    def take(self, call: Call) -> None:
        """Spend the step, and those before it."""
        if call.key == self.two_words:
            self.two_words = None
        self.without_service = None

    def learn(self, call: Call, result: Json) -> None:
        """Once something is found there is nothing more to widen."""
        if not is_empty(result):
            self.two_words = None


@dataclass(frozen=True, slots=True)
class Spec:
    """One product that `find_products_in_same_shop` is to find."""

    words: tuple[str, ...]
    price: str
    service: str

    def may_search(self, call: Call) -> bool:
        """Whether `call` looks for a word prefix of this, its filters equal or dropped."""
        words = tuple(call.text("q").split())
        return (
            bool(words)
            and words == self.words[: len(words)]
            and call.text("price") in ("", self.price)
            and call.text("service") in ("", self.service)
        )


@dataclass(slots=True)
class SameShopCover:
    """The searches of `find_products_in_same_shop`: prefixes of its specs, shop by shop."""

    specs: tuple[Spec, ...]
    left: int
    shops: set[str] = field(default_factory=set)

    def accepts(self, call: Call) -> bool:
        """Whether `call` is a search that this call may make now."""
        if self.left <= 0 or call.name != FIND or call.key is None:
            return False
        if not call.arguments.keys() <= {"q", "price", "service", "shop_id"}:
            return False
        shop = call.text("shop_id")
        if shop and shop not in self.shops:
            return False
        return any(spec.may_search(call) for spec in self.specs)

    def take(self, call: Call) -> None:
        """Count the search."""
        self.left -= 1

    def learn(self, call: Call, result: Json) -> None:
        """Remember the shops that a search over all shops returned."""
        if not call.text("shop_id"):
            self.shops.update(_shop_ids(result))


Cover = CheckCover | RelaxationCover | SameShopCover


def cover_for(call: Call) -> Cover | None:
    """What an emitted call may do on the wire besides being dispatched itself."""
    if call.key is None:
        return None
    if call.name == CHECK and call.text("product_id"):
        return CheckCover(call.text("product_id"))
    if call.name == SAME_SHOP:
        specs = tuple(_specs(call.arguments.get("product_queries")))
        searches = len(specs) + SHOPS_TRIED * TRIES_PER_SPEC * len(specs)
        return SameShopCover(specs, left=searches) if specs else None
    return None


def relaxations_of(call: Call, result: Json) -> RelaxationCover | None:
    """The wider searches that an answered `find_product` may make, or None."""
    if call.name != FIND or not call.text("shop_id") or not is_empty(result):
        return None
    two_words = " ".join(call.text("q").split()[:2])
    return RelaxationCover(
        without_service=call.without("service").key,
        two_words=call.without("service", q=two_words).key,
    )


def is_empty(result: Json) -> bool:
    """Whether a search found nothing."""
    return not result or (isinstance(result, dict) and not result.get("products", True))


def _specs(queries: Value | None) -> Iterator[Spec]:
    for spec in queries[:MAX_SPECS] if isinstance(queries, list) else ():
        if not isinstance(spec, dict):
            continue
        # Read as the find_product call that it becomes, so that both are normal alike.
        search = Call(FIND, spec, "").without("page", "shop_id", "sort")
        words = tuple(search.text("q").split())
        if words:
            yield Spec(words, search.text("price"), search.text("service"))


def _shop_ids(result: Json) -> Iterator[str]:
    for product in result[:SHOPS_TRIED] if isinstance(result, list) else ():
        if isinstance(product, dict) and isinstance(product.get("shop_id"), str | int):
            yield str(product["shop_id"])
