"""Makes the file of the memoriser, which needs problems to know by heart."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from scoring.types import Problem

KEY_CHARS = 120
"""As in the template, which cannot be imported outside a sandbox."""
_EMPTY = "ANSWERS: dict[str, str] = {}\n"


def memoriser(problems: Iterable[Problem]) -> str:
    """The memoriser's source with the answers of these problems in it."""
    template = Path(__file__).with_name("memoriser.py").read_text(encoding="utf-8")
    assert template.count(_EMPTY) == 1
    assert f"KEY_CHARS = {KEY_CHARS}\n" in template
    entries = "".join(
        f"    {json.dumps(problem.query[:KEY_CHARS])}: "
        f"{json.dumps(','.join(reward.product_id for reward in problem.rewards))},\n"
        for problem in problems
    )
    return template.replace(_EMPTY, f"ANSWERS: dict[str, str] = {{\n{entries}}}\n")
