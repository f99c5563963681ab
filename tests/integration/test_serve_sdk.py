"""`oro-sdk` as it is published takes a submission through its whole life at `arena serve`.

The arena is the process that operators start, with its calendar; miner and validator are the
SDK's calls and nothing else, but for the records, which the SDK does not know.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import httpx
import pytest
from oro_sdk import BittensorAuthClient, Client
from oro_sdk.api.auth import create_session_endpoint, request_challenge
from oro_sdk.api.miner import get_owned_agent_version_status, submit_agent
from oro_sdk.api.public import get_leaderboard, get_race_detail, get_race_history, get_top_agent
from oro_sdk.api.validator import (
    claim_work,
    complete_run,
    get_run_problems,
    get_weight_salt,
    heartbeat,
    presign_upload,
    update_progress,
)
from oro_sdk.models import (
    AgentVersionState,
    AgentVersionStatus,
    BodySubmitAgent,
    ChallengeRequest,
    ChallengeResponse,
    ClaimWorkResponse,
    CompleteRunRequest,
    CompleteRunResponse,
    HeartbeatResponse,
    LeaderboardResponse,
    PresignUploadRequest,
    PresignUploadResponse,
    ProblemProgressUpdate,
    ProblemStatus,
    ProgressUpdateRequest,
    ProgressUpdateResponse,
    RaceDetailResponse,
    RaceHistoryResponse,
    RunProblemsResponse,
    SessionRequest,
    SessionResponse,
    SubmitAgentResponse,
    TerminalStatus,
    TopAgentResponse,
    WeightSaltResponse,
)
from oro_sdk.types import File

from arena.db.engine import open_database
from arena.db.journal import PostgresJournal
from arena.runs.record import AgentRef, RunRecord
from arena.season.beacon import Source
from arena.season.rules import SeasonRules
from arena.settings import ArenaSettings
from neurons.demo import watching
from neurons.demo.bank import grow_bank
from neurons.demo.network import Network
from sandbox.catalog import open_catalog
from sandbox.catalog.generate import write_world
from scoring.attempt import read_attempt
from scoring.outcome import score
from scoring.reading import read_problem
from scoring.types import Bucket, Problem, Product
from tests.integration.sdk import sdk_client
from tests.unit.arena import builders
from tests.unit.arena.api.world import GATE, Validator, frames

pytestmark = pytest.mark.database
T = TypeVar("T")

SOURCE = b"def agent_main(problem):\n    return [problem]\n"
RULES = SeasonRules(
    quota={Bucket.PRODUCT: 2},
    validators=1,
    quorum=1,
    minimum_qualifying_hours=0,
    beacon=Source.STANDIN,
    beacon_delay_seconds=0,
)
SETTINGS = {
    "ARENA_CONDUCTOR_EVERY": "0.5",
    "ARENA_CONDUCTOR_CHAIN_EVERY": "1",
    "ARENA_CONDUCTOR_QUALIFYING_PROBLEMS": "1",
    "ARENA_API_METAGRAPH_REFRESH": "2",
}


@pytest.fixture
def home() -> Iterator[Path]:
    """A short path: a database's socket lies in it."""
    directory = Path(tempfile.mkdtemp(prefix="sdk-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@asynccontextmanager
async def arena(home: Path, validator: Validator, miner: Validator) -> AsyncIterator[Network]:
    """An arena that was just started, and opens no race yet."""
    world = home / "world.jsonl.gz"
    write_world(600, 15, world)
    network = Network(home, world, SETTINGS)
    async with open_database(ArenaSettings(data_dir=network.data, database_url=None)) as database:
        await database.ready()
        journal, at = PostgresJournal(database.engine), datetime.now(UTC) - timedelta(hours=1)
        await grow_bank(journal, open_catalog(world), raced=6, opened=3, seed=7, at=at)
    network.begin_chain()
    network.register(validator.hotkey, validates=True)
    network.register(miner.hotkey)
    rules = str(network.write_rules(RULES))
    try:
        network.start_arena(ARENA_CONDUCTOR_RULES=rules, ARENA_CONDUCTOR_OPENS_RACES="false")
        yield network
    finally:
        network.stop()


def _open_a_race(network: Network) -> None:
    """Start the arena anew, by rules under which qualifying soon closes."""
    before = network.members["arena"]
    before.end()
    rules = watching.closing_soon(RULES, datetime.now(UTC), before.ready_s)
    network.start_arena(ARENA_CONDUCTOR_RULES=str(network.write_rules(rules)))


async def test_a_submission_lives_from_its_challenge_to_its_race(home: Path) -> None:
    alice, charlie = Validator("//Alice"), Validator("//Charlie")
    async with (
        arena(home, alice, charlie) as network,
        sdk_client(url := network.url, charlie) as miner,
        sdk_client(url, alice) as validator,
        Client(base_url=url) as public,
    ):
        await _session(public, charlie)
        body = BodySubmitAgent("My agent", File(BytesIO(SOURCE), "agent.py", "text/x-python"))
        made = await submit_agent.asyncio(client=miner, body=body)
        assert isinstance(made, SubmitAgentResponse), made
        version = made.agent_version_id
        assert isinstance(version, UUID)

        assert await _run(url, validator, alice, version) == "qualifying"
        await _until(lambda: _state(miner, version, AgentVersionState.ELIGIBLE))
        await asyncio.to_thread(_open_a_race, network)
        assert await _run(url, validator, alice, version) == "race"

        over = await _until(lambda: _race_over(public))
        (race,) = over.races
        assert race.winner_agent_name == "My agent"
        board = await get_leaderboard.asyncio(client=public)
        assert isinstance(board, LeaderboardResponse)
        assert [entry.agent_version_id for entry in board.entries] == [version]
        top = await get_top_agent.asyncio(client=public)
        assert isinstance(top, TopAgentResponse)
        assert (top.top_agent_version_id, top.top_miner_hotkey) == (version, charlie.hotkey)
        detail = await get_race_detail.asyncio(race.race_id, client=public)
        assert isinstance(detail, RaceDetailResponse)
        assert isinstance(detail.qualifiers, list)
        assert [(q.agent_name, q.race_rank) for q in detail.qualifiers] == [("My agent", 1)]
        salt = await get_weight_salt.asyncio(client=validator)
        assert isinstance(salt, WeightSaltResponse)
        assert salt.epoch_standings is not None


async def _session(public: Client, who: Validator) -> None:
    challenge = await request_challenge.asyncio(client=public, body=ChallengeRequest(who.hotkey))
    assert isinstance(challenge, ChallengeResponse)
    signature = who.pair.sign(challenge.challenge.encode()).hex()
    session = await create_session_endpoint.asyncio(
        client=public, body=SessionRequest(who.hotkey, challenge.challenge, signature)
    )
    assert isinstance(session, SessionResponse)
    assert session.role == "miner"


async def _run(url: str, sdk: BittensorAuthClient, who: Validator, version: UUID) -> str:
    """Claim a run, do all that a validator does, and end it. Its phase."""
    work = await _until(lambda: _claim(sdk))
    assert work.agent_version_id == version
    run = work.eval_run_id
    given = await get_run_problems.asyncio(run, client=sdk)
    assert isinstance(given, RunProblemsResponse)
    assert isinstance(await heartbeat.asyncio(run, client=sdk), HeartbeatResponse)
    first = given.problems[0].problem_id
    told = ProgressUpdateRequest([ProblemProgressUpdate(first, ProblemStatus.RUNNING)])
    progress = await update_progress.asyncio(run, client=sdk, body=told)
    assert isinstance(progress, ProgressUpdateResponse)
    log = b'{"log": "it ran"}'
    leave = await presign_upload.asyncio(
        client=sdk, body=PresignUploadRequest(len(log), run, first)
    )
    assert isinstance(leave, PresignUploadResponse)
    problems = [read_problem(problem.to_dict()["metadata"]) for problem in given.problems]
    body = frames([who.seal(_record(work, problem).encode()) for problem in problems])
    async with httpx.AsyncClient(base_url=url) as plain:
        assert (await plain.put(leave.upload_url, content=log)).status_code == 204
        answer = await plain.post("/v1/validator/records", content=body, headers=who.headers())
        assert answer.status_code == 200, answer.text
    done = await complete_run.asyncio(
        run, client=sdk, body=CompleteRunRequest(TerminalStatus.SUCCESS)
    )
    assert isinstance(done, CompleteRunResponse), done
    return str(work["phase"])


def _record(work: ClaimWorkResponse, problem: Problem) -> RunRecord:
    """What a validator writes of a run that recommended what was asked for."""
    wanted = [reward.product_id for reward in problem.rewards]
    calls = [
        {"name": "recommend_product", "parameters": {"product_ids": ",".join(wanted)}},
        {"name": "terminate", "parameters": {"status": "success"}},
    ]
    attempt = read_attempt([{"completion": {"message": {"tool_call": calls}}}])
    products = {name: Product(name, "shop", "a product", 5.0) for name in wanted}
    outcome = score(problem, attempt, products)
    assert outcome.success
    made = builders.record(problem, race_id=str(work["evaluation_id"]), gate=GATE)
    return replace(
        made,
        run_id=f"{work.eval_run_id}-{problem.problem_id}",
        agent=AgentRef(
            str(work.agent_version_id),
            str(work["agent_name"]),
            hashlib.sha256(SOURCE).hexdigest(),
            str(work.agent_version_id),
        ),
        phase=str(work["phase"]),
        outcome=outcome.to_json(),
        **builders.judged(GATE, success=True),
    )


async def _claim(sdk: BittensorAuthClient) -> ClaimWorkResponse | None:
    work = await claim_work.asyncio(client=sdk)
    return work if isinstance(work, ClaimWorkResponse) else None


async def _state(
    sdk: BittensorAuthClient, version: UUID, wanted: AgentVersionState
) -> AgentVersionState | None:
    status = await get_owned_agent_version_status.asyncio(version, client=sdk)
    assert isinstance(status, AgentVersionStatus), status
    return wanted if status.state is wanted else None


async def _race_over(public: Client) -> RaceHistoryResponse | None:
    history = await get_race_history.asyncio(client=public)
    assert isinstance(history, RaceHistoryResponse)
    return history if any(race.winner_agent_name for race in history.races) else None


async def _until(look: Callable[[], Awaitable[T | None]]) -> T:
    """What `look` finds, once the calendar has got so far."""
    async with asyncio.timeout(180):
        while (found := await look()) is None:  # noqa: ASYNC110 - another process's doing
            await asyncio.sleep(0.5)
    return found
