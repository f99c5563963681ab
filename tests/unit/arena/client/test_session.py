"""Signed calls: what is signed, what is tried again, and what a refusal says."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from bittensor_auth.signing import verify_signature
from oro_sdk.api.validator import claim_work, complete_run
from oro_sdk.models import ClaimWorkResponse, CompleteRunRequest, TerminalStatus

from arena.client.backoff import ONCE, Backoff
from arena.client.exceptions import (
    AnswerError,
    ArenaApiError,
    ClockSkewError,
    RateLimitedError,
    RefusedError,
    UnavailableError,
    UnreachableError,
)
from arena.client.session import ArenaSession
from arena.exceptions import Fault
from arena.runs.signing import KeypairSigner

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ALICE = KeypairSigner("//Alice")
Answer = httpx.Response | Exception


class Wire(httpx.AsyncBaseTransport):
    """Answers in turn, and keeps what was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[httpx.Request] = []
        self.closed = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        # Unread, as from a network.
        body = httpx.ByteStream(answer.content)
        return httpx.Response(answer.status_code, headers=answer.headers, stream=body)

    async def aclose(self) -> None:
        self.closed += 1


class World:
    """A session over a wire, with a clock that sleeping moves on."""

    def __init__(self, *answers: Answer, backoff: Backoff | None = None, **options: Any) -> None:
        self.wire = Wire(*answers)
        self.now = NOW
        self.slept: list[float] = []
        self.told: list[tuple[ArenaApiError, float]] = []
        self.session = ArenaSession(
            options.pop("url", "https://arena.test"),
            options.pop("signer", ALICE),
            backoff=backoff,
            clock=lambda: self.now,
            sleep=self._sleep,
            rng=random.Random(7),
            told=lambda error, wait: self.told.append((error, wait)),
            transport=self.wire,
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += timedelta(seconds=seconds)


def answer(status: int, value: object = None, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return httpx.Response(status, json=value, headers=named)


def refused(status: int, code: str, detail: object = "no", **headers: str) -> httpx.Response:
    return answer(status, {"detail": detail, "error_code": code}, **headers)


async def test_a_request_is_signed_by_the_hotkey_and_each_try_anew() -> None:
    world = World(httpx.ConnectError("down"), answer(200, {"a": 1}))
    assert await world.session.json("GET", "/v1/x") == {"a": 1}
    first, second = (request.headers for request in world.wire.asked)
    for headers in (first, second):
        assert headers["x-hotkey"] == ALICE.address
        assert verify_signature(
            headers["x-hotkey"], headers["x-timestamp"], headers["x-nonce"], headers["x-signature"]
        )
    assert first["x-nonce"] != second["x-nonce"]
    assert int(second["x-timestamp"]) - int(first["x-timestamp"]) == pytest.approx(5, abs=1.1)


@pytest.mark.parametrize("path", ["/v1/public/leaderboard", "/v1/auth/challenge", "/health"])
async def test_public_routes_are_not_signed(path: str) -> None:
    world = World(answer(200, {}))
    await world.session.json("GET", path)
    assert "x-hotkey" not in world.wire.asked[0].headers


async def test_links_are_never_signed() -> None:
    world = World(answer(200, {}))
    await world.session.download("https://store.test/code?signature=1", max_bytes=100)
    world.wire.answers = [httpx.Response(204)]
    await world.session.upload("https://arena.test/v1/objects/a?signature=1", b"{}")
    assert [request.method for request in world.wire.asked] == ["GET", "PUT"]
    assert not any("x-hotkey" in request.headers for request in world.wire.asked)


@pytest.mark.parametrize("path", ["https://elsewhere.test/v1/x", "//elsewhere.test/v1", "../x"])
async def test_a_path_cannot_lead_elsewhere(path: str) -> None:
    world = World(answer(200, {}), url="https://arena.test/base")
    try:
        await world.session.request("GET", path)
    except ValueError:
        assert not world.wire.asked
        return
    assert str(world.wire.asked[0].url).startswith("https://arena.test/base/")


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (httpx.ConnectError("x"), UnreachableError),
        (httpx.ReadTimeout("x"), UnreachableError),
        (httpx.RemoteProtocolError("x"), UnreachableError),
        (answer(500, {"detail": "x", "error_code": "INTERNAL_ERROR"}), UnavailableError),
        (answer(503), UnavailableError),
        (refused(429, "RATE_LIMIT_EXCEEDED"), RateLimitedError),
    ],
)
async def test_what_may_succeed_later_is_tried_again(
    failure: Answer, kind: type[ArenaApiError]
) -> None:
    world = World(failure, failure, answer(200, {}))
    await world.session.json("GET", "/v1/x")
    assert len(world.slept) == 2
    assert [type(error) for error, _ in world.told] == [kind, kind]
    with pytest.raises(kind) as raised:
        await World(failure).session.json("GET", "/v1/x", backoff=Backoff(tries=3))
    assert raised.value.fault is Fault.PLATFORM


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422])
async def test_no_is_no_at_once(status: int) -> None:
    world = World(refused(status, "SOME_CODE", "because"))
    with pytest.raises(RefusedError, match="because") as raised:
        await world.session.json("GET", "/v1/x")
    error = raised.value
    assert (error.error_code, error.code, error.status) == ("SOME_CODE", "api.some_code", status)
    assert error.fault is Fault.CALLER
    assert not world.slept


