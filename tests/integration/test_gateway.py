"""A run's whole conversation with its gateway, over HTTP on the Unix socket."""

from __future__ import annotations

import asyncio
import json
import os
import stat

import httpx
import httpx2
import pytest
import structlog
from openai import AsyncOpenAI

from sandbox.gateway import GatewayLimits, HttpGateway
from sandbox.trace import HttpEvent, LlmEvent, ToolEvent, Trace
from scoring.exceptions import Fault
from scoring.types import Product
from tests.unit.sandbox.door import door, http_client
from tests.unit.sandbox.provider import Reply, completion, failed, provider, said
from tests.unit.sandbox.worlds import MUG, WordCatalog

CHAT = "/inference/chat/completions"


def ask(text: str, **params: object) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **params}


async def test_the_search_wire_decodes_once_and_relaxes_nothing() -> None:
    catalog = WordCatalog()
    async with door(catalog) as d:
        found = await d.http.get("/search/find_product?q=enamel%2Bmug&page=1")
        assert [p["product_id"] for p in found.json()] == ["101"]
        await d.http.get("/search/find_product?q=men%2527s%2Bbag&page=1&shop_id=7&service=COD")
        assert (await d.http.get("/search/find_product?q=mug")).json() == []
        for page in ("0", "6", "x", "", "1.0", "-1"):
            answer = await d.http.get(f"/search/find_product?q=mug&page={page}")
            assert (answer.status_code, answer.json()) == (200, [])
    assert catalog.asked == [("enamel+mug", None, ()), ("men%27s+bag", "7", ("COD",))]
    event = next(d.session.trace().tools())
    assert event.query == "q=enamel%2Bmug&page=1"
    assert event.arguments == {"q": "enamel+mug", "page": "1"}
    assert event.result == found.json()
    assert event.via == "search"


async def test_product_information_comes_over_the_wire() -> None:
    async with door() as d:
        path = "/search/view_product_information"
        answer = await d.http.get(path, params={"product_ids": "101,999"})
        assert [p["product_id"] for p in answer.json()] == ["101"]
        assert answer.json()[0]["sku_options"] == {"1": {"color_family": "Blue", "size": "350ml"}}
        assert (await d.http.get(path)).json() == []


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/search/get_product_raw?product_ids=101", 403),
        ("GET", "/", 403),
        ("GET", "/search/find_product/", 403),
        ("GET", "/search/%66ind_product", 403),
        ("GET", "/tools", 403),
        ("GET", "//etc/passwd", 403),
        ("POST", "/tools/sell_everything", 404),
        ("GET", "/tools/find_product", 405),
        ("POST", "/search/find_product", 405),
        ("GET", CHAT, 405),
        ("DELETE", "/health", 405),
        ("GET", "/health", 200),
        ("GET", "http://proxy/health", 200),
    ],
)
async def test_only_the_listed_paths_are_served(method: str, path: str, status: int) -> None:
    async with door() as d:
        answer = await d.http.request(method, path)
        assert answer.status_code == status
    event = d.session.trace().events[0]
    assert isinstance(event, HttpEvent)
    assert (event.status, event.method) == (status, method)


async def test_all_seven_tools_answer_and_are_recorded() -> None:
    asked: dict[str, dict[str, object]] = {
        "find_product": {"q": "camping mug", "shop_id": "7", "service": "official"},
        "view_product_information": {"product_ids": "101"},
        "check_product_match": {"product_id": "101", "requirements": '{"material": "ENAMEL"}'},
        "find_products_in_same_shop": {"product_queries": '[{"q": "mug"}, {"q": "pot"}]'},
        "calculate_voucher": {"product_prices": "10,20", "voucher_type": "fixed",
                              "discount_value": 5, "threshold": 30, "budget": 25},
        "recommend_product": {"product_ids": "101"},
        "terminate": {"status": "success"},
    }  # fmt: skip
    async with door() as d:
        answers = [await d.http.post(f"/tools/{name}", json=args) for name, args in asked.items()]
    assert all(answer.status_code == 200 for answer in answers)
    events = list(d.session.trace().tools())
    assert [e.name for e in events] == list(asked)
    assert [e.arguments for e in events] == list(asked.values())
    assert [e.result for e in events] == [answer.json() for answer in answers]
    assert answers[0].json()[0]["product_id"] == MUG.product_id
    assert answers[4].json()["total_after"] == 25.0


