"""A validator as its operator runs it, against a real API, database, sandbox and local chain."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from arena.api.app import create_app
from arena.api.scores import run_score
from arena.db.engine import Database
from arena.work.types import Evaluation, RunState
from tests.integration.racing import ModelServer, model_server
from tests.integration.validating import Place, ValidatorProcess
from tests.isolations import open_or_skip
from tests.unit.arena.api.world import Validator, served

pytestmark = [pytest.mark.isolation, pytest.mark.database]


@pytest.fixture(autouse=True)
async def sandbox() -> None:
    await (await open_or_skip("bubblewrap")).close()


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with model_server() as running:
        running.tokens = 40
        yield running


@pytest.fixture
def place(database: Database, tmp_path: Path, model: ModelServer) -> Place:
    return Place(database, tmp_path, model)


@asynccontextmanager
async def validating(
    place: Place, who: Validator, url: str, **env: str
) -> AsyncIterator[ValidatorProcess]:
    """A validator's process; killed at the end if it is not over."""
    process = ValidatorProcess(url, place.directory, place.environment(who, **env))
    try:
        yield process
    finally:
        await asyncio.to_thread(process.kill)


async def _until(process: ValidatorProcess, event: str, times: int = 1) -> None:
    await asyncio.to_thread(process.until, event, times)


async def _score(place: Place, who: Validator, evaluation: Evaluation) -> float | None:
    query = text(
        "SELECT run_id FROM evaluation_runs WHERE evaluation_id = :e AND validator = :v"
        " ORDER BY attempt DESC LIMIT 1"
    )
    async with place.database.engine.connect() as connection:
        run = await connection.scalar(query, {"e": evaluation.evaluation_id, "v": who.hotkey})
    found = await run_score(place.database.engine, run, who.hotkey)
    assert found is not None
    return found.score


async def test_from_the_claim_to_the_completed_run_and_a_clean_end(place: Place) -> None:
    evaluation = await place.wanted()
    alice = place.validators[0]
    async with served(create_app(place.services())) as url, validating(place, alice, url) as neuron:
        await _until(neuron, "run completed")
        neuron.signal(signal.SIGTERM)
        assert await asyncio.to_thread(neuron.end) == 0, neuron.said
    runs = await place.queue.runs_of(evaluation.version)
    assert [run.state for run in runs] == [RunState.SUCCESS]
    assert await place.rows("counted_records") == len(evaluation.problems)
    assert await _score(place, alice, evaluation) == pytest.approx(0.5625)
