"""What the model itself said, to the token: a sampled prefix is never rendered anew.

A chat API carries messages, a model works on tokens, and text does not always become the
tokens again that it came from: a call with its keys in another order, thinking that ends
without its mark. So the tokens of each answer are remembered under the conversation that it
belongs to; when that comes back with observations, they are bridged onto those tokens.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from scoring.types import Json, JsonObject
from training.render.chat import ChatRenderer


@dataclass(frozen=True, slots=True)
class Prompt:
    """The tokens that a model is given. `bridged`: they go on from what it sampled itself."""

    ids: list[int]
    bridged: bool


@dataclass(frozen=True, slots=True)
class _Said:
    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]


class Conversations:
    """The last `capacity` answers by their conversation. Older ones are rendered again."""

    def __init__(self, renderer: ChatRenderer, capacity: int = 1024) -> None:
        self._renderer = renderer
        self._capacity = capacity
        self._said: OrderedDict[bytes, _Said] = OrderedDict()

    def prompt(self, messages: Sequence[JsonObject], tools: Sequence[JsonObject]) -> Prompt:
        """The prompt of a conversation. Raises RenderError."""
        last = max((i for i, m in enumerate(messages) if m.get("role") == "assistant"), default=-1)
        if 0 <= last < len(messages) - 1:
            said = self._said.get(_key(messages[: last + 1], tools))
            if said is not None:
                ids = self._renderer.bridge(
                    said.prompt_ids, said.completion_ids, messages[last + 1 :], tools
                )
                if ids is not None:
                    return Prompt(ids, bridged=True)
        return Prompt(self._renderer.render(messages, tools), bridged=False)

    def remember(
        self,
        messages: Sequence[JsonObject],
        tools: Sequence[JsonObject],
        answer: JsonObject,
        prompt_ids: Sequence[int],
        completion_ids: Sequence[int],
    ) -> None:
        """Keep the tokens of `answer`, which was given to `messages`."""
        key = _key([*messages, answer], tools)
        self._said[key] = _Said(tuple(prompt_ids), tuple(completion_ids))
        self._said.move_to_end(key)
        while len(self._said) > self._capacity:
            self._said.popitem(last=False)


def _key(messages: Sequence[JsonObject], tools: Sequence[JsonObject]) -> bytes:
    """What tells conversations apart: all that is rendered, and no ids."""
    told: Json = [list(tools), [_told(message) for message in messages]]
    return hashlib.sha256(orjson.dumps(told)).digest()


def _told(message: Mapping[str, Json]) -> Json:
    calls = message.get("tool_calls")
    functions: list[Json] = [
        [function.get("name"), function.get("arguments")]
        for call in (calls if isinstance(calls, list) else ())
        if isinstance(call, dict) and isinstance(function := call.get("function"), dict)
    ]
    return [
        message.get("role"),
        message.get("content") or "",
        message.get("reasoning_content") or "",
        functions,
    ]