async def test_a_tools_own_error_is_an_answer() -> None:
    async with door() as d:
        answer = await d.http.post("/tools/find_product", json={"q": "mug", "colour": "red"})
    assert answer.status_code == 200
    assert "colour" in answer.json()["error"]
    (event,) = d.session.trace().tools()
    assert event.error is not None
    assert event.error.fault is Fault.AGENT
    assert event.result == answer.json()


async def test_a_second_recommendation_is_refused_and_recorded() -> None:
    async with door() as d:
        statuses = [
            (await d.http.post("/tools/recommend_product", json={"product_ids": ids})).status_code
            for ids in ("", "101", "102")
        ]
    assert statuses == [200, 200, 409]
    assert [e.status for e in d.session.trace().tools()] == [200, 200, 409]


async def test_a_model_call_is_forwarded_and_recorded_with_its_full_answer() -> None:
    choices = [
        {
            "index": i,
            "message": {"role": "assistant", "content": None, "reasoning_content": "hm",
                        "tool_calls": [{"id": "c", "type": "function",
                                        "function": {"name": "find_product", "arguments": "{}"}}]},
            "finish_reason": "tool_calls",
        }
        for i in range(2)
    ]  # fmt: skip
    async with provider(completion(choices, odd=[1])) as p, door(provider=p, usd_out=2.0) as d:
        answer = await d.http.post(
            CHAT, json=ask("hey", n=2, temperature=0), headers={"authorization": "Bearer dummy"}
        )
    assert answer.status_code == 200
    assert answer.json()["choices"] == choices
    (event,) = d.session.trace().llm()
    assert list(event.choices) == choices
    assert event.params == {"model": "m", "n": 2, "temperature": 0}
    assert event.usage is not None
    assert event.usage.completion_tokens == 5
    assert event.cost_usd == pytest.approx(1e-5)
    assert event.extras["odd"] == [1]
    assert d.session.trace().prompt(event) == [{"role": "user", "content": "hey"}]
    # The agent's token is a dummy: it reaches neither the provider nor the record.
    assert "dummy" not in json.dumps(d.session.trace().to_json())
    assert "dummy" not in p.headers[0]["authorization"]


async def test_messages_sent_again_stand_once_in_the_trace() -> None:
    async with provider() as p, door(provider=p) as d:
        history: list[dict[str, object]] = []
        for turn in range(5):
            history.append({"role": "user", "content": f"turn {turn}"})
            await d.http.post(CHAT, json={"model": "m", "messages": history})
    trace = d.session.trace()
    assert len(trace.messages) == 5
    assert [e.prompt for e in trace.llm()] == [tuple(range(n)) for n in range(1, 6)]
    assert Trace.from_json(json.loads(json.dumps(trace.to_json()))) == trace


