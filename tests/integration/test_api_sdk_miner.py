"""The published SDK, unmodified, makes every call of a miner's against a real server."""

from __future__ import annotations

from datetime import timedelta
from io import BytesIO
from pathlib import Path
from uuid import UUID, uuid4

import httpx
import pytest
from oro_sdk import BittensorAuthClient
from oro_sdk.api.miner import (
    clear_race_selection,
    delete_inference_credential,
    exchange_chutes_code,
    get_chutes_auth_status,
    get_inference_auth_status_one,
    get_owned_agent_version_status,
    list_agent_versions,
    list_inference_auth,
    list_miner_agents,
    set_default_inference_provider,
    set_race_selection,
    store_chutes_token,
    store_inference_credential,
    submit_agent,
)
from oro_sdk.api.validator import claim_work
from oro_sdk.models import (
    AgentNotFoundError,
    AgentVersionNotFoundError,
    AgentVersionState,
    AgentVersionStatus,
    BodySubmitAgent,
    ChutesAuthStatusResponse,
    ClaimWorkResponse,
    CodeAnalysisError,
    CooldownActiveError,
    ExchangeChutesCodeRequest,
    FileTooLargeError,
    InferenceAuthListResponse,
    InferenceAuthStatusResponse,
    InferenceTokenGrant,
    InvalidAgentNameError,
    InvalidFileError,
    MinerAgentsResponse,
    MinerRaceSelectionRequest,
    NoSelectionError,
    NotVersionOwnerError,
    RateLimitExceededError,
    SetDefaultProviderRequest,
    StoreChutesTokenRequest,
    StoreInferenceCredentialRequest,
    SubmissionsPausedError,
    SubmitAgentResponse,
)
from oro_sdk.types import File

from arena.api.app import create_app
from arena.api.inputs import open_evaluation
from arena.api.settings import ApiSettings
from arena.db.engine import Database
from arena.submissions.store import SubmissionStore
from arena.work.types import EvaluationKind
from tests.integration.sdk import sdk_client
from tests.unit.arena.api.world import World, problem, served

pytestmark = pytest.mark.database

KEY = "sk-secret-0123456789abcdef"


def agent(answer: str) -> bytes:
    return f"def agent_main(problem):\n    answer = {answer!r}\n    return [answer]\n".encode()


def body(source: bytes, name: str = "My agent", file: str = "agent.py") -> BodySubmitAgent:
    return BodySubmitAgent(name, File(BytesIO(source), file, "text/x-python"))


@pytest.fixture
def world(database: Database, tmp_path: Path) -> World:
    return World(database, tmp_path, ApiSettings(data_dir=tmp_path, refusals_an_hour=3))


async def _submitted(client: BittensorAuthClient, source: bytes) -> SubmitAgentResponse:
    made = await submit_agent.asyncio(client=client, body=body(source))
    assert isinstance(made, SubmitAgentResponse), made
    return made


async def _state(client: BittensorAuthClient, version: UUID) -> AgentVersionState:
    status = await get_owned_agent_version_status.asyncio(version, client=client)
    assert isinstance(status, AgentVersionStatus), status
    return status.state


async def test_a_submission_until_it_is_running(world: World) -> None:
    async with (
        served(create_app(world.services())) as url,
        sdk_client(url, world.miner) as sdk,
        sdk_client(url, world.validators[0]) as other,
    ):
        none = await list_miner_agents.asyncio(client=sdk)
        assert isinstance(none, MinerAgentsResponse)
        assert (none.agents, none.can_submit, none.next_allowed_at) == ([], True, None)

        made = await _submitted(sdk, agent("one"))
        version, agent_id = made.agent_version_id, made.agent_id
        assert isinstance(version, UUID)
        assert isinstance(agent_id, UUID)
        assert made.hotkey == world.miner.hotkey
        again = await _submitted(sdk, agent("one"))  # its answer may have been lost
        assert again.agent_version_id == version
        assert await _state(sdk, version) is AgentVersionState.RECEIVED

        mine = await list_miner_agents.asyncio(client=sdk)
        assert isinstance(mine, MinerAgentsResponse)
        assert [(a.agent_id, a.agent_name) for a in mine.agents] == [(agent_id, "My agent")]
        assert (mine.can_submit, mine.next_allowed_at) == (False, made.next_allowed_at)
        history = await list_agent_versions.asyncio(agent_id, client=sdk)
        assert isinstance(history, list)
        assert [(v.agent_version_id, v.version_number) for v in history] == [(version, 1)]

        # Somebody else's are nobody's to see.
        hidden = await get_owned_agent_version_status.asyncio(version, client=other)
        assert isinstance(hidden, AgentVersionNotFoundError)
        strange = await list_agent_versions.asyncio(agent_id, client=other)
        assert isinstance(strange, AgentNotFoundError)

        await open_evaluation(
            world.queue,
            world.inputs,
            version,
            EvaluationKind.QUALIFYING,
            None,
            name="My agent",
            source=await SubmissionStore(world.database.engine).source(version),
            problems=[problem(1)],
            suite=20261120,
            needed=1,
            at=world.clock(),
        )
        assert await _state(sdk, version) is AgentVersionState.QUEUED
        work = await claim_work.asyncio(client=other)
        assert isinstance(work, ClaimWorkResponse)
        assert work.inference_token is None
        assert await _state(sdk, version) is AgentVersionState.RUNNING


