"""The Anthropic wire, seen as if it spoke OpenAI's."""

from __future__ import annotations

import json

import pytest

from sandbox.exceptions import Fault, ModelError
from sandbox.models import ChatRequest, ModelClient, ModelRoute, RetryPolicy, Wire
from sandbox.models.anthropic_schema import to_anthropic
from scoring.types import Json, JsonObject
from tests.unit.sandbox.provider import Provider, Reply, failed, provider

TOOL: JsonObject = {
    "type": "function",
    "function": {"name": "find", "description": "d", "parameters": {"type": "object"}},
}
CONVERSATION: list[JsonObject] = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": [{"type": "text", "text": "a "}, {"type": "text", "text": "mug"}]},
    {
        "role": "assistant",
        "content": "looking",
        "tool_calls": [
            {"id": "t1", "type": "function", "function": {"name": "find", "arguments": '{"q": 1}'}},
            {"id": "t2", "type": "function", "function": {"name": "find", "arguments": ""}},
        ],
    },
    {"role": "tool", "tool_call_id": "t1", "content": "one"},
    {"role": "tool", "tool_call_id": "t2", "content": "two"},
    {"role": "developer", "content": "and polite"},
    {"role": "user", "content": "well?"},
]
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "here"},
        {"type": "tool_use", "id": "t3", "name": "find", "input": {"q": "müg"}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 7, "output_tokens": 3, "cache_read_input_tokens": 2},
}


def client_of(p: Provider) -> ModelClient:
    route = ModelRoute("m", "s", p.url, Wire.ANTHROPIC, upstream_model="claude", usd_in=1.0)
    return ModelClient([route], retry=RetryPolicy(tries=2, base_s=0.001))


async def test_a_conversation_with_tools_goes_there_and_back() -> None:
    params: JsonObject = {"tools": [TOOL], "temperature": 1.7, "max_tokens": 9, "stop": "END"}
    async with provider(Reply(body=json.dumps(MESSAGE).encode())) as p:
        client = client_of(p)
        answer = await client.complete(ChatRequest("m", tuple(CONVERSATION), params))
        await client.close()
    assert p.paths == ["/v1/messages"]
    (sent,) = p.requests
    assert sent["system"] == "be brief\n\nand polite"
    assert sent["temperature"] == 1.0
    assert sent["stop_sequences"] == ["END"]
    assert sent["tools"] == [
        {"name": "find", "description": "d", "input_schema": {"type": "object"}}
    ]
    messages = sent["messages"]
    assert isinstance(messages, list)
    assert messages[0] == {"role": "user", "content": [{"type": "text", "text": "a mug"}]}
    assert messages[1] == {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "looking"},
            {"type": "tool_use", "id": "t1", "name": "find", "input": {"q": 1}},
            {"type": "tool_use", "id": "t2", "name": "find", "input": {}},
        ],
    }
    assert messages[2] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "one"},
            {"type": "tool_result", "tool_use_id": "t2", "content": "two"},
            {"type": "text", "text": "well?"},
        ],
    }
    assert answer.choices == [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "here",
                "reasoning_content": "hm",
                "tool_calls": [
                    {
                        "id": "t3",
                        "type": "function",
                        "function": {"name": "find", "arguments": '{"q": "müg"}'},
                    }
                ],
            },
            "finish_reason": "tool_calls",
        }
    ]
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (9, 3)
    assert answer.cost_usd == pytest.approx(9e-6)


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        ("required", {"type": "any"}),
        ({"type": "function", "function": {"name": "find"}}, {"type": "tool", "name": "find"}),
    ],
)
def test_tool_choice_is_translated(choice: Json, sent: Json) -> None:
    body: JsonObject = {"messages": [{"role": "user", "content": "x"}], "tools": [TOOL]}
    assert to_anthropic(body | {"tool_choice": choice}, "c")["tool_choice"] == sent


def test_a_schema_for_the_answer_is_translated() -> None:
    wanted: JsonObject = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"a": 1}}}
    body: JsonObject = {"messages": [{"role": "user", "content": "x"}], "response_format": wanted}
    assert to_anthropic(body, "c")["output_config"] == {
        "format": {"type": "json_schema", "schema": {"a": 1}}
    }


@pytest.mark.parametrize(
    "change",
    [
        {"n": 2},
        {"logprobs": True},
        {"functions": [{}]},
        {"response_format": {"type": "json_object"}},
        {"tools": [TOOL], "tool_choice": "sometimes"},
        {"messages": [{"role": "function", "content": "x"}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": "["}}]}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": "[]"}}]}]},
        {"messages": [{"role": "assistant", "tool_calls": [{}]}]},
    ],
)
def test_what_has_no_counterpart_is_the_agents_fault(change: JsonObject) -> None:
    body: JsonObject = {"messages": [{"role": "user", "content": "x"}]}
    with pytest.raises(ModelError) as caught:
        to_anthropic(body | change, "c")
    assert caught.value.fault is Fault.AGENT


@pytest.mark.parametrize(
    ("reply", "code", "fault"),
    [
        (failed(529, "overloaded"), "model.unavailable", Fault.VALIDATOR),
        (failed(429), "model.rate_limited", Fault.VALIDATOR),
        (failed(401), "model.key_refused", Fault.VALIDATOR),
        (failed(400, "prompt is too long: 9 tokens"), "model.context_too_long", Fault.AGENT),
        (Reply(body=b"{"), "model.broken_answer", Fault.VALIDATOR),
        (Reply(body=b"[]"), "model.broken_answer", Fault.VALIDATOR),
        (Reply(body=b'{"content": null}'), "model.broken_answer", Fault.VALIDATOR),
        (Reply(body=b'{"content": [7]}'), "model.broken_answer", Fault.VALIDATOR),
        (Reply(drop=True), "model.broken_answer", Fault.VALIDATOR),
    ],
)
async def test_failures_land_on_the_right_side(reply: Reply, code: str, fault: Fault) -> None:
    async with provider() as p:
        p.default = reply
        client = client_of(p)
        with pytest.raises(ModelError) as caught:
            await client.complete(ChatRequest("m", ({"role": "user", "content": "x"},)))
        await client.close()
    assert (caught.value.code, caught.value.fault) == (code, fault)


async def test_a_refusal_is_an_answer() -> None:
    refusal = MESSAGE | {"content": [], "stop_reason": "refusal"}
    async with provider(Reply(body=json.dumps(refusal).encode())) as p:
        client = client_of(p)
        answer = await client.complete(ChatRequest("m", ({"role": "user", "content": "x"},)))
        await client.close()
    assert answer.empty
    assert answer.choices[0]["finish_reason"] == "content_filter"


@pytest.mark.parametrize(
    "arguments",
    ['{"q": NaN}', '{"q": 1e999}', r'{"q": "\ud800"}', '{"q": ' + "[" * 9000 + "]" * 9000 + "}"],
)
async def test_arguments_that_no_request_can_carry_are_the_agents_fault(arguments: str) -> None:
    call: JsonObject = {"id": "t", "function": {"name": "find", "arguments": arguments}}
    said: JsonObject = {"role": "assistant", "content": None, "tool_calls": [call]}
    async with provider(Reply(body=json.dumps(MESSAGE).encode())) as p:
        client = client_of(p)
        with pytest.raises(ModelError) as caught:
            await client.complete(ChatRequest("m", (said,)))
        await client.close()
    assert caught.value.fault is Fault.AGENT
    assert p.requests == []
