"""A validator as its operator runs it, against a real API, database, sandbox and local chain."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from arena.api.app import create_app
from arena.api.scores import run_score
from arena.db.engine import Database
from arena.work.types import Evaluation, RunState
from neurons.validator import EXIT_TERMINATED
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


class _LateAnswer:
    """Keeps the answer to a completion back until a heartbeat has been refused after it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._refused = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")

        async def answer(message: Message) -> None:
            if path.endswith("/heartbeat") and message.get("status") == 409:
                self._refused.set()
            if path.endswith("/complete"):
                await self._refused.wait()
            await send(message)

        await self._app(scope, receive, answer)


async def test_a_heartbeat_that_overtakes_the_completion_loses_nothing(place: Place) -> None:
    evaluation = await place.wanted(problems=1)
    app = create_app(place.services())
    app.add_middleware(_LateAnswer)
    async with served(app) as url, validating(place, place.validators[0], url) as neuron:
        await _until(neuron, "run completed")
        neuron.signal(signal.SIGTERM)
        assert await asyncio.to_thread(neuron.end) == 0, neuron.said
    assert "run lost" not in [line.event for line in neuron.lines]
    assert [line.value["ending"] for line in neuron.lines if line.event == "run ended"] == [
        "success"
    ]
    assert [run.state for run in await place.queue.runs_of(evaluation.version)] == [
        RunState.SUCCESS
    ]


async def test_drained_it_finishes_what_is_in_hand(place: Place) -> None:
    evaluation = await place.wanted()
    alice, model = place.validators[0], place.model
    model.held = lambda query: True
    async with served(create_app(place.services())) as url, validating(place, alice, url) as neuron:
        await asyncio.to_thread(model.arrived.get, timeout=120)
        neuron.signal(signal.SIGTERM)
        await _until(neuron, "draining: no further run is claimed; a second signal ends at once")
        model.let_go.set()
        assert await asyncio.to_thread(neuron.end) == 0, neuron.said
    assert [run.state for run in await place.queue.runs_of(evaluation.version)] == [
        RunState.SUCCESS
    ]


@pytest.mark.parametrize(("drain", "kept"), [("return", False), ("keep", True)])
async def test_drained_at_once_it_returns_or_keeps_its_run(
    place: Place, drain: str, kept: bool
) -> None:
    evaluation = await place.wanted()
    alice, model = place.validators[0], place.model
    model.held = lambda query: True
    async with (
        served(create_app(place.services())) as url,
        validating(place, alice, url, ARENA_VALIDATOR_DRAIN=drain) as neuron,
    ):
        await asyncio.to_thread(model.arrived.get, timeout=120)
        neuron.signal(signal.SIGTERM)
        assert await asyncio.to_thread(neuron.end) == 0, neuron.said
    (run,) = await place.queue.runs_of(evaluation.version)
    # Held as it was claimed, or as its first heartbeat made it: whichever came first.
    assert run.state.held is kept
    if not kept:
        assert run.state is RunState.FAILED
        assert run.failure is not None
        assert run.failure.message == "the validator goes away"


async def test_a_second_signal_ends_at_once_and_the_run_stays_held(place: Place) -> None:
    evaluation = await place.wanted()
    alice, model = place.validators[0], place.model
    model.held = lambda query: True
    async with served(create_app(place.services())) as url, validating(place, alice, url) as neuron:
        await asyncio.to_thread(model.arrived.get, timeout=120)
        neuron.signal(signal.SIGTERM)
        await _until(neuron, "draining: no further run is claimed; a second signal ends at once")
        neuron.signal(signal.SIGTERM)
        assert await asyncio.to_thread(neuron.end) == EXIT_TERMINATED, neuron.said
    (run,) = await place.queue.runs_of(evaluation.version)
    assert run.state.held


async def test_a_lost_lease_stops_the_work_and_the_next_claim_goes_on(place: Place) -> None:
    place.settings = place.settings.model_copy(update={"clock_skew": 600})
    evaluation = await place.wanted()
    alice, model = place.validators[0], place.model
    model.held = lambda query: query.startswith("problem 3")
    async with (
        served(create_app(place.services())) as url,
        validating(place, alice, url, ARENA_VALIDATOR_WORKERS="1") as neuron,
    ):
        while not (await asyncio.to_thread(model.arrived.get, timeout=120)).startswith("problem 3"):
            continue
        place.clock.ahead = timedelta(seconds=place.settings.lease + 30)
        await _until(neuron, "run lost")
        model.let_go.set()
        await _until(neuron, "run completed")
    states = [run.state for run in await place.queue.runs_of(evaluation.version)]
    assert states == [RunState.STALE, RunState.SUCCESS]
    asked = [query for query in model.queries if query.startswith("problem")]
    assert sorted(asked) == [f"problem {n}: find 1" for n in (0, 1, 2, 3, 3)]
    assert await place.rows("counted_records") == len(evaluation.problems)


@pytest.mark.parametrize(
    ("who", "words"),
    [("stranger", "is not registered on subnet 15"), ("miner", "has no validator permit")],
)
async def test_who_may_not_validate_is_told_in_one_line(place: Place, who: str, words: str) -> None:
    one: Validator = getattr(place, who)
    if who == "miner":
        place._wallet(one)
    process = ValidatorProcess("http://127.0.0.1:9", place.directory, place.environment(one))
    assert await asyncio.to_thread(process.end) == 1
    assert words in process.other
    assert one.hotkey in process.other
    assert "Traceback" not in process.said


async def test_two_validators_of_one_directory_are_one_too_many(place: Place) -> None:
    alice = place.validators[0]
    async with served(create_app(place.services())) as url, validating(place, alice, url) as neuron:
        await _until(neuron, "validating")
        second = ValidatorProcess(url, place.directory, place.environment(alice))
        assert await asyncio.to_thread(second.end) == 1
        assert "another validator works in" in second.other
