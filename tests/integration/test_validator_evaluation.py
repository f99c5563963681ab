"""One claimed run in this process, against the real API, sandbox and judge: what goes wrong,
whose fault it is, and what is never said."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from arena.client.validator import Claim, InferenceCredential, ValidatorClient
from arena.db.engine import Database
from arena.runs.attempts import RetryPolicy
from arena.runs.frames import read_spool
from arena.runs.ledger import Ledger
from arena.runs.opening import SandboxKind, WorldOptions, open_world
from arena.runs.spool import FILE_NAME
from arena.work.types import Evaluation as Wanted
from arena.work.types import RunState
from neurons.validating.evaluation import Ending, Evaluation, Stop, Workshop
from neurons.validating.heartbeat import Heart
from neurons.validating.metrics import Metrics
from neurons.validating.spending import Spending
from scoring.exceptions import Fault
from tests.integration.racing import ModelServer, model_server
from tests.integration.validating import Place
from tests.isolations import open_or_skip
from tests.unit.neurons.validating.wire import Time, arena

pytestmark = [pytest.mark.isolation, pytest.mark.database]

TOKEN = "sk-miner-own-and-secret"


@pytest.fixture(autouse=True)
async def sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    await (await open_or_skip("bubblewrap")).close()
    monkeypatch.setenv("ARENA_JUDGE_MODELS", "oracle")
    monkeypatch.setenv("ARENA_JUDGE_TRIES", "1")
    monkeypatch.setenv("ARENA_JUDGE_BACKOFF_S", "0.01")


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with model_server() as running:
        running.tokens = 40
        yield running


@pytest.fixture
def place(database: Database, tmp_path: Path, model: ModelServer) -> Place:
    return Place(database, tmp_path, model)


@asynccontextmanager
async def workshop(place: Place) -> AsyncIterator[Workshop]:
    """All that a run needs, with a clock that only sleeping moves."""
    alice, time = place.validators[0].signer, Time(place.clock())
    place.clock = time  # type: ignore[assignment]
    root = place.directory / "data" / "validator"
    await asyncio.to_thread(root.mkdir, parents=True)
    options = WorldOptions(
        place.directory / "catalog.jsonl",
        place.model.url,
        sandbox=SandboxKind.BUBBLEWRAP,
        judge=True,
    )
    async with (
        arena(place, alice, time) as client,
        open_world(options, lambda line: None) as opened,
    ):
        yield Workshop(
            client=client,
            opened=opened,
            ledger=Ledger(root.parent / "ledger", alice, now=time),
            heart=Heart(),
            spending=Spending(root, 1.0, time),
            metrics=Metrics(),
            root=root,
            policy=RetryPolicy(attempts=1, pause_s=0.0),
            workers=2,
            sleep=time.sleep,
            progress_s=1e6,
        )


async def claimed(client: ValidatorClient) -> Claim:
    claim = await client.claim([])
    assert claim is not None
    return claim


async def ended(place: Place, wanted: Wanted) -> tuple[RunState, Fault | None, str]:
    """How the last run stands at the arena."""
    run = (await place.queue.runs_of(wanted.version))[-1]
    failure = run.failure
    return run.state, failure.fault if failure else None, failure.message if failure else ""


def written(directory: Path) -> bytes:
    """Everything a validator has written, unpacked."""
    found = b""
    for path in sorted(directory.rglob("*")):
        if path.name == FILE_NAME:
            for frame in read_spool(path):
                found += frame.content.record.content
        elif path.is_file():
            found += path.read_bytes()
    return found


async def test_a_lent_credential_is_used_and_stands_nowhere(place: Place) -> None:
    await place.wanted()
    async with workshop(place) as shop:
        claim = await claimed(shop.client)
        lent = InferenceCredential("127", SecretStr(TOKEN), place.model.url)
        with capture_logs() as logs:
            ending = await Evaluation(shop, replace(claim, credential=lent)).run()
        assert ending is Ending.SUCCESS
    keys = place.model.keys
    asked = [key for key in keys if key == f"Bearer {TOKEN}"]
    assert len(asked) == len(place.problems)  # the agents' calls, and none of the judge's
    assert len(keys) == 2 * len(place.problems)
    data = await asyncio.to_thread(written, place.directory)
    assert TOKEN.encode() not in data
    assert TOKEN not in repr(logs)
    assert b"agent" in data


async def test_a_provider_that_is_down_is_no_agents_failure(place: Place) -> None:
    wanted = await place.wanted(problems=1)
    place.model.status = 500
    async with workshop(place) as shop:
        assert await Evaluation(shop, await claimed(shop.client)).run() is Ending.FAILED
    state, fault, said = await ended(place, wanted)
    assert (state, fault) == (RunState.FAILED, Fault.VALIDATOR)
    assert "1 of 1 problems have no outcome" in said
    assert await place.rows("records") == 1  # open attempts are kept, too
    assert await place.rows("counted_records") == 0


async def test_without_verdicts_nothing_is_completed_and_later_they_are_made_up(
    place: Place,
) -> None:
    wanted = await place.wanted(problems=1)
    place.model.judge_status = 500
    async with workshop(place) as shop:
        assert await Evaluation(shop, await claimed(shop.client)).run() is Ending.FAILED
        state, _, said = await ended(place, wanted)
        assert state is RunState.FAILED
        assert "unjudged" in said
        asked = len(place.model.queries)
        place.model.judge_status = 200
        await shop.sleep(120)  # after a failure others come first for a minute
        assert await Evaluation(shop, await claimed(shop.client)).run() is Ending.SUCCESS
    assert len(place.model.queries) == asked  # no agent ran twice
    assert (await ended(place, wanted))[0] is RunState.SUCCESS
    assert await place.rows("verdicts") == len(wanted.problems)


async def test_another_file_than_the_one_claimed_is_not_run(place: Place) -> None:
    wanted = await place.wanted()
    async with workshop(place) as shop:
        claim = await claimed(shop.client)
        other = replace(claim, source_hash=hashlib.sha256(b"other").hexdigest())
        assert await Evaluation(shop, other).run() is Ending.FAILED
    assert "and " in (await ended(place, wanted))[2]
    assert place.model.queries == []


async def test_a_catalogue_that_lacks_the_rewards_gives_the_run_back(place: Place) -> None:
    def unknown(problem: Any) -> Any:
        rewards = tuple(replace(reward, product_id="99999") for reward in problem.rewards)
        return replace(problem, rewards=rewards)

    wanted = await place.wanted(problems=1, changed=unknown)
    async with workshop(place) as shop:
        assert await Evaluation(shop, await claimed(shop.client)).run() is Ending.FAILED
    state, fault, said = await ended(place, wanted)
    assert (state, fault) == (RunState.FAILED, Fault.VALIDATOR)
    assert "the catalogue lacks rewarded products" in said
    assert place.model.queries == []


async def test_stopped_it_keeps_what_is_done_and_says_what_it_is_told_to(place: Place) -> None:
    wanted = await place.wanted()
    place.model.held = lambda query: query.startswith("problem 2")
    async with workshop(place) as shop:
        run = Evaluation(replace_workers(shop), await claimed(shop.client))
        task = asyncio.create_task(run.run())
        while not (await asyncio.to_thread(place.model.arrived.get, timeout=60)).startswith(
            "problem 2"
        ):
            continue
        run.stop(Stop.RETURN)
        assert await task is Ending.RETURNED
    assert (await ended(place, wanted))[0] is RunState.FAILED
    assert await place.rows("counted_records") == 2


def replace_workers(shop: Workshop) -> Workshop:
    return replace(shop, workers=1)