async def test_the_openai_sdk_works_against_it() -> None:
    async with provider() as p, door(provider=p) as d:
        transport = httpx2.AsyncHTTPTransport(uds=str(d.session.socket))
        async with AsyncOpenAI(
            api_key="dummy",
            base_url="http://proxy/v1",
            http_client=httpx2.AsyncClient(transport=transport),
        ) as sdk:
            names = [model.id for model in (await sdk.models.list()).data]
            answer = await sdk.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "hey"}]
            )
    assert names == ["m"]
    assert answer.choices[0].message.content == "hello"


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"", "not JSON"),
        (b"[]", "object"),
        (b"\xff\xfe", "UTF-8"),
        (b'{"model": "m\\u0000", "messages": []}', "NUL"),
        (b'{"model": "m", "messages": [{"role": "user", "content": "\\ud800"}]}', "surrogate"),
        (b'{"model": "m", "model": "m"}', "twice"),
        (b'{"model": "m", "temperature": NaN}', "NaN"),
        (b'{"model": "m", "temperature": 1e999}', "too large"),
        (b'{"model": "m", "seed": 99999999999999999999}', "too large"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "nested"),
        (b'{"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": true}',
         "streaming"),
        (b'{"model": "m", "messages": []}', "at least one"),
        (b'{"model": "m", "messages": [7]}', "messages[0]"),
        (b'{"model": 7, "messages": [{"role": "user", "content": "x"}]}', "model"),
        (b'{"model": "m", "messages": [{"role": "user", "content": [{"type": "image_url",'
         b'"image_url": {"url": "https://example.org/leak"}}]}]}', "only text"),
        (b'{"model": "m", "messages": [{"role": "user", "content": "x"}],'
         b'"web_search_options": {}}', "web_search_options"),
        (b'{"model": "m", "messages": [{"role": "user", "content": "x"}],'
         b'"tools": [{"type": "web_search"}]}', "type function"),
        (b'{"model": "m", "messages": [{"role": "user", "content": "x"}], "n": 1000}', "n must"),
    ],
)  # fmt: skip
async def test_a_bad_body_is_a_clear_400_and_costs_no_model_call(body: bytes, word: str) -> None:
    async with provider() as p, door(provider=p) as d:
        answer = await d.http.post(CHAT, content=body)
        assert answer.status_code == 400
        assert word in answer.json()["error"]["message"]
        assert (await d.http.get("/health")).status_code == 200
    assert p.requests == []
    event = d.session.trace().events[0]
    assert event.status == 400
    assert event.error is not None
    assert event.error.fault is Fault.AGENT


async def test_a_model_that_nobody_serves_is_the_agents_fault() -> None:
    async with provider() as p, door(provider=p) as d:
        answer = await d.http.post(CHAT, json=ask("x") | {"model": "gpt-9"})
    assert answer.status_code == 404
    assert d.session.infrastructure_error() is None
    (event,) = d.session.trace().llm()
    assert event.error is not None
    assert (event.error.code, event.error.fault) == ("model.unknown", Fault.AGENT)


@pytest.mark.parametrize(
    ("reply", "status", "code"),
    [
        (failed(429), 503, "model.rate_limited"),
        (failed(500), 502, "model.unavailable"),
        (Reply(body=b"{"), 502, "model.broken_answer"),
        (Reply(body=b'{"x": 12345678901}', cut=True), 502, "model.broken_answer"),
        (Reply(drop=True), 502, "model.broken_answer"),
        (failed(401), 502, "model.key_refused"),
    ],
)
async def test_a_failing_provider_spoils_the_run_until_a_later_call_succeeds(
    reply: Reply, status: int, code: str
) -> None:
    async with provider() as p, door(provider=p) as d:
        p.default = reply
        assert (await d.http.post(CHAT, json=ask("one"))).status_code == status
        error = d.session.infrastructure_error()
        assert error is not None
        assert (error.code, error.fault) == (code, Fault.VALIDATOR)
        p.default = said("back")
        assert (await d.http.post(CHAT, json=ask("two"))).status_code == 200
        assert d.session.infrastructure_error() is None
    first, second = d.session.trace().llm()
    assert first.error == error
    assert first.choices == ()
    assert second.error is None


async def test_a_hanging_provider_is_a_time_out_of_the_validator() -> None:
    limits = GatewayLimits(model_timeout_s=0.05)
    async with provider() as p, door(provider=p, limits=limits) as d:
        p.default = Reply(wait=asyncio.Event().wait)
        assert (await d.http.post(CHAT, json=ask("x"))).status_code == 504
    error = d.session.infrastructure_error()
    assert error is not None
    assert error.code == "model.timeout"
    (event,) = d.session.trace().llm()
    assert 0.0 < event.waited_ms <= event.elapsed_ms


