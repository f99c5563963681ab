"""Qwen3's chat format over `renderers`: one rendering for corpora, rollouts and serving.

The prompt that a served model gets and the sample that it was trained on come from the same
calls, so that they agree to the token: the prompt before each turn is a prefix of the
sample. All text of messages goes through `harmless` first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from renderers.configs import Qwen3RendererConfig
from renderers.parsing import ToolCallParseStatus
from renderers.qwen3 import Qwen3Renderer

from sandbox.tools import TOOL_SCHEMAS
from scoring.types import Json, JsonObject
from training.exceptions import RenderError
from training.render.marks import harmless
from training.types import Ids, Mask

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True, eq=False)
class Rendered:
    """A whole conversation: ids, what of it the model said, and whose message each token is."""

    ids: Ids
    mask: Mask
    """True at what the model said: thinking, text, calls, end of turn."""
    message: Ids
    """The index of the message that each token belongs to; -1 for none."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a completion says.

    `message` is an assistant's message of the chat API; `tool_calls` in it holds only calls
    that are JSON with a name and an object of arguments. `malformed` are the others, as text.
    """

    message: JsonObject
    malformed: tuple[str, ...] = ()
    open_thinking: bool = False
    """The completion ended within its thinking: nothing else is in it."""


class ChatRenderer:
    """Renders and parses Qwen3's chat under one tokenizer. Immutable, and cheap to make."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer
        # Named: for a directory's tokenizer `renderers` would choose one that cannot bridge.
        self._renderer: Any = Qwen3Renderer(cast("Any", tokenizer), Qwen3RendererConfig())

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """The tokens that end a turn: `<|im_end|>`, `<|endoftext|>`."""
        return tuple(self._renderer.get_stop_token_ids())

    def render(
        self,
        messages: Sequence[Mapping[str, Json]],
        tools: Sequence[JsonObject] = (),
        *,
        generation_prompt: bool = True,
    ) -> list[int]:
        """The ids of a conversation; with `generation_prompt`, up to where the model speaks.

        Raises RenderError.
        """
        rendered = self._render(messages, tools, generation_prompt=generation_prompt)
        return list(rendered.token_ids)

    def render_sample(
        self, messages: Sequence[Mapping[str, Json]], tools: Sequence[JsonObject] = ()
    ) -> Rendered:
        """A whole conversation with the mask of what the model said. Raises RenderError."""
        rendered = self._render(messages, tools, generation_prompt=False)
        return Rendered(
            np.asarray(rendered.token_ids, dtype=np.int32),
            np.asarray(rendered.sampled_mask, dtype=np.bool_),
            np.asarray(rendered.message_indices, dtype=np.int32),
        )

    def bridge(
        self,
        prompt_ids: Sequence[int],
        completion_ids: Sequence[int],
        new_messages: Sequence[Mapping[str, Json]],
        tools: Sequence[JsonObject] = (),
    ) -> list[int] | None:
        """The next prompt: what was sampled, to the token, with the new messages after it.

        None when it cannot be had that way (a user's message after thinking, which the format
        then drops): render anew and begin a new segment.
        """
        shown = [_readable(message) for message in new_messages]
        rendered = self._renderer.bridge_to_next_turn(
            list(prompt_ids), list(completion_ids), shown, tools=in_order(tools) or None
        )
        return None if rendered is None else list(rendered.token_ids)

    def parse(self, completion_ids: Sequence[int], prompt_ids: Sequence[int] = ()) -> Parsed:
        """What a completion says. Calls are numbered `call_1` … within it. Never raises."""
        try:
            found = self._renderer.parse_response(
                list(completion_ids), prompt_ids=list(prompt_ids) or None
            )
        except (ValueError, RecursionError):
            # JSON nested a thousand deep, numbers of five thousand digits.
            raw = self.tokenizer.decode(list(completion_ids), skip_special_tokens=True)
            return Parsed({"role": "assistant", "content": ""}, (str(raw),))
        calls: list[Json] = []
        malformed: list[str] = []
        for call in found.tool_calls:
            text = _arguments_text(call)
            if text is None:
                malformed.append(str(call.raw))
                continue
            function: JsonObject = {"name": str(call.name), "arguments": text}
            number = len(calls) + 1
            calls.append({"id": f"call_{number}", "type": "function", "function": function})
        message: JsonObject = {"role": "assistant", "content": found.content}
        if found.reasoning_content:
            message["reasoning_content"] = found.reasoning_content
        if calls:
            message["tool_calls"] = calls
        return Parsed(message, tuple(malformed), found.reasoning_complete is False)

    def _render(
        self,
        messages: Sequence[Mapping[str, Json]],
        tools: Sequence[JsonObject],
        *,
        generation_prompt: bool,
    ) -> Any:
        if not messages:
            raise RenderError("there is no message to render")
        return self._renderer.render(
            [_readable(message) for message in messages],
            tools=in_order(tools) or None,
            add_generation_prompt=generation_prompt,
        )


def in_order(tools: Sequence[JsonObject]) -> list[JsonObject]:
    """The tools as they are rendered: the seven of the arena as `TOOL_SCHEMAS` has them.

    A corpus and the wire keep the keys of a schema in other orders, and the text of a prompt
    shall not depend on it. Other tools stay as they are given.
    """
    given = list(tools)
    return list(TOOL_SCHEMAS) if given == list(TOOL_SCHEMAS) else given


_ROLES = frozenset({"system", "user", "assistant", "tool"})


def _readable(message: Mapping[str, Json]) -> dict[str, Any]:
    """A message as the renderer takes it, its text harmless. Raises RenderError."""
    role = message.get("role")
    if role not in _ROLES:
        raise RenderError(f"a message of role {str(role)[:40]!r} cannot be rendered")
    shown: dict[str, Any] = {"role": role, "content": harmless(_text(message.get("content")))}
    if role != "assistant":
        return shown
    # Always there: without it the renderer looks for thinking inside the content.
    thinking = message.get("reasoning_content") or message.get("reasoning")
    shown["reasoning_content"] = harmless(_text(thinking))
    if calls := message.get("tool_calls"):
        if not isinstance(calls, list):
            raise RenderError("tool_calls are no list")
        shown["tool_calls"] = [_readable_call(call) for call in calls]
    return shown


def _readable_call(call: Json) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise RenderError("a tool call has no function")
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments or {}, ensure_ascii=False, separators=(",", ":"))
    name = harmless(_text(function.get("name")))
    return {"function": {"name": name, "arguments": harmless(arguments)}}


def _arguments_text(call: Any) -> str | None:
    """A parsed call's arguments as JSON text, its keys in their order; None for no object."""
    if call.status is not ToolCallParseStatus.OK or not isinstance(call.arguments, dict):
        return None
    try:
        text = json.dumps(
            call.arguments, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
    except (ValueError, RecursionError):
        return None
    return text.encode("utf-8", "replace").decode()


def _text(content: Json) -> str:
    """The text of a content: a text, or the text parts of a list of parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(
            str(part["text"]) for part in content if isinstance(part, dict) and "text" in part
        )
    raise RenderError(f"a content of type {type(content).__name__} cannot be rendered")
