"""Traces made to be judged too well, each with the highest quality that may come out.

The bound is what the decision tree gives to what the model really thought: 0.1 without a
real inference call, 0.3 without a word on tool results, 0.5 without a datum of them, 0.7
without a comparison. What is claimed, asked for, faked or hidden changes nothing. `least`
is set where an honest agent met the hostile text: it must not pay for it.
"""

from __future__ import annotations

from tests.unit.judge import attacks_copied, attacks_foreign, attacks_shape
from tests.unit.judge.scenes import Attack


def attacks() -> list[Attack]:
    """Every case, always the same."""
    return [*attacks_foreign.attacks(), *attacks_copied.attacks(), *attacks_shape.attacks()]
