"""The nightly export runs beside everything else, and says how it ended."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest

from arena.conducting.parts import ExportState
from neurons.serving.exporting import NICENESS, CorpusExport, ExportError

DAY = date(2026, 1, 5)


@pytest.fixture
def export(tmp_path: Path) -> CorpusExport:
    """One whose database does not answer."""
    environment = {
        "PATH": os.environ["PATH"],
        "ARENA_DATA_DIR": str(tmp_path / "v"),
        "ARENA_DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none",
    }
    return CorpusExport(tmp_path / "corpora", (tmp_path / "no-catalogue",), environment)


async def test_a_day_whose_directory_is_there_is_made(export: CorpusExport) -> None:
    export.place(DAY).mkdir(parents=True)
    assert await export.advance(DAY) is ExportState.MADE


async def test_it_is_not_waited_for_and_a_failure_is_told_and_tried_again(
    export: CorpusExport,
) -> None:
    assert await export.advance(DAY) is ExportState.RUNNING
    assert export._running is not None
    _, process = export._running
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == NICENESS
    assert await export.advance(DAY) is ExportState.RUNNING
    await process.wait()
    with pytest.raises(ExportError, match="status 1: error database"):
        await export.advance(DAY)
    assert await export.advance(DAY) is ExportState.RUNNING
    await export.stop()
    assert await export.advance(DAY) is ExportState.RUNNING
    await export.stop()
    await export.stop()
