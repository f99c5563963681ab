"""Which isolation is opened, and what the doctor is told."""

from __future__ import annotations

import pytest

from sandbox.exceptions import Fault, IsolationError
from sandbox.isolation import KINDS, checks, open_isolation
from sandbox.isolation.interface import Isolation


async def test_an_isolation_that_does_not_exist_is_the_callers_mistake() -> None:
    with pytest.raises(IsolationError, match="chroot") as caught:
        await open_isolation("chroot")
    assert caught.value.fault is Fault.CALLER
    assert all(kind in str(caught.value.remedy) for kind in KINDS)


def test_every_lack_that_the_doctor_names_has_a_name_of_its_own() -> None:
    found = checks()
    names = [check.name for check in found]
    assert len(set(names)) == len(names)
    assert {name.partition(":")[0] for name in names} == set(KINDS)
    assert all(check.detail for check in found)


@pytest.mark.isolation
async def test_what_is_not_asked_for_by_name_is_one_of_the_two(bubblewrap: Isolation) -> None:
    chosen = await open_isolation()
    assert chosen.name in KINDS
    await chosen.close()
