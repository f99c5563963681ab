"""Fixtures of the validator's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.api.settings import ApiSettings
from arena.db.engine import Database
from tests.unit.arena.api.world import World


@pytest.fixture
def world(database: Database, tmp_path: Path) -> World:
    return World(database, tmp_path, ApiSettings(data_dir=tmp_path / "api"))