async def test_a_cooldown_is_not_waited_for() -> None:
    world = World(refused(429, "COOLDOWN_ACTIVE", retry_after="40000"))
    with pytest.raises(RefusedError) as raised:
        await world.session.json("POST", "/v1/miner/submit")
    assert not isinstance(raised.value, RateLimitedError)
    assert raised.value.retry_after == 40_000
    assert not world.slept


async def test_waits_double_from_5_to_300_seconds_give_or_take_a_fifth() -> None:
    world = World(httpx.ConnectError("x"), backoff=Backoff(tries=10))
    with pytest.raises(UnreachableError):
        await world.session.json("GET", "/v1/x")
    middle = [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]
    assert len(world.slept) == len(middle)
    for wait, about in zip(world.slept, middle, strict=True):
        assert 0.8 * about <= wait <= 1.2 * about
        assert wait != about


@pytest.mark.parametrize(("said", "least", "most"), [("33", 33, 33), ("99999", 300, 300)])
async def test_the_arena_may_ask_for_a_longer_wait_up_to_the_longest(
    said: str, least: float, most: float
) -> None:
    world = World(refused(429, "RATE_LIMIT_EXCEEDED", retry_after=said), answer(200, {}))
    await world.session.json("GET", "/v1/x")
    assert least <= world.slept[0] <= most


@pytest.mark.parametrize("said", ["nan", "inf", "-1", "soon", "1" * 500])
async def test_an_odd_retry_after_harms_nothing(said: str) -> None:
    world = World(refused(503, "SERVICE_UNAVAILABLE", retry_after=said), answer(200, {}))
    await world.session.json("GET", "/v1/x")
    assert 4 <= world.slept[0] <= 300


@pytest.mark.parametrize(("ahead", "words"), [(95, "95 s behind"), (-3600, "3600 s ahead of")])
async def test_a_wrong_clock_is_told_in_one_line(ahead: int, words: str) -> None:
    there = format_datetime(NOW + timedelta(seconds=ahead), usegmt=True)
    world = World(refused(401, "TIMESTAMP_SKEW", date=there))
    with pytest.raises(ClockSkewError, match=words) as raised:
        await world.session.json("GET", "/v1/x")
    assert raised.value.fault is Fault.VALIDATOR
    assert "timedatectl" in str(raised.value)
    assert world.session.skew_s == ahead


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"null", b"[" * 100_000, b'{"detail": 7, "error_code": ["x"]}', b"\xff\x00"],
)
@pytest.mark.parametrize("status", [400, 422, 500])
async def test_a_refusal_of_any_shape_is_an_error_of_ours(body: bytes, status: int) -> None:
    world = World(httpx.Response(status, content=body))
    with pytest.raises(ArenaApiError) as raised:
        await world.session.json("GET", "/v1/x", backoff=ONCE)
    assert str(status) in raised.value.message
    assert raised.value.code in ("api.unavailable", "api.http_400", "api.validation_error")