@pytest.mark.parametrize(
    ("poison", "limits"),
    [
        (failed(500, "the grammar broke"), GatewayLimits()),
        (failed(403, "flagged"), GatewayLimits()),
        (Reply(drop=True), GatewayLimits()),
        (Reply(wait=asyncio.Event().wait), GatewayLimits(model_timeout_s=0.2)),
    ],
)
async def test_a_request_that_a_sound_server_fails_on_is_the_agents_fault(
    poison: Reply, limits: GatewayLimits
) -> None:
    async with provider() as p, door(provider=p, limits=limits) as d:
        p.special = {"poison": poison}
        assert (await d.http.post(CHAT, json=ask("poison"))).status_code == 400
        assert d.session.infrastructure_error() is None
        (event,) = d.session.trace().llm()
        assert event.error is not None
        assert (event.error.code, event.error.fault) == ("model.fails_on_request", Fault.AGENT)
        # Nobody else waits for it.
        assert (await d.http.post(CHAT, json=ask("two"))).status_code == 200


async def test_a_request_that_a_sound_server_fails_on_uses_up_the_budget() -> None:
    limits = GatewayLimits(completion_tokens=5000)
    async with provider() as p, door(provider=p, limits=limits) as d:
        p.special = {"poison": failed(500)}
        for status in (400, 400, 429):
            assert (await d.http.post(CHAT, json=ask("poison"))).status_code == status
    assert d.session.trace().limits_hit == ("completion_tokens",)


async def test_a_server_that_is_back_answers_the_request_that_failed() -> None:
    async with provider(failed(500), failed(500)) as p, door(provider=p) as d:
        assert (await d.http.post(CHAT, json=ask("x"))).json()["choices"]
    assert d.session.infrastructure_error() is None


async def test_what_the_operators_account_refuses_is_not_put_to_the_test() -> None:
    async with provider() as p, door(provider=p) as d:
        p.special = {"large": failed(429)}
        assert (await d.http.post(CHAT, json=ask("large"))).status_code == 503
    error = d.session.infrastructure_error()
    assert error is not None
    assert error.fault is Fault.VALIDATOR


async def test_a_request_that_the_provider_refuses_is_the_agents_fault() -> None:
    async with provider(failed(400, "bad temperature")) as p, door(provider=p) as d:
        answer = await d.http.post(CHAT, json=ask("x"))
    assert answer.status_code == 400
    assert "bad temperature" in answer.text
    assert d.session.infrastructure_error() is None


async def test_an_empty_completion_is_handed_on_and_visible() -> None:
    async with provider(said("")) as p, door(provider=p) as d:
        answer = await d.http.post(CHAT, json=ask("x"))
    assert answer.json()["choices"][0]["message"]["content"] == ""
    (event,) = d.session.trace().llm()
    assert event.empty
    assert event.status == 200
    assert d.session.infrastructure_error() is None


async def test_a_run_that_ends_during_a_call_still_records_it() -> None:
    async with provider() as p:
        p.default = Reply(wait=asyncio.Event().wait)
        async with door(provider=p) as d:
            call = asyncio.create_task(d.http.post(CHAT, json=ask("the last words")))
            await p.arrived.wait()
            before = d.session.excused_s()
            await asyncio.sleep(0)
            assert d.session.excused_s() > before  # counted while it is going on
    with pytest.raises(httpx.TransportError):
        await call
    (event,) = d.session.trace().llm()
    assert (event.status, event.choices) == (499, ())
    assert d.session.trace().prompt(event)[0]["content"] == "the last words"
    assert event.error is not None
    assert event.error.code == "gateway.run_ended"
    assert d.session.infrastructure_error() is None


async def test_one_run_cannot_take_all_places_at_a_server() -> None:
    gate = asyncio.Event()
    async with provider() as p:
        p.default = Reply(body=said("x").body, wait=gate.wait)
        async with door(provider=p) as d:
            calls = [asyncio.create_task(d.http.post(CHAT, json=ask(str(i)))) for i in range(20)]
            while len(p.requests) < 8:  # noqa: ASYNC110
                await asyncio.sleep(0)
            while d.session._budget.requests < 20:  # noqa: ASYNC110
                await asyncio.sleep(0)
            assert len(p.requests) == 8
            gate.set()
            for call in calls[:10]:
                await call
            gate.clear()
        await asyncio.gather(*calls, return_exceptions=True)
    # Also those that were still waiting for their turn at the end are on record.
    events = list(d.session.trace().llm())
    assert len(events) == 20
    assert {event.status for event in events} <= {200, 499}


