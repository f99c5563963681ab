"""What the rest of the house knows of a catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from scoring.types import Product


class Catalog(Protocol):
    """A fixed set of products that can be searched. Safe to call from several threads.

    `content_hash` is the SHA-256 of the content (lower-case hex), `engine` the name
    and version of what ranks. Records hold both.
    """

    content_hash: str
    engine: str

    def __len__(self) -> int:
        """How many products there are."""
        ...

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
        """One page (at most 10) of the upstream search: BM25, filter, 50, sort, page.

        Exactly the semantics of notes/search and `vectors/search.jsonl`: no
        relaxations (they belong to the tool). Page outside 1-5, or nothing left of
        the query, gives [].
        """
        ...

    def product(self, product_id: str) -> Product | None:
        """The product with this id, or None."""
        ...

    def products(self, product_ids: Iterable[str]) -> dict[str, Product]:
        """Those of the ids that exist, in the order given."""
        ...

    def ids(self) -> Iterable[str]:
        """All product ids, ascending as strings."""
        ...
