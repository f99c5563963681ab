"""Between the OpenAI chat schema and Anthropic's Messages API; pure functions.

Parameters without a counterpart (seed, penalties, logit_bias …) are left out, as
Anthropic's own compatibility layer does; those that would change the shape of the
answer (n, logprobs, JSON mode) are refused.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import cast

from sandbox import strict_json
from sandbox.models import faults
from sandbox.models.request import bad_request
from scoring.types import Json, JsonObject

DEFAULT_MAX_TOKENS = 4_096
"""Anthropic demands a number; a shopping turn has a few hundred tokens."""
_SAME_NAME = ("top_p", "top_k", "thinking")
_NOT_OFFERED = ("functions", "function_call", "logprobs", "top_logprobs",
                "guided_json", "guided_choice", "guided_regex")  # fmt: skip
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


def to_anthropic(body: JsonObject, model: str) -> JsonObject:
    """A Messages request for a chat request. Raises ModelError (AGENT)."""
    for name in _NOT_OFFERED:
        if body.get(name):
            raise bad_request(f"{name} is not offered by this model")
    if body.get("n", 1) != 1:
        raise bad_request("this model gives one choice at a time: leave n out")
    system, messages = _conversation(cast("list[JsonObject]", body["messages"]))
    request: JsonObject = {
        "model": model,
        "max_tokens": body.get("max_completion_tokens")
        or body.get("max_tokens")
        or DEFAULT_MAX_TOKENS,
        "messages": cast("list[Json]", messages),
    }
    if system:
        request["system"] = system
    request |= {name: body[name] for name in _SAME_NAME if name in body}
    temperature = body.get("temperature")
    if isinstance(temperature, int | float):
        request["temperature"] = min(float(temperature), 1.0)
    stop = body.get("stop")
    if stop:
        request["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if body.get("tools"):
        request["tools"] = [_tool(tool) for tool in cast("list[JsonObject]", body["tools"])]
        request["tool_choice"] = _tool_choice(body)
    output = _output_config(body)
    if output:
        request["output_config"] = output
    return request


def from_anthropic(message: Mapping[str, Json]) -> JsonObject:
    """A chat completion for a Message. Raises ProviderError when it is none."""
    blocks = message.get("content")
    if not isinstance(blocks, list):
        raise faults.broken("has no content")
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[Json] = []
    for block in blocks:
        if not isinstance(block, dict):
            raise faults.broken("has a block that is no object")
        match block.get("type"):
            case "text":
                texts.append(str(block.get("text", "")))
            case "thinking":
                thoughts.append(str(block.get("thinking", "")))
            case "tool_use":
                calls.append(_call(block))
    answer: JsonObject = {"role": "assistant", "content": "".join(texts) or None}
    if thoughts:
        answer["reasoning_content"] = "".join(thoughts)
    if calls:
        answer["tool_calls"] = calls
    finish = _FINISH.get(str(message.get("stop_reason")), "stop")
    return {
        "id": message.get("id"),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": message.get("model"),
        "choices": [{"index": 0, "message": answer, "finish_reason": finish}],
        "usage": _usage(message.get("usage")),
        "stop_reason": message.get("stop_reason"),
    }


def _conversation(messages: list[JsonObject]) -> tuple[str, list[JsonObject]]:
    """System text, and turns in which no role stands twice in a row."""
    system: list[str] = []
    turns: list[tuple[str, list[Json]]] = []
    for message in messages:
        role = message["role"]
        text = _text(message.get("content"))
        blocks: list[Json] = []
        if role in ("system", "developer"):
            system.append(text)
            continue
        if role == "function":
            raise bad_request("messages of role function are not offered by this model")
        if role == "tool":
            blocks.append(
                {
                    "type": "tool_result",
                    "tool_use_id": message.get("tool_call_id"),
                    "content": text,
                }
            )
        else:
            if text.strip():  # an empty block is refused there
                blocks.append({"type": "text", "text": text})
            blocks += [
                _use(call) for call in cast("list[JsonObject]", message.get("tool_calls") or [])
            ]
        speaker = "assistant" if role == "assistant" else "user"
        if turns and turns[-1][0] == speaker:
            turns[-1][1].extend(blocks)
        elif blocks:
            turns.append((speaker, blocks))
    return "\n\n".join(part for part in system if part), [
        {"role": speaker, "content": blocks} for speaker, blocks in turns
    ]


def _text(content: Json) -> str:
    if isinstance(content, list):
        parts = cast("list[JsonObject]", content)
        return "".join(str(part.get("text", part.get("refusal", ""))) for part in parts)
    return content if isinstance(content, str) else ""


def _use(call: JsonObject) -> JsonObject:
    function = call.get("function")
    if not isinstance(function, dict):
        raise bad_request("every tool call needs a function")
    try:
        # Strictly: what no JSON can hold would fail in our own hands when it is sent.
        arguments = strict_json.read(str(function.get("arguments") or "{}").encode())
    except ValueError:
        raise bad_request("the arguments of a tool call are not JSON") from None
    if not isinstance(arguments, dict):
        raise bad_request("the arguments of a tool call must be a JSON object")
    return {
        "type": "tool_use",
        "id": call.get("id"),
        "name": function.get("name"),
        "input": arguments,
    }


def _call(block: Mapping[str, Json]) -> JsonObject:
    arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
    return {
        "id": block.get("id"),
        "type": "function",
        "function": {"name": block.get("name"), "arguments": arguments},
    }


def _tool(tool: JsonObject) -> JsonObject:
    function = cast("JsonObject", tool["function"])
    described: JsonObject = {
        "name": function["name"],
        "input_schema": function.get("parameters") or {"type": "object"},
    }
    if function.get("description"):
        described["description"] = function["description"]
    return described


def _tool_choice(body: JsonObject) -> JsonObject:
    choice = body.get("tool_choice", "auto")
    chosen: JsonObject
    if isinstance(choice, dict):
        function = choice.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        chosen = {"type": "tool", "name": name}
    elif choice in ("auto", "none"):
        chosen = {"type": choice}
    elif choice == "required":
        chosen = {"type": "any"}
    else:
        raise bad_request("tool_choice must be auto, none, required or a function")
    if body.get("parallel_tool_calls") is False and chosen["type"] != "none":
        chosen["disable_parallel_tool_use"] = True
    return chosen


def _output_config(body: JsonObject) -> JsonObject:
    config: JsonObject = {}
    wanted = body.get("response_format")
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if isinstance(wanted, dict) and kind == "json_schema":
        schema = wanted.get("json_schema")
        config["format"] = {
            "type": "json_schema",
            "schema": schema.get("schema") if isinstance(schema, dict) else None,
        }
    elif wanted is not None and kind != "text":
        raise bad_request("this model offers response_format json_schema, not json_object")
    effort = body.get("reasoning_effort")
    if effort in ("low", "medium", "high"):
        config["effort"] = effort
    return config


def _usage(value: Json) -> JsonObject:
    counts = value if isinstance(value, dict) else {}

    def count(name: str) -> int:
        number = counts.get(name)
        return number if isinstance(number, int) else 0

    cached = count("cache_read_input_tokens")
    prompt = count("input_tokens") + cached + count("cache_creation_input_tokens")
    completion = count("output_tokens")
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
