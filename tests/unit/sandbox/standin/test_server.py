"""The server speaks OpenAI's wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from sandbox.standin.registry import NARRATOR, SHOPPER, models, register
from sandbox.standin.server import create_app
from sandbox.standin.wire import count_tokens
from sandbox.tools.schemas import TOOL_SCHEMAS

ASK: dict[str, Any] = {
    "model": SHOPPER,
    "messages": [{"role": "user", "content": "Show me a red mug under 90 pesos"}],
    "tools": list(TOOL_SCHEMAS),
}


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app())
    async with httpx.AsyncClient(transport=transport, base_url="http://standin") as client:
        yield client


async def post(client: httpx.AsyncClient, **changes: object) -> httpx.Response:
    return await client.post("/v1/chat/completions", json=ASK | changes)


async def test_models_are_listed_under_names_that_say_what_they_are(
    client: httpx.AsyncClient,
) -> None:
    listed = (await client.get("/v1/models")).json()["data"]
    assert {m["id"] for m in listed} == set(models())
    assert all(m["id"].startswith("standin/") for m in listed)


async def test_tools_are_called_natively_when_they_are_offered(client: httpx.AsyncClient) -> None:
    answer = (await post(client)).json()
    choice = answer["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    function = choice["message"]["tool_calls"][0]["function"]
    assert function["name"] == "find_product"
    assert '"price": "-90"' in function["arguments"]


async def test_tag_text_is_answered_where_no_tools_are_offered(client: httpx.AsyncClient) -> None:
    messages = [{"role": "system", "content": "use <tool_call>"}, *ASK["messages"]]
    answer = (await post(client, tools=None, messages=messages)).json()
    message = answer["choices"][0]["message"]
    assert message["content"].startswith("<think>")
    assert "<tool_call>[{" in message["content"]
    assert "tool_calls" not in message


async def test_usage_counts_prompt_and_completion(client: httpx.AsyncClient) -> None:
    one = (await post(client)).json()["usage"]
    longer = [{"role": "system", "content": "word " * 100}, *ASK["messages"]]
    two = (await post(client, messages=longer)).json()["usage"]
    assert one["completion_tokens"] >= 30
    assert two["prompt_tokens"] >= one["prompt_tokens"] + 100
    assert one["total_tokens"] == one["prompt_tokens"] + one["completion_tokens"]


async def test_the_same_request_gets_the_same_bytes(client: httpx.AsyncClient) -> None:
    assert (await post(client)).content == (await post(client)).content


async def test_several_choices_are_given_when_asked(client: httpx.AsyncClient) -> None:
    answer = (await post(client, n=2)).json()
    assert [c["index"] for c in answer["choices"]] == [0, 1]


async def test_text_stops_at_the_token_limit(client: httpx.AsyncClient) -> None:
    messages = [{"role": "user", "content": "tell me about ten red mugs that I could buy"}]
    answer = (
        await post(client, model=NARRATOR, tools=None, messages=messages, max_tokens=5)
    ).json()
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 5
    assert count_tokens(answer["choices"][0]["message"]["content"]) == 5


@pytest.mark.parametrize(
    ("changes", "status", "param"),
    [
        ({"stream": True}, 400, "stream"),
        ({"model": "gpt-9"}, 404, "model"),
        ({"messages": []}, 400, "messages"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, 400, "messages.0.role"),
        ({"messages": "hello"}, 400, "messages"),
        ({"n": 99}, 400, "n"),
        ({"tools": "all"}, 400, "tools"),
    ],
)
async def test_a_wrong_request_gets_an_error_of_openais_shape(
    client: httpx.AsyncClient, changes: dict[str, object], status: int, param: str
) -> None:
    answer = await post(client, **changes)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert error["param"] == param
    assert error["message"]
    assert error["type"] == "invalid_request_error"


async def test_a_body_that_is_no_json_and_a_wrong_path_get_the_same_shape(
    client: httpx.AsyncClient,
) -> None:
    broken = await client.post(
        "/v1/chat/completions", content=b"{", headers={"content-type": "application/json"}
    )
    assert broken.status_code == 400
    assert broken.json()["error"]["type"] == "invalid_request_error"
    missing = await client.get("/v1/nothing")
    assert missing.status_code == 404
    assert "error" in missing.json()


async def test_a_classification_is_one_word_and_a_narration_keeps_the_facts(
    client: httpx.AsyncClient,
) -> None:
    classify = [
        {"role": "system", "content": "Classify the query: Product, Shop or Voucher."},
        {"role": "user", "content": "Query: Find a shop that sells a cup and a plate"},
    ]
    answer = (await post(client, tools=None, messages=classify)).json()
    assert answer["choices"][0]["message"]["content"] == "Shop"
    narrate = [{"role": "user", "content": "Chosen:\n12 Teapot at 260"}]
    answer = (await post(client, tools=None, messages=narrate)).json()
    assert "12 Teapot at 260" in answer["choices"][0]["message"]["content"]


def test_a_name_that_hides_a_stand_in_is_refused() -> None:
    with pytest.raises(ValueError, match="standin/"):
        register("gpt-9", models()[SHOPPER])


@pytest.mark.parametrize(
    "off",
    [
        {"reasoning_effort": "none"},
        {"enable_thinking": False},
        {"chat_template_kwargs": {"enable_thinking": False}},
    ],
)
async def test_a_model_whose_thinking_is_off_calls_the_same_and_says_nothing(
    client: httpx.AsyncClient, off: dict[str, object]
) -> None:
    thinking = (await post(client)).json()["choices"][0]["message"]
    silent = (await post(client, **off)).json()["choices"][0]["message"]
    assert thinking["content"]
    assert silent["content"] is None
    assert silent["tool_calls"] == thinking["tool_calls"]
