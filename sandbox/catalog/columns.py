"""Per-document values that filter, sort and weigh. Touches the directory it is given."""

from __future__ import annotations

from array import array
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sandbox.catalog.filters import service_bits
from sandbox.catalog.strings import write_strings
from scoring.types import Product

IDS = "ids"
SHOP_IDS = "shop_ids"
PRICES = "prices.npy"
SHOPS = "shops.npy"
SERVICES = "services.npy"
SOLD = "sold.npy"
NORMS = "norms.npy"
POSITIONS = "positions.npy"


class ColumnsWriter:
    """Takes products in order and writes their columns in ascending order of id.

    Holds about a hundred bytes a product in memory, most of it the id.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.ids: list[str] = []
        self._prices = array("d")
        self._services = array("B")
        self._sold = array("q")
        self._shops = array("L")
        self._shop_numbers: dict[str, int] = {}

    def append(self, product: Product) -> None:
        """Add the next product."""
        self.ids.append(product.product_id)
        self._prices.append(product.price)
        self._services.append(service_bits(product.service))
        self._sold.append(product.sold_count)
        numbers = self._shop_numbers
        self._shops.append(numbers.setdefault(product.shop_id, len(numbers)))

    def order(self) -> npt.NDArray[np.uint32]:
        """Positions of the products in ascending order of id."""
        return np.array(sorted(range(len(self.ids)), key=self.ids.__getitem__), np.uint32)

    def finish(self, order: npt.NDArray[np.uint32]) -> int:
        """Write the files; returns the number of shops."""
        directory = self._directory
        write_strings(directory, IDS, (self.ids[position] for position in order))
        shop_ids = sorted(self._shop_numbers)
        ranks = np.zeros(len(shop_ids), np.uint32)
        for rank, shop_id in enumerate(shop_ids):
            ranks[self._shop_numbers[shop_id]] = rank
        write_strings(directory, SHOP_IDS, shop_ids)
        shops = np.array(self._shops, np.int64)[order]
        np.save(directory / SHOPS, ranks[shops])
        np.save(directory / PRICES, np.array(self._prices, np.float64)[order])
        np.save(directory / SERVICES, np.array(self._services, np.uint8)[order])
        np.save(directory / SOLD, np.array(self._sold, np.int64)[order])
        np.save(directory / POSITIONS, order)
        return len(shop_ids)
