"""Reads a chat request: what was asked, which calls were made, what was answered.

Both formats give the same `Conversation`: native tool calls, and tag text with the
whole history in one user message.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sandbox.standin.moves import Call
from sandbox.standin.tagtext import Segment, read_calls, read_segments
from scoring.types import Json, JsonObject

MAX_QUERY_CHARS = 4000


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call that was made, and its answer once there is one."""

    call: Call
    answered: bool = False
    answer: Json = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A chat request, read.

    `offered` names the tools of the request's `tools`, None when it has none: then the
    answer is tag text. `system` is all system text, `last_user` the latest user text,
    `users` all user texts in order.
    """

    query: str
    exchanges: tuple[Exchange, ...]
    offered: frozenset[str] | None
    system: str
    last_user: str
    users: tuple[str, ...] = ()

    @property
    def speaks_tags(self) -> bool:
        """Whether tag text is in use or asked for."""
        return "<tool_call>" in self.system or "<tool_call>" in self.last_user


def read_conversation(messages: Sequence[JsonObject], tools: Sequence[JsonObject]) -> Conversation:
    """Read the messages and tools of a chat request. Never raises on their content."""
    users = [_text(m.get("content")) for m in messages if m.get("role") == "user"]
    systems = [
        _text(m.get("content")) for m in messages if m.get("role") in ("system", "developer")
    ]
    exchanges = [*_native(messages), *_tagged(messages)]
    return Conversation(
        query=_query(users),
        exchanges=tuple(exchanges),
        offered=frozenset(_names(tools)) if tools else None,
        system="\n".join(systems),
        last_user=users[-1] if users else "",
        users=tuple(users),
    )


def _text(content: Json) -> str:
    """The text of a message's content: a string, or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(
        str(part.get("text", ""))
        for part in parts
        if isinstance(part, dict) and part.get("type") == "text"
    )


def _query(users: Sequence[str]) -> str:
    first = users[0] if users else ""
    segments = read_segments(first)
    asked = next((s.value for s in segments if s.role == "user"), None)
    if isinstance(asked, str):
        return asked[:MAX_QUERY_CHARS]
    before = first.split("<think>")[0].split("<tool_call>")[0].split("<obs>")[0]
    lines = [line for line in before.splitlines() if not line.startswith("# ")]
    return "\n".join(lines).strip()[:MAX_QUERY_CHARS]


def _names(tools: Sequence[JsonObject]) -> Iterator[str]:
    for tool in tools:
        function = tool.get("function")
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            yield str(function["name"])


def _native(messages: Sequence[JsonObject]) -> Iterator[Exchange]:
    answers = {
        str(m.get("tool_call_id")): _decoded(_text(m.get("content")))
        for m in messages
        if m.get("role") == "tool"
    }
    for message in messages:
        calls = message.get("tool_calls")
        if message.get("role") != "assistant" or not isinstance(calls, list):
            continue
        for entry in calls:
            function = entry.get("function") if isinstance(entry, dict) else None
            if not isinstance(entry, dict) or not isinstance(function, dict):
                continue
            arguments = _decoded(_text(function.get("arguments")))
            call = Call(
                str(function.get("name", "")), arguments if isinstance(arguments, dict) else {}
            )
            identifier = str(entry.get("id"))
            yield Exchange(call, identifier in answers, answers.get(identifier))


def _decoded(text: str) -> Json:
    """JSON where it is JSON, else the text itself."""
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def _tagged(messages: Sequence[JsonObject]) -> Iterator[Exchange]:
    """Calls and observations of tag text, paired in their order.

    The ids in `<obs>` are the agent's own and stand in no call, so order is all there is.
    """
    waiting: deque[Call] = deque()
    for segment in _segments(messages):
        if segment.role == "tool_call":
            yield from (Exchange(call) for call in waiting)
            waiting = deque(read_calls(segment.value))
        elif segment.role == "obs":
            entries = segment.value if isinstance(segment.value, list) else [segment.value]
            for entry in entries:
                if waiting:
                    results = entry.get("results") if isinstance(entry, dict) else entry
                    yield Exchange(waiting.popleft(), True, results)
    yield from (Exchange(call) for call in waiting)


def _segments(messages: Sequence[JsonObject]) -> Iterator[Segment]:
    for message in messages:
        if message.get("role") in ("user", "assistant"):
            yield from read_segments(_text(message.get("content")))