async def test_every_refusal_of_a_submission_is_one_that_the_sdk_knows(world: World) -> None:
    tables = ("agents", "agent_versions", "agent_sources", "journal")
    async with served(create_app(world.services())) as url, sdk_client(url, world.miner) as sdk:
        for name in ("../x", "x'; DROP TABLE agents; --", "a\0b", "", "n" * 101):
            bad = await submit_agent.asyncio(client=sdk, body=body(agent("x"), name))
            assert isinstance(bad, InvalidAgentNameError), name
        empty = await submit_agent.asyncio(client=sdk, body=body(b""))
        assert isinstance(empty, InvalidFileError)
        for size in (600_000, 3_000_000):  # the gate's limit, and the body's
            large = await submit_agent.asyncio(client=sdk, body=body(b"#" * size))
            assert isinstance(large, FileTooLargeError)
        assert await world.rows("refused_submissions") == 0

        hostile = body(b"import socket\n" + agent("x"), file="../../etc/<b>passwd")
        refused = await submit_agent.asyncio(client=sdk, body=hostile)
        assert isinstance(refused, CodeAnalysisError)
        assert isinstance(refused.violations, list)
        violation = refused.violations[0].to_dict()
        assert (violation["line"], violation["code"]) == (1, "module.not_allowed")
        assert violation["file"] == "<b>passwd"
        nul = await submit_agent.asyncio(client=sdk, body=body(b"\0" + agent("x")))
        assert isinstance(nul, CodeAnalysisError)
        assert [await world.rows(table) for table in tables] == [0, 0, 0, 0]

        await submit_agent.asyncio(client=sdk, body=body(b"import os\n"))
        limited = await submit_agent.asyncio(client=sdk, body=body(agent("x")))
        assert isinstance(limited, RateLimitExceededError)
        async with httpx.AsyncClient(base_url=url) as plain:
            path = "/v1/miner/refused-submissions"
            kept = (await plain.get(path, headers=world.miner.headers())).json()
        assert [one["agent_name"] for one in kept] == ["My agent"] * 3

        world.clock.ahead = timedelta(minutes=9)
    world.settings = world.settings.model_copy(update={"clock_skew": 600, "refusals_an_hour": 100})
    async with served(create_app(world.services())) as url, sdk_client(url, world.miner) as sdk:
        made = await _submitted(sdk, agent("x"))
        soon = await submit_agent.asyncio(client=sdk, body=body(agent("y")))
        assert isinstance(soon, CooldownActiveError)
        assert 0 < soon.remaining_seconds <= 12 * 3600
        assert soon.additional_properties["next_allowed_at"] is not None
        assert made.agent_version_id is not None

    world.settings = world.settings.model_copy(update={"submissions_paused": True})
    async with served(create_app(world.services())) as url, sdk_client(url, world.miner) as sdk:
        paused = await submit_agent.asyncio(client=sdk, body=body(agent("z")))
        assert isinstance(paused, SubmissionsPausedError)


async def test_what_is_no_form_is_refused(world: World) -> None:
    async with world.client() as client:
        for content, kind in (
            (b"{}", "application/json"),
            (b"", "multipart/form-data"),
            (b"--x\r\ngarbage", "multipart/form-data; boundary=x"),
            (b"a=b", "application/x-www-form-urlencoded"),
        ):
            headers = {**world.miner.headers(), "content-type": kind}
            answer = await client.post("/v1/miner/submit", content=content, headers=headers)
            assert answer.status_code == 400, (kind, answer.text)
            assert answer.json()["error_code"] in ("INVALID_FILE", "INVALID_AGENT_NAME")
    assert await world.rows("journal") == 0


async def test_a_manifest_that_is_none_is_refused(world: World) -> None:
    async with world.client() as client:
        answer = await client.post(
            "/v1/miner/submit",
            headers=world.miner.headers(),
            data={"agent_name": "a", "artefact": '{"schema": NaN}'},
            files={"file": ("a.py", agent("x"))},
        )
    assert (answer.status_code, answer.json()["error_code"]) == (400, "ARTEFACT_REFUSED")
    assert await world.rows("journal") == 0


