"""Catalogues are built once for all tests of this room."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def catalogs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory that keeps built catalogues."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(autouse=True)
def data_directory(catalogs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data directory of every test here."""
    monkeypatch.setenv("ARENA_DATA_DIR", str(catalogs))
