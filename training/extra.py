"""Whether what trains and serves models is installed. Imports none of it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from training.exceptions import ExtraMissingError

NEEDED: Final = ("torch", "transformers", "peft", "renderers", "yaml")


def require_extra() -> None:
    """Raise ExtraMissingError, in one line, when the extra `training` is not there."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ExtraMissingError(
            f"training needs packages that are not installed: {', '.join(missing)}",
            remedy="make training",
        )
