"""Documents, index and search. `open_catalog` is the door."""

from sandbox.catalog.interface import Catalog
from sandbox.catalog.opening import open_catalog

__all__ = ["Catalog", "open_catalog"]
