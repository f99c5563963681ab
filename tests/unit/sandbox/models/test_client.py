"""Tries, rest, rotation, and whose fault a failure was."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import structlog
from pydantic import SecretStr

from sandbox.exceptions import Fault, ModelError
from sandbox.models import ChatRequest, ModelClient, ModelRoute, RetryPolicy
from sandbox.models.routes import Wire
from tests.unit.sandbox.provider import Provider, Reply, completion, failed, provider, said

HEY = ChatRequest("m", ({"role": "user", "content": "hey"},))
QUICK = RetryPolicy(tries=3, base_s=0.001, cap_s=0.002, lasting_rest_s=0.001)


@asynccontextmanager
async def client_of(
    *providers: Provider, retry: RetryPolicy = QUICK, **route: object
) -> AsyncIterator[ModelClient]:
    client = ModelClient(
        [
            ModelRoute("m", f"s{i}", base_url=p.url, **route)  # type: ignore[arg-type]
            for i, p in enumerate(providers)
        ],
        retry=retry,
    )
    try:
        yield client
    finally:
        await client.close()


async def test_an_answer_keeps_what_the_provider_added() -> None:
    choices = [
        {
            "index": i,
            "message": {"role": "assistant", "content": "a", "reasoning_content": "why"},
            "finish_reason": "stop",
        }
        for i in range(2)
    ]
    async with (
        provider(completion(choices, system_fingerprint="fp")) as p,
        client_of(p, usd_in=1.0, usd_out=2.0, upstream_model="big") as client,
    ):
        answer = await client.complete(replace(HEY, params={"temperature": 0, "n": 2}))
    assert answer.body["system_fingerprint"] == "fp"
    assert [c["message"] for c in answer.choices] == [c["message"] for c in choices]
    assert answer.cost_usd == pytest.approx(20e-6)
    assert p.requests == [
        {
            "model": "big",
            "temperature": 0,
            "n": 2,
            "messages": [{"role": "user", "content": "hey"}],
        }
    ]
    assert p.paths == ["/v1/chat/completions"]


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (failed(429), "model.rate_limited"),
        (failed(500), "model.unavailable"),
        (failed(503), "model.unavailable"),
        (failed(401), "model.key_refused"),
        (failed(403), "model.key_refused"),
        (failed(402), "model.no_funds"),
        (failed(404), "model.not_served"),
        (Reply(body=b"{broken"), "model.broken_answer"),
        (Reply(body=b"<html>"), "model.broken_answer"),
        (Reply(body=b"[]"), "model.broken_answer"),
        (Reply(body=b'{"choices": []}'), "model.broken_answer"),
        (Reply(body=b'{"choices": [{"message": null}]}'), "model.broken_answer"),
        (Reply(body=b'{"choices": [{"message": {"content"' + b" " * 999, cut=True),
         "model.broken_answer"),
        (Reply(drop=True), "model.broken_answer"),
        (Reply(body=b'{"error": {"message": "overloaded", "code": 502}}'), "model.unavailable"),
        (Reply(body=b'{"error": {"message": "slow down", "code": 429}}'), "model.rate_limited"),
    ],
)  # fmt: skip
async def test_what_the_provider_did_is_the_validators_fault(reply: Reply, code: str) -> None:
    async with provider() as p, client_of(p) as client:
        p.default = reply
        with pytest.raises(ModelError) as caught:
            await client.complete(HEY)
        tries = len(p.requests)
        p.default = said("back")
        assert (await client.complete(HEY)).text == "back"
    assert (caught.value.code, caught.value.fault) == (code, Fault.VALIDATOR)
    # What only the operator can mend is not tried again.
    lasting = code in ("model.key_refused", "model.no_funds", "model.not_served")
    assert tries == (1 if lasting else 3)


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (failed(400, "temperature must be below 2"), "model.bad_request"),
        (failed(422), "model.bad_request"),
        (failed(413), "model.context_too_long"),
        (failed(400, "maximum context length is 8192 tokens"), "model.context_too_long"),
    ],
)
async def test_what_the_agent_asked_wrongly_is_the_agents_fault(reply: Reply, code: str) -> None:
    async with provider(reply) as p, client_of(p) as client:
        with pytest.raises(ModelError) as caught:
            await client.complete(HEY)
    assert (caught.value.code, caught.value.fault) == (code, Fault.AGENT)
    assert len(p.requests) == 1


async def test_a_server_that_hangs_is_a_time_out() -> None:
    never = asyncio.Event()
    async with provider() as p, client_of(p, timeout_s=0.05) as client:
        p.default = Reply(wait=never.wait)
        with pytest.raises(ModelError) as caught:
            await client.complete(HEY)
    assert (caught.value.code, caught.value.fault) == ("model.timeout", Fault.VALIDATOR)
    assert "(3 tries)" in caught.value.message


async def test_a_server_that_is_not_there_is_the_validators_fault() -> None:
    async with provider() as p:
        pass
    async with client_of(p) as client:
        with pytest.raises(ModelError) as caught:
            await client.complete(HEY)
    assert (caught.value.code, caught.value.fault) == ("model.unreachable", Fault.VALIDATOR)


async def test_the_deadline_bounds_all_tries_together() -> None:
    never = asyncio.Event()
    async with provider() as p, client_of(p) as client:
        p.default = Reply(wait=never.wait)
        with pytest.raises(ModelError, match="no answer in time") as caught:
            await client.complete(HEY, timeout_s=0.05)
    assert caught.value.code == "model.timeout"
    assert "(1 try)" in caught.value.message


async def test_a_retry_after_beyond_the_deadline_ends_the_tries() -> None:
    async with provider(failed(429, retry_after="3600")) as p, client_of(p) as client:
        with pytest.raises(ModelError) as caught:
            await client.complete(HEY, timeout_s=5.0)
        assert caught.value.code == "model.rate_limited"
        assert len(p.requests) == 1
        # And a later caller gets a true answer instead of a long wait.
        assert (await client.complete(HEY, timeout_s=5.0)).text == "hello"


async def test_a_failing_server_is_left_for_a_healthy_one() -> None:
    async with provider() as bad, provider() as good, client_of(bad, good) as client:
        bad.default = failed(500)
        for _ in range(4):
            assert (await client.complete(HEY)).route.server == "s1"
    assert len(bad.requests) == 1
    assert len(good.requests) == 4


async def test_calls_are_spread_over_servers_that_are_idle() -> None:
    gate = asyncio.Event()
    held = replace(said("a"), wait=gate.wait)
    async with provider() as one, provider() as two, client_of(one, two) as client:
        one.default = two.default = held
        calls = [asyncio.create_task(client.complete(HEY)) for _ in range(4)]
        while len(one.requests) + len(two.requests) < 4:  # noqa: ASYNC110
            await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*calls)
    assert (len(one.requests), len(two.requests)) == (2, 2)


async def test_models_are_alternatives_to_rotate_over() -> None:
    async with provider() as bad, provider(said("b")) as good:
        bad.default = failed(500)
        client = ModelClient(
            [ModelRoute("a", "one", base_url=bad.url), ModelRoute("b", "two", base_url=good.url)],
            retry=QUICK,
        )
        answer = await client.complete(HEY, models=("a", "b"))
        await client.close()
    assert answer.route.model == "b"
    assert answer.failures == ("model.unavailable",)


async def test_concurrency_of_a_route_is_bounded() -> None:
    gate = asyncio.Event()
    async with provider() as p, client_of(p, concurrency=1) as client:
        p.default = replace(said("a"), wait=gate.wait)
        calls = [asyncio.create_task(client.complete(HEY)) for _ in range(3)]
        await p.arrived.wait()
        assert len(p.requests) == 1
        gate.set()
        await asyncio.gather(*calls)
    assert len(p.requests) == 3


async def test_an_empty_answer_is_handed_on_or_asked_for_again() -> None:
    async with provider(said(""), said(None), said("text")) as p, client_of(p) as client:
        first = await client.complete(HEY)
        assert first.empty
        assert first.text == ""
        assert (await client.complete(replace(HEY, accept_empty=False))).text == "text"
        p.default = said("  ")
        with pytest.raises(ModelError) as caught:
            await client.complete(replace(HEY, accept_empty=False))
    assert (caught.value.code, caught.value.fault) == ("model.empty_answer", Fault.VALIDATOR)


async def test_a_tool_call_without_text_is_not_empty() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    async with provider(said(None, tool_calls=[call])) as p, client_of(p) as client:
        assert not (await client.complete(HEY)).empty


async def test_text_that_no_record_can_hold_is_mended() -> None:
    odd = b'{"choices": [{"message": {"content": "a\\ud83d\\u0000"}}], "big": 12345678901234567890}'
    async with provider(Reply(body=odd)) as p, client_of(p) as client:
        answer = await client.complete(HEY)
    assert answer.text == "a��"
    json.dumps(answer.body).encode()


async def test_an_unknown_model_is_the_agents_fault() -> None:
    async with client_of() as client:
        with pytest.raises(ModelError) as caught:
            await client.complete(HEY)
    assert (caught.value.code, caught.value.fault) == ("model.unknown", Fault.AGENT)


@pytest.mark.parametrize("wire", list(Wire))
async def test_the_key_is_sent_and_never_shown(wire: Wire) -> None:
    key = SecretStr("sk-very-secret")
    with structlog.testing.capture_logs() as logs:
        async with provider() as p, client_of(p, api_key=key, wire=wire) as client:
            p.default = failed(401, "wrong key sk-very-secret"[:9])
            with pytest.raises(ModelError) as caught:
                await client.complete(HEY)
    sent = {**p.headers[0]}
    assert "sk-very-secret" in sent.get("authorization", "") + sent.get("x-api-key", "")
    shown = f"{caught.value} {caught.value.info} {logs} {client.routes('m')}"
    assert "very-secret" not in shown
    assert logs


async def test_one_refusal_that_looks_lasting_does_not_hold_up_later_calls() -> None:
    policy = RetryPolicy(tries=1, lasting_rest_s=20.0)
    async with provider(failed(403, "flagged")) as p:
        client = ModelClient([ModelRoute("m", "s", p.url)], retry=policy)
        with pytest.raises(ModelError):
            await client.complete(HEY)
        async with asyncio.timeout(10.0):
            for _ in range(2):
                assert (await client.complete(HEY)).text == "hello"
        await client.close()


async def test_more_than_an_account_may_ever_ask_for_is_the_agents_fault() -> None:
    too_large = failed(429, "Request too large for m on tokens per min: Limit 10, Requested 20")
    async with provider(too_large) as p, client_of(p) as client:
        with pytest.raises(ModelError) as caught:
            await client.complete(HEY)
    assert (caught.value.code, caught.value.fault) == ("model.context_too_long", Fault.AGENT)
