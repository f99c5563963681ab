"""The published SDK, unmodified, drives the API over a real server and a real database."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import httpx
import pytest
from oro_sdk import BittensorAuthClient, Client
from oro_sdk.api.auth import create_session_endpoint, logout, request_challenge
from oro_sdk.api.public import deep_health_check, health_check
from oro_sdk.api.validator import (
    claim_work,
    complete_run,
    get_pack,
    get_race_pack,
    get_run_problems,
    get_weight_salt,
    heartbeat,
    presign_upload,
    update_progress,
)
from oro_sdk.models import (
    AtCapacityError,
    ChallengeRequest,
    ChallengeResponse,
    ClaimWorkResponse,
    CompleteRunRequest,
    CompleteRunResponse,
    EnvPackErrorResponse,
    EvalRunNotFoundError,
    FileTooLargeError,
    HeartbeatResponse,
    InvalidProblemIdError,
    LeaseExpiredError,
    LogoutResponse,
    MissingScoreError,
    NotRunOwnerError,
    PresignUploadRequest,
    PresignUploadResponse,
    ProblemNotFoundError,
    ProblemProgressUpdate,
    ProblemPublicMetadata,
    ProblemStatus,
    ProgressUpdateRequest,
    ProgressUpdateResponse,
    RunAlreadyCompleteError,
    RunProblemsResponse,
    SessionRequest,
    SessionResponse,
    TerminalStatus,
    WeightSaltResponse,
)

from arena.api.app import create_app
from arena.api.settings import ApiSettings
from arena.db.engine import Database
from arena.work.types import Evaluation
from tests.integration.sdk import sdk_client
from tests.unit.arena.api.world import SOURCE, Validator, World, frames, served

pytestmark = pytest.mark.database


@pytest.fixture
def world(database: Database, tmp_path: Path) -> World:
    return World(database, tmp_path, ApiSettings(data_dir=tmp_path))


async def _claimed(client: BittensorAuthClient) -> ClaimWorkResponse:
    work = await claim_work.asyncio(client=client)
    assert isinstance(work, ClaimWorkResponse), work
    return work


def _success() -> CompleteRunRequest:
    return CompleteRunRequest(terminal_status=TerminalStatus.SUCCESS, validator_score=0.5)


async def _upload_all(
    url: str, world: World, who: Validator, name: str, evaluation: Evaluation
) -> None:
    numbers = range(1, len(evaluation.problems) + 1)
    body = frames([who.seal(world.record(evaluation, n, name).encode()) for n in numbers])
    async with httpx.AsyncClient(base_url=url) as plain:
        answer = await plain.post("/v1/validator/records", content=body, headers=who.headers())
    assert answer.status_code == 200, answer.text


async def test_a_run_from_challenge_to_completion(world: World) -> None:
    evaluation = await world.open(problems=2, needed=1)
    alice = world.validators[0]
    async with served(create_app(world.services())) as url, sdk_client(url, alice) as sdk:
        await _session(url, alice)
        work = await _claimed(sdk)
        assert work.agent_version_id == evaluation.version
        assert work["evaluation_id"] == str(evaluation.evaluation_id)
        run = work.eval_run_id
        async with httpx.AsyncClient() as plain:
            code = await plain.get(work.code_download_url)
            assert code.content == SOURCE

        given = await get_run_problems.asyncio(run, client=sdk)
        assert isinstance(given, RunProblemsResponse)
        assert [str(p.problem_id) for p in given.problems] == list(evaluation.problems)
        metadata = given.problems[0].metadata
        assert isinstance(metadata, ProblemPublicMetadata)
        assert metadata["reward"]["product_id"] == "1"

        alive = await heartbeat.asyncio(run, client=sdk)
        assert isinstance(alive, HeartbeatResponse)
        assert alive.lease_expires_at >= work.lease_expires_at

        told = ProblemProgressUpdate(given.problems[0].problem_id, ProblemStatus.RUNNING, score=0.5)
        progress = await update_progress.asyncio(
            run, client=sdk, body=ProgressUpdateRequest([told])
        )
        assert isinstance(progress, ProgressUpdateResponse)

        early = await complete_run.asyncio(run, client=sdk, body=_success())
        assert isinstance(early, MissingScoreError)
        await _leave_a_file(sdk, run, given.problems[0].problem_id, world)
        await _upload_all(url, world, alice, "alice", evaluation)

        for _ in range(2):  # its answer may have been lost
            done = await complete_run.asyncio(run, client=sdk, body=_success())
            assert isinstance(done, CompleteRunResponse)
            assert (done.status, done.work_item.is_closed) == ("SUCCESS", True)
        failed = CompleteRunRequest(TerminalStatus.FAILED, failure_reason="no")
        other = await complete_run.asyncio(run, client=sdk, body=failed)
        assert isinstance(other, RunAlreadyCompleteError)

        nothing = await claim_work.asyncio_detailed(client=sdk)
        assert nothing.status_code == 204
        salt = await get_weight_salt.asyncio(client=sdk)
        assert isinstance(salt, WeightSaltResponse)
        assert salt.eligible
        assert salt.epoch_standings is None


async def _session(url: str, who: Validator) -> None:
    async with Client(base_url=url) as client:
        challenge = await request_challenge.asyncio(
            client=client, body=ChallengeRequest(who.hotkey)
        )
        assert isinstance(challenge, ChallengeResponse)
        signature = who.pair.sign(challenge.challenge.encode()).hex()
        session = await create_session_endpoint.asyncio(
            client=client, body=SessionRequest(who.hotkey, challenge.challenge, signature)
        )
        assert isinstance(session, SessionResponse)
        assert session.role == "validator"
        bearer = f"Bearer {session.session_token}"
        ended = await logout.asyncio(client=client, authorization=bearer)
        assert isinstance(ended, LogoutResponse)
        assert ended.success
        assert (await health_check.asyncio(client=client)) is not None
        assert (await deep_health_check.asyncio_detailed(client=client)).status_code == 200


async def _leave_a_file(sdk: BittensorAuthClient, run: UUID, problem: UUID, world: World) -> None:
    body = b'{"log": "x"}'
    leave = await presign_upload.asyncio(
        client=sdk, body=PresignUploadRequest(len(body), run, problem)
    )
    assert isinstance(leave, PresignUploadResponse)
    async with httpx.AsyncClient() as plain:
        assert (await plain.put(leave.upload_url, content=body)).status_code == 204
    assert (world.directory / "objects" / leave.results_s3_key).read_bytes() == body


async def test_every_refusal_of_a_run_is_one_that_the_sdk_knows(world: World) -> None:
    world.settings = world.settings.model_copy(update={"clock_skew": 600})  # the clock goes on
    evaluation = await world.open(problems=1, needed=2)
    alice, bob = world.validators
    async with (
        served(create_app(world.services())) as url,
        sdk_client(url, alice) as mine,
        sdk_client(url, bob) as other,
    ):
        run = (await _claimed(mine)).eval_run_id
        problem = UUID(evaluation.problems[0])
        progress = ProgressUpdateRequest([ProblemProgressUpdate(problem, ProblemStatus.RUNNING)])
        upload = PresignUploadRequest(10, run, problem)

        assert isinstance(await heartbeat.asyncio(uuid4(), client=mine), EvalRunNotFoundError)
        unknown = await get_run_problems.asyncio(uuid4(), client=mine)
        assert isinstance(unknown, EvalRunNotFoundError)
        assert (await get_run_problems.asyncio_detailed(run, client=other)).status_code == 409
        for answer in (
            await heartbeat.asyncio(run, client=other),
            await update_progress.asyncio(run, client=other, body=progress),
            await complete_run.asyncio(run, client=other, body=_success()),
            await presign_upload.asyncio(client=other, body=upload),
        ):
            assert isinstance(answer, NotRunOwnerError)

        strange = ProgressUpdateRequest([ProblemProgressUpdate(uuid4(), ProblemStatus.RUNNING)])
        said = await update_progress.asyncio(run, client=mine, body=strange)
        assert isinstance(said, InvalidProblemIdError)
        nowhere = PresignUploadRequest(10, run, uuid4())
        assert isinstance(
            await presign_upload.asyncio(client=mine, body=nowhere), ProblemNotFoundError
        )
        huge = PresignUploadRequest(2**40, run, problem)
        assert isinstance(await presign_upload.asyncio(client=mine, body=huge), FileTooLargeError)
        assert isinstance(await get_pack.asyncio("ab" * 32, client=mine), EnvPackErrorResponse)
        assert isinstance(await get_race_pack.asyncio(uuid4(), client=mine), EnvPackErrorResponse)

        await heartbeat.asyncio(run, client=mine)  # it works on it
        assert isinstance(await claim_work.asyncio(client=mine), AtCapacityError)

        world.clock.ahead = timedelta(seconds=world.settings.lease + 30)
        assert isinstance(await heartbeat.asyncio(run, client=mine), LeaseExpiredError)
        # Where the SDK knows no expired lease, the run is not the caller's any more.
        for late in (
            await update_progress.asyncio(run, client=mine, body=progress),
            await complete_run.asyncio(
                run, client=mine, body=CompleteRunRequest(TerminalStatus.FAILED)
            ),
            await presign_upload.asyncio(client=mine, body=upload),
        ):
            assert isinstance(late, NotRunOwnerError), late


async def test_two_processes_give_the_last_seat_once(world: World) -> None:
    await world.open(problems=1, needed=1)
    async with (
        served(create_app(world.services())) as one,
        served(create_app(world.services())) as two,
        sdk_client(one, world.validators[0]) as alice,
        sdk_client(two, world.validators[1]) as bob,
    ):
        answers = await asyncio.gather(
            claim_work.asyncio_detailed(client=alice), claim_work.asyncio_detailed(client=bob)
        )
    assert sorted(int(answer.status_code) for answer in answers) == [200, 204]
