"""ProxyClient gives JSON, or None after its retries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.agent_kit.src.agent.proxy_client import ProxyClient
from tests.unit.sandbox.agent_kit.wire import Wire, scripted


@pytest.fixture
def wire() -> Iterator[Wire]:
    with scripted() as running:
        yield running


def client(wire: Wire, **options: object) -> ProxyClient:
    settings = {"max_retries": 3, "retry_delay": 0, "rate_limit_retry_delay": 0, **options}
    return ProxyClient(wire.url, **settings)  # type: ignore[arg-type]


def test_get_sends_the_parameters_and_decodes_the_answer(wire: Wire) -> None:
    wire.say([{"product_id": "1"}])
    answer = client(wire).get("/search/find_product", {"q": "red%2Bmug", "page": 1})
    assert answer == [{"product_id": "1"}]
    # Quoted by the agent and again by the client, as on the real network.
    assert wire.seen[0][:2] == ("GET", "/search/find_product?q=red%252Bmug&page=1")


def test_post_sends_json(wire: Wire) -> None:
    wire.say({"ok": True})
    assert client(wire).post("/inference/chat/completions", json_data={"n": 1}) == {"ok": True}
    assert wire.seen[0][2] == {"n": 1}


@pytest.mark.parametrize("status", [429, 500, 503, 0])
def test_what_may_pass_is_tried_again(wire: Wire, status: int) -> None:
    wire.answers = [(status, b"{}")]
    wire.say("at last")
    assert client(wire).get("/x") == "at last"
    assert len(wire.seen) == 2


def test_an_answer_that_is_no_json_is_tried_again(wire: Wire) -> None:
    wire.answers = [(200, b"<html>")]
    wire.say(1)
    assert client(wire).get("/x") == 1


def test_after_the_retries_there_is_none(wire: Wire) -> None:
    wire.answers = [(500, b"{}")]
    assert client(wire).get("/x") is None
    assert len(wire.seen) == 3


def test_a_refusal_is_final(wire: Wire) -> None:
    wire.answers = [(403, b"{}")]
    assert client(wire).get("/search/get_product_raw") is None
    assert len(wire.seen) == 1


def test_the_key_goes_to_inference_alone(wire: Wire) -> None:
    wire.say({})
    keyed = client(wire, api_key="k")
    keyed.post("/inference/chat/completions", json_data={})
    keyed.get("/search/find_product")
    client(wire).post("/inference/chat/completions", json_data={})
    given = [headers.get("authorization") for *_, headers in wire.seen]
    assert given == ["Bearer k", None, None]


def test_the_address_and_the_key_come_from_the_environment(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire.say({})
    monkeypatch.setenv("SANDBOX_PROXY_URL", wire.url)
    monkeypatch.setenv("CHUTES_ACCESS_TOKEN", "t")
    assert ProxyClient().post("/inference/x", json_data={}) == {}
    assert wire.seen[0][3]["authorization"] == "Bearer t"


def test_nobody_there_gives_none() -> None:
    nowhere = ProxyClient("http://127.0.0.1:9", max_retries=2, retry_delay=0)
    assert nowhere.get("/health") is None
