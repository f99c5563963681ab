"""No secret stands in any table in the clear, in no log line, and in no answer but one."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import httpx
import pytest
import zstandard
from cryptography.fernet import Fernet
from fastapi import APIRouter
from sqlalchemy import text

from arena.api.app import create_app
from arena.api.inputs import open_evaluation
from arena.api.routes import ROUTERS
from arena.api.settings import ApiSettings
from arena.db.engine import Database
from arena.db.schema import metadata
from arena.secrets import SecretBox
from arena.work.types import EvaluationKind
from tests.unit.arena.api.world import Validator, World, problem, served

pytestmark = pytest.mark.database

KEY = "sk-live-7f3d9a1c0b5e4d28"
REFUSED = "sk live with spaces 91ab"
AGENT = b"def agent_main(problem):\n    return ['mine']\n"


@pytest.fixture
def world(database: Database, tmp_path: Path) -> World:
    return World(database, tmp_path, ApiSettings(data_dir=tmp_path))


def spelled(secret: bytes) -> Iterator[bytes]:
    """A secret as it may stand somewhere without being sealed."""
    yield secret
    yield secret.hex().encode()
    yield base64.b64encode(secret).rstrip(b"=")
    yield base64.urlsafe_b64encode(secret).rstrip(b"=")


async def everything(database: Database) -> bytes:
    """All that all tables hold, what is packed unpacked."""
    found: list[bytes] = []
    async with database.owner.connect() as connection:
        for table in metadata.sorted_tables:
            for row in await connection.execute(text(f"SELECT * FROM {table.name}")):
                for value in row:
                    raw = bytes(value) if isinstance(value, bytes) else str(value).encode()
                    found.append(raw)
                    if raw.startswith(zstandard.FRAME_HEADER):
                        found.append(zstandard.decompress(raw))
    return b"\n".join(found)


async def session(client: httpx.AsyncClient, who: Validator) -> str:
    asked = await client.post("/v1/auth/challenge", json={"hotkey": who.hotkey})
    challenge = asked.json()["challenge"]
    signed = {"hotkey": who.hotkey, "challenge": challenge}
    signed["signature"] = who.pair.sign(challenge.encode()).hex()
    return str((await client.post("/v1/auth/session", json=signed)).json()["session_token"])


async def test_no_secret_is_stored_logged_or_answered_in_the_clear(
    world: World, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    sealing = Fernet.generate_key()
    world.secrets = SecretBox([sealing])
    answers: list[bytes] = []
    async with (
        served(create_app(world.services())) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        token = await session(client, world.miner)
        bearer = {"authorization": f"Bearer {token}"}

        async def post(path: str, **more: object) -> httpx.Response:
            answer = await client.post(path, headers=bearer, **more)  # type: ignore[arg-type]
            answers.append(answer.content)
            return answer

        path = "/v1/miner/inference-auth"
        assert (await post(f"{path}/chutes", json={"credential": KEY})).status_code == 200
        assert (await post(f"{path}/chutes", json={"credential": REFUSED})).status_code == 400
        assert (await post(f"{path}/evil", json={"credential": KEY})).status_code == 400
        assert (await post(f"{path}/chutes", json={"credential": [KEY]})).status_code == 422
        assert (await post("/v1/miner/chutes-auth", json={"refresh_token": KEY})).status_code == 404
        answers += [(await client.get(path + p, headers=bearer)).content for p in ("", "/chutes")]
        files = {"file": ("agent.py", AGENT)}
        made = await post("/v1/miner/submit", data={"agent_name": "a"}, files=files)
        await open_evaluation(
            world.queue,
            world.inputs,
            UUID(made.json()["agent_version_id"]),
            EvaluationKind.QUALIFYING,
            None,
            name="a",
            source=AGENT,
            problems=[problem(1)],
            suite=1,
            needed=1,
            at=world.clock(),
        )
        claim = await client.post(
            "/v1/validator/work/claim", headers=world.validators[0].headers(), json={}
        )
        assert claim.json()["inference_token"]["access_token"] == KEY  # it is handed out here
        answers.append((await client.get("/metrics")).content)

        stored = await everything(world.database)
        async with world.database.owner.begin() as connection:  # and when the database fails
            await connection.execute(text("ALTER TABLE inference_credentials RENAME TO away"))
        assert (await post(f"{path}/chutes", json={"credential": KEY})).status_code == 500

    out = capsys.readouterr()
    logged = "\n".join((out.out, out.err, caplog.text)).encode()
    assert b"/v1/miner/inference-auth/chutes" in logged, "there are log lines to look at"
    assert world.miner.hotkey.encode() in stored
    assert AGENT in stored, "what is packed was unpacked"
    for secret in (KEY.encode(), REFUSED.encode(), token.encode(), sealing):
        for form in spelled(secret):
            assert form not in stored
            assert form not in logged
            assert form not in b"\n".join(answers)


async def test_what_a_failing_route_had_in_hand_is_not_logged(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = APIRouter()

    @broken.get("/v1/broken")
    async def fail() -> None:
        credential = KEY
        raise RuntimeError(f"a fault of ours, with {len(credential)} characters in hand")

    app = create_app(world.services(), [*ROUTERS, broken])
    async with served(app) as url, httpx.AsyncClient(base_url=url) as client:
        assert (await client.get("/v1/broken")).status_code == 500
    logged = "".join(capsys.readouterr())
    assert "RuntimeError" in logged
    assert KEY not in logged
