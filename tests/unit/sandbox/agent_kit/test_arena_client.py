"""The typed client speaks `POST /tools/{name}` and the chat wire."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.agent_kit.arena_client import ArenaClient, GatewayError
from tests.unit.sandbox.agent_kit.wire import Wire, scripted


@pytest.fixture
def wire() -> Iterator[Wire]:
    with scripted() as running:
        yield running


def client(wire: Wire) -> ArenaClient:
    return ArenaClient(wire.url, model="standin/shopper-1", wait=0, tries=3)


def test_each_tool_sends_the_arguments_of_the_contract(wire: Wire) -> None:
    wire.say([])
    arena = client(wire)
    arena.find_product("mug", price="10-20", service="COD")
    arena.view_product_information(["1", "2"])
    arena.check_product_match("1", {"color": "red"})
    arena.find_products_in_same_shop([{"q": "mug"}])
    arena.calculate_voucher([10, 2.5], "fixed", 5, 10, 20)
    arena.recommend_product(["1", "2"])
    arena.terminate()
    assert [(path, body) for _, path, body, _ in wire.seen] == [
        ("/tools/find_product", {"q": "mug", "page": 1, "price": "10-20", "service": "COD"}),
        ("/tools/view_product_information", {"product_ids": "1,2"}),
        ("/tools/check_product_match", {"product_id": "1", "requirements": '{"color": "red"}'}),
        ("/tools/find_products_in_same_shop", {"product_queries": '[{"q": "mug"}]'}),
        (
            "/tools/calculate_voucher",
            {
                "product_prices": "10,2.5",
                "voucher_type": "fixed",
                "discount_value": 5,
                "threshold": 10,
                "budget": 20,
                "cap": 0,
            },
        ),
        ("/tools/recommend_product", {"product_ids": "1,2"}),
        ("/tools/terminate", {"status": "success"}),
    ]


def test_a_completion_gives_the_message(wire: Wire) -> None:
    wire.say({"choices": [{"message": {"role": "assistant", "content": "hello"}}]})
    message = client(wire).chat([{"role": "user", "content": "hi"}], temperature=0)
    assert message.get("content") == "hello"
    body = wire.seen[0][2]
    assert body["model"] == "standin/shopper-1"
    assert body["temperature"] == 0
    assert "tools" not in body


def test_a_completion_without_choices_is_an_error(wire: Wire) -> None:
    wire.say({"choices": []})
    with pytest.raises(GatewayError, match="without choices"):
        client(wire).chat([{"role": "user", "content": "hi"}])


def test_429_and_5xx_are_tried_again(wire: Wire) -> None:
    wire.say({}, 429)
    wire.say({}, 503)
    wire.say([1])
    assert client(wire).tool("find_product", {"q": "x"}) == [1]


def test_a_refusal_is_raised_with_its_words(wire: Wire) -> None:
    wire.say({"error": "one recommendation was made"}, 409)
    with pytest.raises(GatewayError, match="one recommendation") as raised:
        client(wire).recommend_product(["1"])
    assert raised.value.status == 409
    assert len(wire.seen) == 1


def test_no_answer_at_all_has_status_0(wire: Wire) -> None:
    wire.answers = [(0, b"")]
    with pytest.raises(GatewayError) as raised:
        client(wire).terminate()
    assert raised.value.status == 0
    assert len(wire.seen) == 3
