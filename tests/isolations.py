"""The isolations of this machine, for tests: `each_isolation` runs a test on every one.

    from sandbox.isolation.interface import Isolation

    pytestmark = pytest.mark.isolation

    async def test_something(each_isolation: Isolation) -> None:
        result = await each_isolation.run(spec)

A test is skipped, with the reason and the remedy, where this machine lacks the
isolation. `ARENA_REQUIRE_ISOLATION=docker,bubblewrap` (continuous integration) turns
that skip into a failure, so that a missing engine can never pass for a green run.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest

from sandbox.exceptions import IsolationError
from sandbox.isolation import open_isolation
from sandbox.isolation.interface import Isolation

NAMES = ("docker", "bubblewrap")


async def open_or_skip(name: str) -> Isolation:
    """Open the isolation `name`; skip the test where this machine lacks it.

    Fails instead when ARENA_REQUIRE_ISOLATION names it.
    """
    try:
        return await open_isolation(name)
    except IsolationError as error:
        required = os.environ.get("ARENA_REQUIRE_ISOLATION", "").replace(" ", "").split(",")
        if name in required:
            pytest.fail(f"ARENA_REQUIRE_ISOLATION names {name}, but: {error}")
        pytest.skip(f"{name}: {error}")


@pytest.fixture(params=NAMES)
async def each_isolation(request: pytest.FixtureRequest) -> AsyncIterator[Isolation]:
    """Every isolation in turn, opened afresh and closed after the test."""
    isolation = await open_or_skip(request.param)
    try:
        yield isolation
    finally:
        await isolation.close()


@pytest.fixture
async def docker() -> AsyncIterator[Isolation]:
    """The Docker isolation alone."""
    isolation = await open_or_skip("docker")
    try:
        yield isolation
    finally:
        await isolation.close()


@pytest.fixture
async def bubblewrap() -> AsyncIterator[Isolation]:
    """The bubblewrap isolation alone."""
    isolation = await open_or_skip("bubblewrap")
    try:
        yield isolation
    finally:
        await isolation.close()


@pytest.fixture
async def sandbox() -> str:
    """The name of an isolation that this machine has; bubblewrap before Docker."""
    reasons = []
    for name in reversed(NAMES):
        try:
            isolation = await open_or_skip(name)
        except pytest.skip.Exception as reason:
            reasons.append(str(reason))
            continue
        await isolation.close()
        return name
    pytest.skip("; ".join(reasons))
