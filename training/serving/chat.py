"""A policy and a renderer as a chat model: messages and tools in, an OpenAI completion out.

The same object answers the wire (`app`) and the rollouts of training, so that a model is
asked in a race as it was in training.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from sandbox.exceptions import Fault, ModelError
from sandbox.models import faults
from sandbox.models.request import ChatRequest
from sandbox.strict_json import harmless_text
from scoring.types import Json, JsonObject
from training.exceptions import RenderError
from training.render.chat import ChatRenderer, Parsed
from training.serving.asking import read_asked
from training.serving.conversations import Conversations
from training.types import Generated, Policy, Stop

INVALID_CALL: Final = "invalid_tool_call"
"""The name of a call that cannot be read so far as to have one."""
_NAME: Final = re.compile(r'"name"\s*:\s*"([A-Za-z0-9_.-]{1,64})"')


@dataclass(frozen=True, slots=True)
class Answered:
    """A completion in the OpenAI schema, and the tokens that it came from."""

    body: JsonObject
    prompt_ids: tuple[int, ...]
    generated: tuple[Generated, ...]
    """One for each choice."""
    parsed: tuple[Parsed, ...]
    bridged: bool
    """Whether the prompt goes on from what the model sampled itself."""


class ChatModel:
    """Answers chat requests for one model name. For many tasks of one event loop.

    `context` is the most tokens of prompt and completion together.
    """

    def __init__(
        self,
        name: str,
        renderer: ChatRenderer,
        policy: Policy,
        context: int,
        *,
        conversations: Conversations | None = None,
    ) -> None:
        self.name = name
        self.context = context
        self._renderer = renderer
        self._policy = policy
        self._conversations = conversations or Conversations(renderer)
        self._numbers = itertools.count(1)

    def for_one(self) -> ChatModel:
        """The same model for one conversation, which remembers no other: two that say the
        same in other tokens must not take each other's."""
        own = Conversations(self._renderer, capacity=1)
        return ChatModel(self.name, self._renderer, self._policy, self.context, conversations=own)

    async def complete(self, request: ChatRequest) -> Answered:
        """Answer a request.

        Raises ModelError (AGENT) for what is not served or does not fit the context, and
        what the policy raises.
        """
        asked = read_asked(request)
        try:
            prompt = self._conversations.prompt(asked.messages, asked.tools)
        except RenderError as error:
            raise ModelError(error.message, code=faults.BAD_REQUEST, fault=Fault.AGENT) from None
        self._check_room(len(prompt.ids), asked.max_tokens)
        sampling = asked.sampling(self.context - len(prompt.ids))
        generated = tuple(await self._policy.generate([prompt.ids] * asked.choices, sampling))
        earlier = sum(_calls_of(message) for message in asked.messages)
        parsed = tuple(self._renderer.parse(said.ids, prompt.ids) for said in generated)
        messages = [_message(one, earlier) for one in parsed]
        for message, said in zip(messages, generated, strict=True):
            self._conversations.remember(asked.messages, asked.tools, message, prompt.ids, said.ids)
        choices: list[Json] = [
            self._choice(index, message, said, logprobs=asked.logprobs)
            for index, (message, said) in enumerate(zip(messages, generated, strict=True))
        ]
        body: JsonObject = {
            "id": f"chatcmpl-{next(self._numbers)}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": self.name,
            "choices": choices,
            "usage": _usage(len(prompt.ids), sum(len(said.ids) for said in generated)),
        }
        return Answered(body, tuple(prompt.ids), generated, parsed, prompt.bridged)

    def _check_room(self, prompt: int, asked: int | None) -> None:
        """Refuse what does not fit, in the words by which clients of vLLM know it."""
        if prompt + (asked or 1) <= self.context:
            return
        wanted = f"{prompt} tokens in the messages"
        if asked is not None:
            wanted += f", {asked} in the completion"
        raise ModelError(
            f"This model's maximum context length is {self.context} tokens. However, you "
            f"requested {prompt + (asked or 1)} tokens ({wanted}). Please reduce the length of "
            "the messages or completion.",
            code=faults.TOO_LONG,
            fault=Fault.AGENT,
        )

    def _choice(
        self, index: int, message: JsonObject, said: Generated, *, logprobs: bool
    ) -> JsonObject:
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        return {
            "index": index,
            "message": message,
            "finish_reason": "length" if said.stop is Stop.LENGTH else reason,
            "logprobs": {"content": self._logprobs(said)} if logprobs else None,
        }

    def _logprobs(self, said: Generated) -> list[Json]:
        """Each sampled token, the one that ended the turn included.

        The log-probability is that at the request's temperature, before top-p.
        """
        told: list[Json] = []
        for token, logprob in zip(said.ids, said.logprobs, strict=True):
            text = str(self._renderer.tokenizer.decode([token]))
            raw: list[Json] = list(text.encode("utf-8", "replace"))
            told.append({"token": text, "logprob": logprob, "bytes": raw, "top_logprobs": []})
        return told


def _message(parsed: Parsed, earlier: int) -> JsonObject:
    """The assistant's message, its calls numbered on from the conversation's.

    A call that is no JSON goes out with its text as the arguments: who carries calls out
    answers it with an error, and the model reads that.
    """
    calls: list[JsonObject] = [
        cast("JsonObject", call)
        for call in cast("Sequence[Json]", parsed.message.get("tool_calls") or ())
    ]
    for raw in parsed.malformed:
        named = _NAME.search(raw)
        function: JsonObject = {
            "name": named[1] if named else INVALID_CALL,
            "arguments": _unreadable(harmless_text(raw)),
        }
        calls.append({"type": "function", "function": function})
    message: JsonObject = {
        "role": "assistant",
        "content": parsed.message.get("content") or None,
    }
    thinking = parsed.message.get("reasoning_content")
    if isinstance(thinking, str) and thinking.strip():
        message["reasoning_content"] = thinking.strip()
    if calls:
        message["tool_calls"] = [
            call | {"id": f"call_{earlier + number}"} for number, call in enumerate(calls, start=1)
        ]
    return message


def _unreadable(raw: str) -> str:
    """The text of a broken call, so that nobody takes it for arguments: no JSON object."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return raw
    return json.dumps(raw) if isinstance(value, dict) else raw


def _calls_of(message: JsonObject) -> int:
    calls = message.get("tool_calls")
    return len(calls) if isinstance(calls, list) else 0


def _usage(prompt: int, completion: int) -> JsonObject:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