async def test_waiting_is_counted_once_when_calls_overlap() -> None:
    gate = asyncio.Event()
    async with provider() as p, door(provider=p) as d:
        p.default = Reply(body=said("x").body, wait=gate.wait)
        calls = [asyncio.create_task(d.http.post(CHAT, json=ask(str(i)))) for i in range(8)]
        while len(p.requests) < 8:  # noqa: ASYNC110
            await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*calls)
    waits = [e.waited_ms for e in d.session.trace().llm()]
    assert d.session.excused_s() * 1000 < sum(waits)
    assert d.session.excused_s() == d.session.excused_s()  # nothing is running any more


async def test_many_sessions_stay_apart() -> None:
    gateway = HttpGateway(WordCatalog())

    async def run(name: str) -> Trace:
        async with gateway.session(name) as session, http_client(session) as http:
            for i in range(10):
                assert (
                    await http.post("/tools/find_product", json={"q": f"{name} {i}"})
                ).status_code == 200
            assert (
                await http.post("/tools/recommend_product", json={"product_ids": name})
            ).status_code == 200
        return session.trace()

    names = [f"run{i}" for i in range(20)]
    traces = await asyncio.gather(*(run(name) for name in names))
    for name, trace in zip(names, traces, strict=True):
        assert [e.seq for e in trace.events] == list(range(11))
        texts = [json.dumps(e.arguments) for e in trace.tools()]
        assert all(f"{name} " in text or f'"{name}"' in text for text in texts)
    await gateway.close()


async def test_a_closed_session_leaves_nothing() -> None:
    gateway = HttpGateway(WordCatalog())
    async with gateway.session("warm up") as session, http_client(session) as http:
        await http.get("/health")
    before = len(os.listdir("/proc/self/fd"))
    for i in range(20):
        async with gateway.session(str(i)) as session, http_client(session) as http:
            await http.post("/tools/find_product", json={"q": "mug"})
        assert not session.socket.exists()
    assert len(os.listdir("/proc/self/fd")) <= before
    directory = session.socket.parent
    await gateway.close()
    assert not directory.exists()


async def test_who_may_connect_is_settable() -> None:
    gateway = HttpGateway(WordCatalog(), socket_mode=0o660, socket_owner=(os.getuid(), os.getgid()))
    async with gateway.session("r") as session:
        assert stat.S_IMODE(session.socket.stat().st_mode) == 0o660
        assert stat.S_IMODE(session.socket.parent.stat().st_mode) == 0o700
        assert len(os.fsencode(session.socket)) < 108
    await gateway.close()


class BrokenCatalog(WordCatalog):
    def find(self, q: str, **_options: object) -> list[Product]:
        raise OSError("the disk is gone")


async def test_a_broken_catalogue_is_the_validators_fault() -> None:
    with structlog.testing.capture_logs() as logs:
        async with provider() as p, door(BrokenCatalog(), p) as d:
            answer = await d.http.post("/tools/find_product", json={"q": "mug"})
            # A model that answers later mends no catalogue.
            assert (await d.http.post(CHAT, json=ask("x"))).status_code == 200
    assert answer.status_code == 500
    assert "disk" not in answer.text
    error = d.session.infrastructure_error()
    assert error is not None
    assert error.fault is Fault.VALIDATOR
    assert logs[0]["event"] == "gateway failed"


async def test_events_are_recorded_before_they_are_answered() -> None:
    kinds = {ToolEvent: "/tools/terminate", HttpEvent: "/health", LlmEvent: CHAT}
    async with provider() as p, door(provider=p) as d:
        for count, (kind, path) in enumerate(kinds.items(), start=1):
            method = "GET" if kind is HttpEvent else "POST"
            body = b"" if kind is HttpEvent else json.dumps(ask("x") if kind is LlmEvent else {})
            await d.http.request(method, path, content=body)
            events = d.session.trace().events
            assert len(events) == count
            assert isinstance(events[-1], kind)
