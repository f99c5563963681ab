"""OpenAI's chat wire: what a request may say, and how answers and errors look."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from sandbox.standin.moves import Move
from sandbox.standin.registry import Speech
from sandbox.standin.tagtext import write_move
from scoring.types import Json, JsonObject

_TOKEN = re.compile(r"\w{1,6}|[^\w\s]")
CREATED = 1_700_000_000
"""`created` of every answer: the same request gets the same bytes."""


class ChatMessage(BaseModel):
    """One message; unknown fields are kept out of the way."""

    model_config = ConfigDict(extra="allow")
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, JsonValue]] | None = None
    tool_calls: list[dict[str, JsonValue]] | None = None
    tool_call_id: str | None = None


class ChatRequest(BaseModel):
    """A chat completion request. Sampling parameters are taken and change nothing."""

    model_config = ConfigDict(extra="allow")
    model: str
    messages: list[ChatMessage] = Field(min_length=1)
    tools: list[dict[str, JsonValue]] | None = None
    tool_choice: str | dict[str, JsonValue] | None = None
    stream: bool | None = False
    n: int | None = Field(default=1, ge=1, le=8)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)


def count_tokens(text: str) -> int:
    """Tokens of `text`, counted simply: pieces of words of at most six characters, and signs."""
    return len(_TOKEN.findall(text))


def prompt_tokens(request: ChatRequest) -> int:
    """Tokens of all messages and tool schemas."""
    text = json.dumps([m.model_dump(exclude_none=True) for m in request.messages])
    tools = json.dumps(request.tools) if request.tools else ""
    return count_tokens(text) + count_tokens(tools)


def completion(request: ChatRequest, answer: Move | Speech) -> JsonObject:
    """The chat.completion object for an answer."""
    message, finish = _message(request, answer)
    text = str(message.get("content") or "")
    calls = message.get("tool_calls")
    completed = count_tokens(text) + (count_tokens(json.dumps(calls)) if calls else 0)
    prompted = prompt_tokens(request)
    count = request.n or 1
    choices: list[Json] = [
        {"index": i, "message": message, "finish_reason": finish, "logprobs": None}
        for i in range(count)
    ]
    digest = hashlib.sha256(json.dumps([request.model, prompted, message]).encode()).hexdigest()
    return {
        "id": f"chatcmpl-{digest[:24]}",
        "object": "chat.completion",
        "created": CREATED,
        "model": request.model,
        "choices": choices,
        "usage": {
            "prompt_tokens": prompted,
            "completion_tokens": completed * count,
            "total_tokens": prompted + completed * count,
        },
    }


def _message(request: ChatRequest, answer: Move | Speech) -> tuple[JsonObject, str]:
    limit = request.max_completion_tokens or request.max_tokens
    if isinstance(answer, Move) and request.tools and request.tool_choice != "none":
        silent = answer.calls and not _thinks(request)
        think = None if silent else answer.think
        content = think if answer.calls else (answer.response or answer.think)
        message: JsonObject = {"role": "assistant", "content": content}
        if answer.calls:
            message["tool_calls"] = [
                {
                    "id": _call_id(len(request.messages), index, call.name, call.arguments),
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": json.dumps(call.arguments, ensure_ascii=False),
                    },
                }
                for index, call in enumerate(answer.calls)
            ]
            return message, "tool_calls"
        return message, "stop"
    text = write_move(answer) if isinstance(answer, Move) else answer.text
    if limit and count_tokens(text) > limit:
        ends = [m.end() for m in _TOKEN.finditer(text)]
        return {"role": "assistant", "content": text[: ends[limit - 1]]}, "length"
    return {"role": "assistant", "content": text}, "stop"


def _thinks(request: ChatRequest) -> bool:
    """Whether thinking is on. Models that reason let a request turn it off."""
    extra = request.model_extra or {}
    template = extra.get("chat_template_kwargs")
    switch = template.get("enable_thinking") if isinstance(template, dict) else None
    off = (extra.get("enable_thinking"), switch)
    return extra.get("reasoning_effort") != "none" and False not in off


def _call_id(turn: int, index: int, name: str, arguments: JsonObject) -> str:
    text = json.dumps([turn, index, name, arguments], sort_keys=True)
    return "call_" + hashlib.sha256(text.encode()).hexdigest()[:20]


def error(message: str, *, kind: str, code: str | None = None, param: str | None = None) -> Json:
    """An error object as OpenAI's API shapes it."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
