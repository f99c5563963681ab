"""Where the shared problems and vectors lie: beside the checkout, never in it."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"

needs_shared = pytest.mark.skipif(
    not (SHARED / "vectors").is_dir(),
    reason="the shared vectors and problems do not lie beside this checkout",
)
