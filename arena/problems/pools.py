"""Pools and sides: where a problem may be used. Pure."""

from __future__ import annotations

from enum import StrEnum


class Pool(StrEnum):
    """Where a problem stands. Suites are the public yardstick: never in training, never in
    the bank. The bank's problems are raced while held out, and qualified on while open."""

    SUITE_V1 = "suite:v1"
    SUITE_V2 = "suite:v2"
    SUITE_V3 = "suite:v3"
    OPEN = "bank:open"
    HELD_OUT = "bank:held_out"
    RETIRED = "bank:retired"

    @property
    def is_suite(self) -> bool:
        """Whether it is one of the public suites."""
        return self.value.startswith("suite:")


class Side(StrEnum):
    """What a problem's traces may be used for. All problems of a leak cluster stand on one."""

    TRAINING = "training"
    EVALUATION = "evaluation"
    NEVER = "never_touch"
