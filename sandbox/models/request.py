"""A chat request in the OpenAI schema, checked before any provider sees it.

What an agent may ask of a model is an allow-list. A provider runs tools of its own,
fetches image addresses and keeps logs when asked to: each would be a way out of a
sandbox that has no network, or a bill that nobody expects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from sandbox.exceptions import Fault, ModelError
from scoring.types import Json, JsonObject

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
MAX_MESSAGES = 4_096
MAX_CHOICES = 8
PARAMETERS = frozenset(
    {
        "temperature", "top_p", "top_k", "min_p", "n", "seed", "stop",
        "max_tokens", "max_completion_tokens",
        "presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias",
        "logprobs", "top_logprobs",
        "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call",
        "response_format", "reasoning_effort", "verbosity",
        "reasoning", "thinking", "enable_thinking", "chat_template_kwargs",
        "guided_json", "guided_choice", "user",
    }
)  # fmt: skip
"""Parameters that change how a model writes, and nothing else. Not `guided_regex`: one
pattern can hold up a server for everyone, and dictate an answer that nobody can tell."""


def bad_request(message: str, code: str = "model.bad_request") -> ModelError:
    """What the agent asked wrongly."""
    return ModelError(message, code=code, fault=Fault.AGENT)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request. `params` is the body without `model` and `messages`.

    With `accept_empty` off, an answer with neither text nor tool calls counts as a
    failure of the server and is asked for again.
    """

    model: str
    messages: tuple[JsonObject, ...]
    params: JsonObject = field(default_factory=dict)
    accept_empty: bool = True

    @classmethod
    def from_json(cls, body: Json) -> ChatRequest:
        """Read and check a request body. Raises ModelError (AGENT)."""
        if not isinstance(body, dict):
            raise bad_request("the body must be a JSON object")
        model = body.get("model")
        if not isinstance(model, str) or not model:
            raise bad_request("model must be the name of a model")
        if body.get("stream"):
            raise bad_request("streaming is not offered: leave `stream` out", "model.no_streaming")
        params: JsonObject = {
            name: value
            for name, value in body.items()
            if name not in ("model", "messages", "stream", "stream_options") and value is not None
        }
        for name in params:
            if name not in PARAMETERS:
                raise bad_request(f"the parameter {name[:100]!r} is not offered")
        check_messages(body.get("messages"))
        _check_tools(params.get("tools"))
        _bounded_integer(params, "n", 1, MAX_CHOICES)
        for name in ("max_tokens", "max_completion_tokens"):
            _bounded_integer(params, name, 1, 1 << 24)
        messages = cast("list[JsonObject]", body["messages"])
        return cls(model, tuple(messages), params)

    @property
    def choices(self) -> int:
        """How many completions are asked for."""
        n = self.params.get("n", 1)
        return n if isinstance(n, int) else 1

    @property
    def max_tokens(self) -> int | None:
        """The completion tokens asked for at most, of one choice."""
        for name in ("max_completion_tokens", "max_tokens"):
            value = self.params.get(name)
            if isinstance(value, int):
                return value
        return None

    def prompt_chars(self) -> int:
        """How long the prompt is, for an estimate of its price."""
        return sum(_chars(m) for m in self.messages) + _chars(self.params.get("tools"))


def check_messages(messages: Json) -> None:
    """Refuse what is not a list of chat messages made of text. Raises ModelError (AGENT)."""
    if not isinstance(messages, list) or not messages:
        raise bad_request("messages must be a list with at least one message")
    if len(messages) > MAX_MESSAGES:
        raise bad_request(f"messages has more than {MAX_MESSAGES:,} entries")
    for place, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            raise bad_request(f"messages[{place}] must be an object with a known role")
        _check_content(place, message.get("content"))
        calls = message.get("tool_calls")
        if calls is not None and not _is_objects(calls):
            raise bad_request(f"messages[{place}].tool_calls must be a list of objects")


def _check_content(place: int, content: Json) -> None:
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise bad_request(f"messages[{place}].content must be text")
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        text = part.get(kind) if isinstance(part, dict) and isinstance(kind, str) else None
        if kind not in ("text", "refusal") or not isinstance(text, str):
            raise bad_request(
                f"messages[{place}].content: only text parts are offered, no images or files"
            )


def _check_tools(tools: Json) -> None:
    if tools is None:
        return
    if not _is_objects(tools):
        raise bad_request("tools must be a list of objects")
    for tool in cast("list[JsonObject]", tools):
        function = tool.get("function")
        if tool.get("type") != "function" or not isinstance(function, dict):
            raise bad_request("only tools of type function are offered")
        if not isinstance(function.get("name"), str):
            raise bad_request("every tool needs function.name")


def _bounded_integer(params: JsonObject, name: str, low: int, high: int) -> None:
    value = params.get(name)
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise bad_request(f"{name} must be a whole number from {low} to {high:,}")


def _is_objects(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _chars(value: Json | Sequence[Json]) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(k) + _chars(v) for k, v in value.items())
    if isinstance(value, list):
        return sum(_chars(v) for v in value)
    return 4
