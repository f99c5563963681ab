"""Kill -9 of a validator wherever it is: afterwards every problem has exactly one record, and
the score is that of an undisturbed run."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from arena.api.app import create_app
from arena.db.engine import Database
from arena.work.types import Evaluation, RunState
from scoring.types import Problem
from tests.integration.racing import ModelServer, model_server
from tests.integration.validating import Place, ValidatorProcess
from tests.isolations import open_or_skip
from tests.unit.arena.api.world import Validator, served

pytestmark = [pytest.mark.isolation, pytest.mark.database]

EVENTS = ("run begins", "record kept", "problem done", "records sent")
"""What a validator has just done when it is killed."""


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


def _some_missed(problem: Problem) -> Problem:
    """The model reads the answer from the query; for one problem it reads a wrong one."""
    return replace(problem, query="find 6") if problem.query.startswith("problem 1") else problem


async def _rows(place: Place, query: str) -> list[tuple[object, ...]]:
    async with place.database.engine.connect() as connection:
        return [tuple(row) for row in await connection.execute(text(query))]


async def _killed(place: Place, url: str, who: Validator, event: str, times: int) -> None:
    process = ValidatorProcess(url, place.directory, place.environment(who))
    try:
        await asyncio.to_thread(process.until, event, times)
    finally:
        await asyncio.to_thread(process.kill)


async def _finished(place: Place, url: str, who: Validator, data: str = "data") -> None:
    process = ValidatorProcess(url, place.directory, place.environment(who, data))
    try:
        await asyncio.to_thread(process.until, "run completed")
    finally:
        await asyncio.to_thread(process.kill)


@pytest.mark.parametrize("seed", [1])
async def test_killed_at_seeded_points_it_ends_with_one_record_a_problem(
    place: Place, seed: int
) -> None:
    rng = random.Random(seed)
    evaluation = await place.wanted(needed=2, changed=_some_missed)
    alice, bob = place.validators
    async with served(create_app(place.services())) as url:
        undisturbed = asyncio.create_task(_finished(place, url, bob, "undisturbed"))
        for event in rng.sample(EVENTS, len(EVENTS)):
            await _killed(place, url, alice, event, 1)
        await _finished(place, url, alice)
        await undisturbed
    await _check(place, evaluation)


async def test_one_that_lost_its_data_directory_goes_on_with_its_chain(place: Place) -> None:
    await place.wanted()
    alice = place.validators[0]
    async with served(create_app(place.services())) as url:
        await _killed(place, url, alice, "records sent", 1)
        (before,) = await _rows(place, "SELECT count(*) FROM seals")
        await _finished(place, url, alice, "a new disk")
    chain = await _rows(place, "SELECT sequence, seal_hash, previous FROM seals ORDER BY sequence")
    assert len(chain) > int(str(before[0])) > 0
    assert [number for number, _, _ in chain] == list(range(1, len(chain) + 1))
    assert [previous for _, _, previous in chain[1:]] == [digest for _, digest, _ in chain[:-1]]


async def _check(place: Place, evaluation: Evaluation) -> None:
    runs = await place.queue.runs_of(evaluation.version)
    assert [run.state for run in runs] == [RunState.SUCCESS] * 2
    alice, bob = (one.hotkey for one in place.validators)
    problems = len(evaluation.problems)
    scores = await _rows(
        place,
        "SELECT c.validator, count(*), count(DISTINCT c.problem_id), sum(v.final_score)"
        " FROM counted_records c JOIN runs r ON r.record_hash = c.record_hash"
        " JOIN verdicts v ON v.run_id = r.run_id GROUP BY 1",
    )
    by_validator = {row[0]: row[1:] for row in scores}
    expected = pytest.approx(0.5625 * (problems - 1))
    assert by_validator == {alice: (problems, problems, expected), bob: by_validator[alice]}
    # Nothing was run twice, and the chains have no hole.
    closed = await _rows(place, "SELECT count(*) FROM runs WHERE closed")
    assert closed == [(2 * problems,)]
    chains = await _rows(place, "SELECT validator, count(*), max(sequence) FROM seals GROUP BY 1")
    assert all(count == last for _, count, last in chains)