async def test_a_race_selection_is_set_and_cleared_by_its_owner_alone(world: World) -> None:
    async with (
        served(create_app(world.services())) as url,
        sdk_client(url, world.miner) as sdk,
        sdk_client(url, world.validators[0]) as other,
    ):
        made = await _submitted(sdk, agent("one"))
        version = made.agent_version_id
        assert isinstance(version, UUID)
        assert isinstance(await clear_race_selection.asyncio(client=sdk), NoSelectionError)
        chosen = MinerRaceSelectionRequest(version)
        for which in (chosen, MinerRaceSelectionRequest(uuid4())):
            theirs = await set_race_selection.asyncio(client=other, body=which)
            assert isinstance(theirs, NotVersionOwnerError)
        set_ = await set_race_selection.asyncio_detailed(client=sdk, body=chosen)
        assert set_.status_code == 204
        mine = await list_miner_agents.asyncio(client=sdk)
        assert isinstance(mine, MinerAgentsResponse)
        assert mine.selected_agent_version_id == version
        assert (await clear_race_selection.asyncio_detailed(client=sdk)).status_code == 204
        mine = await list_miner_agents.asyncio(client=sdk)
        assert isinstance(mine, MinerAgentsResponse)
        assert mine.selected_agent_version_id is None


async def _listed(client: BittensorAuthClient) -> tuple[dict[str, bool], str | None]:
    found = await list_inference_auth.asyncio(client=client)
    assert isinstance(found, InferenceAuthListResponse)
    default = found.default_provider if isinstance(found.default_provider, str) else None
    return {one.provider: one.connected for one in found.providers}, default


async def test_credentials_are_kept_chosen_and_forgotten(world: World) -> None:
    async with served(create_app(world.services())) as url, sdk_client(url, world.miner) as sdk:
        assert await _listed(sdk) == ({"chutes": False, "openrouter": False}, None)
        for provider in ("openrouter", "chutes"):
            kept = await store_inference_credential.asyncio_detailed(
                provider, client=sdk, body=StoreInferenceCredentialRequest(f"{KEY}-{provider}")
            )
            assert kept.status_code == 200
            assert KEY.encode() not in kept.content
        assert await _listed(sdk) == ({"chutes": True, "openrouter": True}, "openrouter")
        one = await get_inference_auth_status_one.asyncio("chutes", client=sdk)
        assert isinstance(one, InferenceAuthStatusResponse)
        assert one.connected
        chutes = await get_chutes_auth_status.asyncio(client=sdk)
        assert isinstance(chutes, ChutesAuthStatusResponse)
        assert chutes.connected

        choose = SetDefaultProviderRequest("chutes")
        chosen = await set_default_inference_provider.asyncio_detailed(client=sdk, body=choose)
        assert chosen.status_code == 200
        assert (await _listed(sdk))[1] == "chutes"
        gone = await delete_inference_credential.asyncio_detailed("chutes", client=sdk)
        assert gone.status_code == 200
        assert await _listed(sdk) == ({"chutes": False, "openrouter": True}, "openrouter")
        again = await delete_inference_credential.asyncio_detailed("chutes", client=sdk)
        assert again.status_code == 404

        for provider, key in (("evil", KEY), ("chutes", "two words"), ("chutes", "a\r\nHost: x")):
            bad = await store_inference_credential.asyncio_detailed(
                provider, client=sdk, body=StoreInferenceCredentialRequest(key)
            )
            assert (bad.status_code, key.encode() in bad.content) == (400, False)
        for answer in (
            await store_chutes_token.asyncio_detailed(
                client=sdk, body=StoreChutesTokenRequest(KEY)
            ),
            await exchange_chutes_code.asyncio_detailed(
                client=sdk, body=ExchangeChutesCodeRequest("c", KEY, "http://x")
            ),
        ):
            assert answer.status_code == 404
            assert b"NOT_OFFERED" in answer.content
    assert await world.rows("inference_credentials") == 1


async def test_a_credential_is_handed_to_the_run_that_needs_it_and_to_no_other(
    world: World,
) -> None:
    alice, bob = world.validators
    async with (
        served(create_app(world.services())) as url,
        sdk_client(url, world.miner) as miner,
        sdk_client(url, alice) as first,
        sdk_client(url, bob) as second,
    ):
        made = await _submitted(miner, agent("mine"))
        others = await _submitted(second, agent("bob's"))
        await store_inference_credential.asyncio(
            "chutes", client=miner, body=StoreInferenceCredentialRequest(KEY)
        )
        store = SubmissionStore(world.database.engine)
        for number, version in enumerate((made.agent_version_id, others.agent_version_id)):
            assert isinstance(version, UUID)
            await open_evaluation(
                world.queue,
                world.inputs,
                version,
                EvaluationKind.QUALIFYING,
                None,
                name="a",
                source=await store.source(version),
                problems=[problem(1)],
                suite=1,
                needed=1,
                at=world.clock() + timedelta(milliseconds=number),
            )
        work = await claim_work.asyncio(client=first)
        assert isinstance(work, ClaimWorkResponse)
        assert work.agent_version_id == made.agent_version_id
        grant = work.inference_token
        assert isinstance(grant, InferenceTokenGrant)
        assert (grant.access_token, grant.provider.value) == (KEY, "chutes")
        assert grant.base_url.startswith("https://")
        theirs = await claim_work.asyncio(client=second)
        assert isinstance(theirs, ClaimWorkResponse)
        assert theirs.agent_version_id == others.agent_version_id
        assert theirs.inference_token is None
