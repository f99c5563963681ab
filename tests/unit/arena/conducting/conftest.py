"""Fixtures of the calendar's tests."""

from __future__ import annotations

import pytest

from arena.db.engine import Database
from tests.unit.arena.conducting.world import World


@pytest.fixture
def world(database: Database) -> World:
    """An arena on a database of its own, with the application's rights."""
    return World(database.engine)