async def test_hostile_words_of_an_answer_are_one_bounded_printable_line() -> None:
    world = World(refused(400, "X; DROP", "a\x1b[31m\nb\u202e" + "c" * 9_000))
    with pytest.raises(RefusedError) as raised:
        await world.session.json("GET", "/v1/x")
    assert raised.value.message.isprintable()
    assert len(raised.value.message) <= 500
    assert raised.value.code == "api.http_400"


async def test_what_is_wrong_with_a_request_is_listed() -> None:
    items = [{"loc": ["body", "name"], "msg": "too long", "type": "x"}]
    world = World(answer(422, {"detail": items}))
    with pytest.raises(RefusedError, match=r"body\.name: too long"):
        await world.session.json("GET", "/v1/x")


async def test_the_sdk_parses_successes_and_never_refusals() -> None:
    """Its parser knows a few codes for each status, and fails on others."""
    world = World(refused(409, "SOMETHING_NEW"))
    body = CompleteRunRequest(TerminalStatus.SUCCESS, validator_score=0.5)
    run = "00000000-0000-0000-0000-000000000001"
    with pytest.raises(RefusedError) as raised:
        await world.session.call(
            lambda sdk: complete_run.asyncio(run, client=sdk, body=body)  # type: ignore[arg-type]
        )
    assert raised.value.error_code == "SOMETHING_NEW"


async def test_the_sdk_gets_a_parsed_answer_or_none() -> None:
    ask: Callable[[Any], Any] = lambda sdk: claim_work.asyncio(client=sdk)  # noqa: E731
    value = {
        "eval_run_id": "00000000-0000-0000-0000-000000000001",
        "agent_version_id": "00000000-0000-0000-0000-000000000002",
        "suite_id": 7,
        "lease_expires_at": NOW.isoformat(),
        "code_download_url": "https://arena.test/x",
    }
    got = await World(answer(200, value)).session.call(ask)
    assert isinstance(got, ClaimWorkResponse)
    assert await World(httpx.Response(204)).session.call(ask) is None
    del value["suite_id"]
    with pytest.raises(AnswerError, match="cannot be read"):
        await World(answer(200, value)).session.call(ask)


async def test_a_redirect_is_not_followed() -> None:
    world = World(httpx.Response(302, headers={"location": "https://elsewhere.test/"}))
    with pytest.raises(AnswerError, match="302"):
        await world.session.json("GET", "/v1/x")
    assert len(world.wire.asked) == 1


async def test_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.client.session.MAX_ANSWER", 10)
    with pytest.raises(AnswerError, match="more than 10"):
        await World(httpx.Response(200, content=b"x" * 11)).session.request("GET", "/v1/x")
    link = "https://arena.test/x"
    with pytest.raises(AnswerError, match="more than 5"):
        await World(httpx.Response(200, content=b"x" * 6)).session.download(link, max_bytes=5)


@pytest.mark.parametrize("url", ["", "file:///etc/passwd", "http://", "x" * 10])
async def test_a_link_must_be_one(url: str) -> None:
    with pytest.raises(AnswerError, match="link"):
        await World(answer(200, {})).session.download(url, max_bytes=5)


async def test_a_link_stands_in_no_message() -> None:
    world = World(httpx.ConnectError("https://store.test/x?signature=SECRET"))
    with pytest.raises(UnreachableError) as raised:
        await world.session.download(
            "https://store.test/x?signature=SECRET", max_bytes=5, backoff=ONCE
        )
    assert "SECRET" not in str(raised.value)


async def test_closing_closes_the_connections_once() -> None:
    world = World(answer(200, {}))
    async with world.session:
        await world.session.json("GET", "/v1/x")
    assert world.wire.closed >= 1
