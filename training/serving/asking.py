"""What of the OpenAI wire is served here: a checked request into sampling, or one clear refusal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sandbox.models.request import ChatRequest, bad_request
from scoring.types import Json, JsonObject
from training.types import Sampling

UNSUPPORTED: Final = "model.unsupported_value"

_NEUTRAL: Final[dict[str, tuple[Json, ...]]] = {
    "top_k": (-1, 0),
    "min_p": (0,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "logit_bias": ({},),
    "top_logprobs": (0,),
    "stop": ([],),
    "tool_choice": ("auto", "none"),
    "parallel_tool_calls": (True,),
    "response_format": ({"type": "text"},),
    "enable_thinking": (True,),
    "chat_template_kwargs": ({}, {"enable_thinking": True}),
}
"""Parameters that are taken only where they change nothing, with those values."""
_TAKEN: Final = frozenset(
    {"temperature", "top_p", "n", "seed", "max_tokens", "max_completion_tokens", "logprobs"}
    | {"tools", "user"}
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, read. `max_tokens` None is all the room there is."""

    messages: tuple[JsonObject, ...]
    tools: tuple[JsonObject, ...]
    choices: int
    temperature: float
    top_p: float
    max_tokens: int | None
    seed: int | None
    logprobs: bool

    def sampling(self, room: int) -> Sampling:
        """How to sample within `room` tokens."""
        most = room if self.max_tokens is None else min(self.max_tokens, room)
        return Sampling(self.temperature, self.top_p, most, self.seed)


def read_asked(request: ChatRequest) -> Asked:
    """Read what a request asks for. Raises ModelError (AGENT) for what is not served here."""
    params = request.params
    for name, value in params.items():
        if name in _TAKEN:
            continue
        if not any(value == neutral for neutral in _NEUTRAL.get(name, ())):
            raise bad_request(f"{name} is not supported by this server", UNSUPPORTED)
    offered = () if params.get("tool_choice") == "none" else params.get("tools") or ()
    assert isinstance(offered, list | tuple)  # ChatRequest has looked at it
    return Asked(
        messages=tuple(_text_only(message) for message in request.messages),
        tools=tuple(tool for tool in offered if isinstance(tool, dict)),
        choices=request.choices,
        temperature=_number(params, "temperature", 1.0, 0.0, 2.0),
        top_p=_number(params, "top_p", 1.0, 0.0, 1.0),
        max_tokens=request.max_tokens,
        seed=_seed(params.get("seed")),
        logprobs=_flag(params.get("logprobs")),
    )


def _text_only(message: JsonObject) -> JsonObject:
    """The message with its role as the format has it: `developer` is `system`."""
    role = message["role"]
    if role == "developer":
        return message | {"role": "system"}
    if role == "function":
        raise bad_request("messages of role function are not supported: use tool", UNSUPPORTED)
    return message


def _number(params: JsonObject, name: str, default: float, low: float, high: float) -> float:
    value = params.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise bad_request(f"{name} must be a number from {low:g} to {high:g}")
    return float(value)


def _seed(value: Json) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise bad_request("seed must be a whole number")
    return value


def _flag(value: Json) -> bool:
    if value is not None and not isinstance(value, bool):
        raise bad_request("logprobs must be true or false")
    return bool(value)
