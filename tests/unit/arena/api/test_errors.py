"""Refusals are in the shapes that the SDK reads, with a status that it expects."""

from __future__ import annotations

import inspect
import pkgutil
import re
from importlib import import_module
from typing import get_args

import httpx
import oro_sdk.api.miner
import oro_sdk.api.public
import oro_sdk.api.validator
import pytest
from bittensor_auth import AuthErrorCode
from fastapi import APIRouter
from oro_sdk import OroErrorCode
from sqlalchemy.exc import OperationalError

from arena.api.app import create_app
from arena.api.errors import STATUS, Code, Refusal
from arena.api.routes import ROUTERS
from arena.exceptions import ArenaError, DatabaseError, DatabaseUnreachableError, Fault
from tests.unit.arena.api.world import World

SECRET = "postgresql://arena:hunter2@db.internal/arena"


def test_every_code_has_a_status_and_the_sdks_are_all_there() -> None:
    assert set(STATUS) == set(Code)
    assert set(get_args(OroErrorCode)) <= {code.value for code in Code}
    assert {code.code for code in AuthErrorCode} <= {code.value for code in Code}


# One code with two statuses: a route of a miner's says the other one itself.
ELSEWHERE = {("submit_agent", "FILE_TOO_LARGE"): 413, ("submit_agent", "NO_ACTIVE_SUITE"): 503}


@pytest.mark.parametrize(
    "module",
    [
        module.name
        for group in (oro_sdk.api.miner, oro_sdk.api.public, oro_sdk.api.validator)
        for module in pkgutil.iter_modules(group.__path__, f"{group.__name__}.")
    ],
)
def test_the_sdk_expects_these_codes_with_this_status(module: str) -> None:
    """Its parser names an error class for each status: the codes of those are ours."""
    source = inspect.getsource(import_module(module)._parse_response)
    name_of_call = module.rpartition(".")[2]
    for block in source.split("if response.status_code == ")[1:]:
        status = int(block[:3])
        for name in re.findall(r"(\w+)Error\.from_dict", block):
            code = re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()
            code = {"VALIDATION_ERROR": "VALIDATION_ERROR", "H_T_T_P_VALIDATION": ""}.get(
                code, code
            )
            if code in set(Code):
                ours = ELSEWHERE.get((name_of_call, code), STATUS[Code(code)])
                assert ours == status, (module, code)


def _raising(error: Exception) -> APIRouter:
    router = APIRouter()

    @router.get("/raise")
    async def fail() -> None:
        raise error

    return router


async def _answer(world: World, error: Exception) -> httpx.Response:
    app = create_app(world.services(), [*ROUTERS, _raising(error)])
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://arena.test") as client:
        return await client.get("/raise")


@pytest.mark.database
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Refusal(Code.RACE_LOCKED, "locked"), 409, "RACE_LOCKED"),
        (ArenaError("mend it", code="season.refused", fault=Fault.CALLER), 400, "SEASON_REFUSED"),
        (ArenaError("bad", code="agent.bad", fault=Fault.AGENT), 400, "AGENT_BAD"),
        (DatabaseUnreachableError(SECRET), 503, "SERVICE_UNAVAILABLE"),
        (DatabaseError(SECRET), 503, "SERVICE_UNAVAILABLE"),
        (ArenaError(SECRET, fault=Fault.VALIDATOR), 503, "SERVICE_UNAVAILABLE"),
        (OperationalError(SECRET, {}, ConnectionRefusedError(SECRET)), 503, "SERVICE_UNAVAILABLE"),
        (OperationalError(SECRET, {}, ValueError(SECRET)), 500, "INTERNAL_ERROR"),
        (TimeoutError(SECRET), 503, "SERVICE_UNAVAILABLE"),
        (RuntimeError(SECRET), 500, "INTERNAL_ERROR"),
    ],
)
async def test_whatever_is_raised_is_an_answer_without_secrets(
    world: World, error: Exception, status: int, code: str
) -> None:
    answer = await _answer(world, error)
    assert (answer.status_code, answer.json()["error_code"]) == (status, code)
    assert "hunter2" not in answer.text
    assert "Traceback" not in answer.text
    assert ("retry-after" in answer.headers) == (status == 503)


@pytest.mark.database
async def test_unknown_paths_methods_and_bodies_are_refusals(world: World) -> None:
    async with world.client() as client:
        for method, path, status, code in (
            ("GET", "/v1/nothing", 404, "NOT_FOUND"),
            ("GET", "/../../etc/passwd", 404, "NOT_FOUND"),
            ("DELETE", "/health", 405, "METHOD_NOT_ALLOWED"),
        ):
            answer = await client.request(method, path)
            assert (answer.status_code, answer.json()["error_code"]) == (status, code)
        invalid = await client.post("/v1/auth/challenge", json={"hotkey": 1, "x": "\x00" * 99})
        assert invalid.status_code == 422
        assert [set(one) for one in invalid.json()["detail"]] == [{"loc", "msg", "type"}]
        deep = await client.post(
            "/v1/auth/challenge",
            content="[" * 100_000,
            headers={"content-type": "application/json"},
        )
        assert deep.status_code in (400, 422)


@pytest.mark.database
async def test_only_the_health_that_asks_nobody_has_no_limit(world: World) -> None:
    limits = {"address_rate": 0.001, "address_burst": 1.0}
    world.settings = world.settings.model_copy(update=limits)
    async with world.client() as client:
        first = [(await client.get(path)).status_code for path in ("/health/deep", "/healthy")]
        assert first == [200, 429]
        assert (await client.get("/health/deep")).status_code == 429
        for path in ("/health", "/metrics", "/health"):
            assert (await client.get(path)).status_code == 200


async def test_every_answer_has_a_request_id(world: World) -> None:
    async with world.client() as client:
        mine = await client.get("/health", headers={"x-request-id": "abc-1"})
        assert mine.headers["x-request-id"] == "abc-1"
        hostile = await client.get("/health", headers={"x-request-id": "a b\t" * 100})
        assert re.fullmatch(r"[0-9a-f]{32}", hostile.headers["x-request-id"])
