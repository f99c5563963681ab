"""Limits of a run on its model calls, and what many runs may take from each other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from sandbox.gateway import Gateway, GatewayLimits, HttpGateway
from scoring.exceptions import Fault
from scoring.types import Product
from tests.unit.sandbox.door import door, http_client
from tests.unit.sandbox.provider import failed, provider, said
from tests.unit.sandbox.worlds import WordCatalog

CHAT = "/inference/chat/completions"


def ask(**params: object) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": "x"}], **params}


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (GatewayLimits(model_calls=2), "model_calls"),
        (GatewayLimits(completion_tokens=10), "completion_tokens"),  # an answer has 5
        (GatewayLimits(cost_usd=0.005), "cost_usd"),  # an answer costs 0.002
    ],
)
async def test_beyond_a_limit_model_calls_are_refused_with_a_reason(
    limits: GatewayLimits, name: str
) -> None:
    async with provider() as p, door(provider=p, limits=limits, usd_out=400.0) as d:
        answers = [await d.http.post(CHAT, json=ask(max_tokens=5)) for _ in range(4)]
        assert (await d.http.post("/tools/terminate", json={})).status_code == 200
    assert [a.status_code for a in answers] == [200, 200, 429, 429]
    assert answers[2].json()["error"]["limit"] == name
    assert len(p.requests) == 2
    assert d.session.trace().limits_hit == (name,)
    refused = list(d.session.trace().llm())[2]
    assert refused.error is not None
    assert (refused.error.code, refused.error.fault) == (f"gateway.limit.{name}", Fault.AGENT)
    assert d.session.infrastructure_error() is None


async def test_a_prompt_that_would_cost_too_much_is_not_sent() -> None:
    limits = GatewayLimits(cost_usd=0.01)
    async with provider() as p, door(provider=p, limits=limits, usd_in=10.0) as d:
        long = {"model": "m", "messages": [{"role": "user", "content": "word " * 2000}]}
        assert (await d.http.post(CHAT, json=long)).status_code == 429
        assert (await d.http.post(CHAT, json=ask())).status_code == 200
    assert len(p.requests) == 1


async def test_an_answer_is_cut_to_the_tokens_that_are_left() -> None:
    limits = GatewayLimits(completion_tokens=100)
    async with provider() as p, door(provider=p, limits=limits) as d:
        await d.http.post(CHAT, json=ask(max_tokens=5000))
        await d.http.post(CHAT, json=ask(max_completion_tokens=5000, n=2))
        await d.http.post(CHAT, json=ask(max_tokens=7))
        await d.http.post(CHAT, json=ask())
    assert [r.get("max_tokens") for r in p.requests] == [100, None, 7, None]
    assert p.requests[1]["max_completion_tokens"] == 47  # (100 - 5) // 2
    # The record has what the agent asked for.
    assert next(d.session.trace().llm()).params["max_tokens"] == 5000


async def test_a_failed_call_costs_no_tokens() -> None:
    limits = GatewayLimits(completion_tokens=10)
    async with provider() as p, door(provider=p, limits=limits) as d:
        p.default = failed(500)
        for _ in range(3):
            assert (await d.http.post(CHAT, json=ask())).status_code == 502
        p.default = said("x")
        assert (await d.http.post(CHAT, json=ask())).status_code == 200


class SlowCatalog(WordCatalog):
    """Searches for `slow` stand until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.standing = 0
        self.most = 0

    def find(
        self,
        q: str,
        *,
        page: int = 1,
        shop_id: str | None = None,
        price: str | None = None,
        sort: str | None = None,
        service: Sequence[str] = (),
    ) -> list[Product]:
        if q == "slow":
            self.standing += 1
            self.most = max(self.most, self.standing)
            self.go.wait(20)
            self.standing -= 1
        return super().find(q, page=page, shop_id=shop_id, price=price, sort=sort, service=service)


async def test_one_session_cannot_take_all_search_threads() -> None:
    catalog = SlowCatalog()
    gateway = HttpGateway(catalog, search_threads=2)
    async with (
        gateway.session("greedy") as greedy,
        gateway.session("modest") as modest,
        http_client(greedy) as many,
        http_client(modest) as one,
    ):
        slow = [
            asyncio.create_task(many.post("/tools/find_product", json={"q": "slow"}))
            for _ in range(5)
        ]
        while not catalog.standing:  # noqa: ASYNC110
            await asyncio.sleep(0)
        answer = await one.post("/tools/find_product", json={"q": "mug"})
        assert len(answer.json()) == 1
        catalog.go.set()
        await asyncio.gather(*slow)
    assert catalog.most == 1
    await gateway.close()


async def test_a_search_in_flight_at_the_end_is_recorded() -> None:
    catalog = SlowCatalog()
    gateway = HttpGateway(catalog)
    async with gateway.session("run") as session, http_client(session) as http:
        call = asyncio.create_task(http.post("/tools/find_product", json={"q": "slow"}))
        while not catalog.standing:  # noqa: ASYNC110
            await asyncio.sleep(0)
        call.cancel()
    catalog.go.set()
    (event,) = session.trace().tools()
    assert (event.status, event.result, event.arguments) == (499, None, {"q": "slow"})
    await gateway.close()


def test_the_gateway_keeps_its_contract() -> None:
    gateway: Gateway = HttpGateway(WordCatalog())
    assert isinstance(gateway, HttpGateway)
