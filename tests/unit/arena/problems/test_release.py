"""What may be shown in full, and what not yet or never."""

from __future__ import annotations

import pytest

from arena.problems.decisions import retire
from arena.problems.pools import Pool
from arena.problems.release import Released, Withheld
from tests.unit.arena.problems.banks import Banked, problem


@pytest.mark.parametrize("embargo_over", [True, False])
def test_a_record_is_released_when_its_problem_is_retired_and_the_embargo_over(
    embargo_over: bool,
) -> None:
    world = Banked()
    world.bring(Pool.OPEN, problem("open"), problem("old"))
    world.bring(Pool.HELD_OUT, problem("held"), problem("spoilt", "1"))
    world.apply(retire(world.bank, ["old", "spoilt"], "done", world.at))
    world.bring(Pool.SUITE_V1, problem("suite", "1"))
    asked: list[str] = []

    def over(source_hash: str) -> bool:
        asked.append(source_hash)
        return embargo_over

    released = Released(world.bank, over)
    names = ("unknown", "suite", "spoilt", "held", "open", "old")
    assert [released.withheld(name, "agent") for name in names] == [
        Withheld.UNKNOWN,
        Withheld.SUITE,
        Withheld.SUITE,  # retired, but of a suite's cluster
        Withheld.IN_USE,
        Withheld.IN_USE,
        None if embargo_over else Withheld.EMBARGO,
    ]
    assert [released(name, "agent") for name in names] == [False] * 5 + [embargo_over]
    assert set(asked) == {"agent"}
