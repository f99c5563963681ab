"""Who may call: signatures, nonces, clocks, registration, bans, sessions."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest
from bittensor import http_auth
from bittensor_auth import generate_auth_headers

from arena.api.auth import SIGNATURE, TIMESTAMP
from arena.api.nonces import NonceStore
from tests.unit.arena.api.world import TAO, Validator, World

pytestmark = pytest.mark.database

CLAIM = "/v1/validator/work/claim"
RECEIVER = Validator("//Arena")


async def _claim(client: httpx.AsyncClient, headers: dict[str, str]) -> tuple[int, str | None]:
    answer = await client.post(CLAIM, headers=headers)
    code = answer.json().get("error_code") if answer.content else None
    return answer.status_code, code


async def test_a_validators_signature_opens_and_its_replay_does_not(world: World) -> None:
    headers = world.validators[0].headers()
    async with world.client() as one, world.client() as two:
        assert await _claim(one, headers) == (204, None)
        assert await _claim(one, headers) == (401, "NONCE_REUSED")
        assert await _claim(two, headers) == (401, "NONCE_REUSED")


async def test_a_nonce_is_remembered_as_long_as_its_signature_is_good(world: World) -> None:
    # From a clock that is 50 s ahead: good for 110 s, and the SDK's own store forgets at 60.
    world.clock.ahead = timedelta(seconds=-50)
    headers = world.validators[0].headers()
    async with world.client() as client:
        assert await _claim(client, headers) == (204, None)
        world.clock.ahead = timedelta(seconds=55)
        nonces = NonceStore(world.database.engine)
        await nonces.prune(world.clock())
        assert await _claim(client, headers) == (401, "NONCE_REUSED")
        world.clock.ahead = timedelta(seconds=75)
        await nonces.prune(world.clock())
        assert await world.rows("request_nonces") == 0
        assert await _claim(client, headers) == (401, "TIMESTAMP_SKEW")


Change = Callable[[dict[str, str]], dict[str, str]]
FORGERIES: dict[str, tuple[Change, str]] = {
    "no headers": (lambda h: {}, "MISSING_HEADERS"),
    "no nonce": (lambda h: {**h, "X-Nonce": ""}, "MISSING_HEADERS"),
    "other nonce": (lambda h: {**h, "X-Nonce": "other"}, "INVALID_SIGNATURE"),
    "long nonce": (lambda h: {**h, "X-Nonce": "n" * 257}, "NONCE_TOO_LONG"),
    "no address": (lambda h: {**h, "X-Hotkey": "5xyz"}, "INVALID_HOTKEY_FORMAT"),
    "SQL for an address": (lambda h: {**h, "X-Hotkey": "' OR 1=1 --"}, "INVALID_HOTKEY_FORMAT"),
    "signature of nobody": (lambda h: {**h, "X-Signature": "00" * 64}, "INVALID_SIGNATURE"),
    "no hex": (lambda h: {**h, "X-Signature": "zz"}, "INVALID_SIGNATURE"),
    "long signature": (lambda h: {**h, "X-Signature": "0" * 9_999}, "INVALID_SIGNATURE"),
    "no time": (lambda h: {**h, "X-Timestamp": "now"}, "INVALID_TIMESTAMP"),
    "endless time": (lambda h: {**h, "X-Timestamp": "9" * 5_000}, "INVALID_SIGNATURE"),
    "far time": (lambda h: {**h, "X-Timestamp": "99999999999"}, "TIMESTAMP_SKEW"),
    "odd time": (lambda h: {**h, "X-Timestamp": "1_0"}, "INVALID_TIMESTAMP"),
    "old time": (lambda h: {**h, "X-Timestamp": str(int(time.time()) - 90)}, "TIMESTAMP_SKEW"),
}


async def test_forged_headers_are_refused_and_nothing_is_written(world: World) -> None:
    async with world.client() as client:
        for name, (change, code) in FORGERIES.items():
            headers = change(world.validators[0].headers())
            assert (name, *await _claim(client, headers)) == (name, 401, code)
        other = world.validators[1].headers()
        mixed = {**world.validators[0].headers(), "X-Signature": other["X-Signature"]}
        assert await _claim(client, mixed) == (401, "INVALID_SIGNATURE")
    assert await world.rows("request_nonces") == 0


async def test_only_validators_with_permit_and_stake_validate(world: World) -> None:
    alice = world.validators[0]
    async with world.client() as client:
        assert await _claim(client, world.miner.headers()) == (403, "NOT_REGISTERED_AS_VALIDATOR")
        assert await _claim(client, world.stranger.headers()) == (403, "NOT_REGISTERED")
    world.settings = world.settings.model_copy(update={"minimum_stake": 1_000.0})
    async with world.client() as client:
        assert await _claim(client, alice.headers()) == (204, None)
    world.chain.peers[0] = replace(world.chain.peers[0], stake=1_000 * TAO - 1)
    async with world.client() as client:
        assert await _claim(client, alice.headers()) == (403, "NOT_REGISTERED_AS_VALIDATOR")


async def test_the_banned_are_refused_everywhere(world: World) -> None:
    banned = frozenset({world.validators[0].hotkey})
    world.settings = world.settings.model_copy(update={"banned_hotkeys": banned})
    async with world.client() as client:
        assert await _claim(client, world.validators[0].headers()) == (403, "BANNED")
        assert await _claim(client, world.validators[1].headers()) == (204, None)


async def test_the_last_metagraph_is_served_for_a_bounded_time(world: World) -> None:
    alice = world.validators[0]
    world.settings = world.settings.model_copy(
        update={"metagraph_max_age": 50.0, "metagraph_refresh": 3_600.0}
    )
    async with world.client() as client:
        world.chain.down = True
        world.clock.ahead = timedelta(seconds=45)
        assert await _claim(client, alice.headers()) == (204, None)
        world.clock.ahead = timedelta(seconds=55)
        answer = await client.post(CLAIM, headers=alice.headers())
        assert (answer.status_code, answer.json()["error_code"]) == (503, "SERVICE_UNAVAILABLE")
        assert int(answer.headers["retry-after"]) > 0
        deep = await client.get("/health/deep")
        assert (deep.status_code, deep.json()["status"]) == (503, "failing")


async def test_body_binding_signatures_are_taken_once_and_for_this_arena_alone(
    world: World,
) -> None:
    alice, body = world.validators[0], b'{"cpu_pct": 1}'
    world.settings = world.settings.model_copy(update={"receiver_hotkey": RECEIVER.hotkey})

    def sign(sent: bytes = body, path: str = CLAIM, to: str = RECEIVER.hotkey) -> dict[str, str]:
        return http_auth.sign(alice.pair, method="POST", path=path, body=sent, receiver_ss58=to)

    async def send(headers: dict[str, str], sent: bytes = body) -> tuple[int, str | None]:
        json = {"content-type": "application/json"}
        answer = await client.post(CLAIM, content=sent, headers={**headers, **json})
        return answer.status_code, answer.json()["error_code"] if answer.content else None

    async with world.client() as client, world.client() as other:
        headers = sign()
        assert await send(headers) == (204, None)
        assert await send(headers) == (401, "NONCE_REUSED")
        client = other
        assert await send(headers) == (401, "NONCE_REUSED")
        assert await send(sign(), b'{"cpu_pct": 2}') == (401, "INVALID_SIGNATURE")
        assert await send(sign(path="/v1/other")) == (401, "INVALID_SIGNATURE")
        assert await send(sign(to=alice.hotkey)) == (401, "WRONG_RECEIVER")
        assert await send({"x-bittensor-hotkey": alice.hotkey}) == (401, "INVALID_SIGNATURE_FORMAT")


async def test_without_a_hotkey_of_its_own_the_arena_takes_no_bound_signature(
    world: World,
) -> None:
    headers = http_auth.sign(
        world.validators[0].pair, method="POST", path=CLAIM, receiver_ss58=RECEIVER.hotkey
    )
    async with world.client() as client:
        assert await _claim(client, headers) == (401, "WRONG_RECEIVER")


async def test_a_hotkey_has_a_rate(world: World) -> None:
    world.settings = world.settings.model_copy(update={"hotkey_rate": 0.001, "hotkey_burst": 2.0})
    alice, bob = world.validators
    async with world.client() as client:
        for _ in range(2):
            assert await _claim(client, alice.headers()) == (204, None)
        answer = await client.post(CLAIM, headers=alice.headers())
        assert (answer.status_code, answer.json()["error_code"]) == (429, "RATE_LIMIT_EXCEEDED")
        assert int(answer.headers["retry-after"]) > 1
        # Who only claims to be somebody takes nothing of that one's rate.
        for _ in range(5):
            await _claim(client, {**bob.headers(), "X-Signature": "00" * 64})
        assert await _claim(client, bob.headers()) == (204, None)


async def test_an_address_has_a_rate_and_health_has_none(world: World) -> None:
    world.settings = world.settings.model_copy(update={"address_rate": 0.001, "address_burst": 2.0})
    async with world.client() as client:
        codes = [(await client.get("/v1/openapi.json")).status_code for _ in range(3)]
        assert codes == [200, 200, 429]
        assert (await client.get("/health")).status_code == 200


async def _challenge(client: httpx.AsyncClient, who: Validator) -> str:
    answer = await client.post("/v1/auth/challenge", json={"hotkey": who.hotkey})
    return str(answer.json()["challenge"])


async def _session(
    client: httpx.AsyncClient, who: Validator, challenge: str, signer: Validator | None = None
) -> httpx.Response:
    signature = (signer or who).pair.sign(challenge.encode()).hex()
    said = {"hotkey": who.hotkey, "challenge": challenge, "signature": signature}
    return await client.post("/v1/auth/session", json=said)


async def test_a_challenge_opens_one_session_for_its_own_hotkey(world: World) -> None:
    alice, bob = world.validators
    async with world.client() as one, world.client() as two:
        challenge = await _challenge(one, alice)
        assert (await _session(two, alice, challenge, signer=bob)).status_code == 401
        assert (await _session(two, bob, challenge)).json()["error_code"] == "INVALID_CHALLENGE"
        assert (await _session(two, alice, challenge)).status_code == 200
        again = await _session(one, alice, challenge)
        assert (again.status_code, again.json()["error_code"]) == (401, "INVALID_CHALLENGE")
        strange = await _session(one, world.stranger, await _challenge(one, world.stranger))
        assert (strange.status_code, strange.json()["error_code"]) == (403, "NOT_REGISTERED")
        late = await _challenge(one, alice)
        world.clock.ahead = timedelta(seconds=61)
        assert (await _session(one, alice, late)).json()["error_code"] == "INVALID_CHALLENGE"


async def test_tokens_are_stored_hashed_and_end(world: World) -> None:
    async with world.client() as client:
        opened = await _session(client, world.miner, await _challenge(client, world.miner))
        token = opened.json()["session_token"]
        async with world.database.engine.connect() as connection:
            for table in ("auth_sessions", "auth_challenges"):
                rows = (await connection.exec_driver_sql(f"SELECT t::text FROM {table} t")).all()
                assert token not in str(rows)
                assert token.removeprefix("ses_").encode().hex() not in str(rows)
        bearer = {"authorization": f"Bearer {token}"}
        assert (await client.post("/v1/auth/logout", headers=bearer)).json() == {"success": True}
        assert (await client.post("/v1/auth/logout", headers=bearer)).status_code == 401
        assert (await client.post("/v1/auth/logout")).status_code == 401


def test_the_headers_are_those_of_the_package() -> None:
    sent = generate_auth_headers(RECEIVER.pair)
    assert {name.lower() for name in sent} == {"x-hotkey", TIMESTAMP, "x-nonce", SIGNATURE}
