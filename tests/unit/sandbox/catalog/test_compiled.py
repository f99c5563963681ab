from __future__ import annotations

from typing import Any

from sandbox.catalog.compiled import compiled


def test_code_without_a_place_for_its_cache_is_compiled_all_the_same() -> None:
    space: dict[str, Any] = {}
    exec("def double(x):\n    return x * 2\n", space)  # a function without a file
    double = compiled(space["double"])
    assert double(21) == 42
    assert double.signatures
