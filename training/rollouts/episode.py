"""One rollout: a conversation with a model over one gateway session of its own.

What happens is what the distilled agent does in a race (`neurons/agents/distilled.py`): the
corpus's system text and tools, every call carried out as it was emitted, observations as
compact JSON, a turn without a call is the end. A test holds the two together. No agent's code
runs, so no sandbox is needed: requests are handed to the session as its door would hand them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, cast

import orjson

from corpus_export.normalise import SYSTEM_TEXT
from corpus_export.rows import TOOLS
from sandbox.gateway.http import BodyTooLarge, Request
from sandbox.gateway.session import Session
from sandbox.tools.registry import TOOL_NAMES
from scoring.exceptions import ErrorInfo, Fault
from scoring.types import Json, JsonObject
from training.render.marks import harmless

TEXT_CHARS: Final = 600
LIST_ITEMS: Final = 60
TOOL_LIST: Final = cast("list[Json]", json.loads(TOOLS))
"""The seven tools in the corpus's order of keys."""


class Ended(StrEnum):
    """How a rollout ended. Stable: files of rollouts hold them."""

    TERMINATED = "terminated"
    NO_CALL = "no_call"
    """A turn called nothing: the model has nothing to add, or was cut off."""
    TURN_LIMIT = "turn_limit"
    NO_ROOM = "no_room"
    """The gateway refused the next turn: the context, or a limit of the run, is used up."""
    FAILED = "failed"
    """The model server, or the host, failed: nothing is told of the model."""


@dataclass(frozen=True, slots=True)
class Episode:
    """What came of one rollout. `dialogue` is what an agent would hand in."""

    messages: tuple[JsonObject, ...]
    dialogue: tuple[JsonObject, ...]
    ended: Ended
    failure: ErrorInfo | None = None


@dataclass(slots=True)
class _Talk:
    query: str
    messages: list[JsonObject]
    steps: list[JsonObject] = field(default_factory=list)

    def episode(self, ended: Ended, failure: ErrorInfo | None = None) -> Episode:
        return Episode(tuple(self.messages), tuple(self.steps), ended, failure)


async def play(
    session: Session, query: str, model: str, *, max_turns: int, params: JsonObject | None = None
) -> Episode:
    """Let `model` work on `query` until it ends, or for `max_turns` turns.

    `params` go into each request. Raises nothing on what a model says.
    """
    talk = _Talk(
        query,
        [{"role": "system", "content": SYSTEM_TEXT}, {"role": "user", "content": query}],
    )
    for number in range(1, max_turns + 1):
        body: JsonObject = {
            "model": model,
            "messages": list[Json](talk.messages),
            "tools": TOOL_LIST,
            **(params or {}),
        }
        status, answer = await _post(session, "/inference/chat/completions", body)
        message = _message(answer) if status == 200 else None
        if message is None:
            return _stopped(session, talk, status, answer)
        said = spoken(message)
        talk.messages.append(said)
        done: list[Json] = []
        talk.steps.append(_step(number, query, said, done))
        for call in cast("list[JsonObject]", said.get("tool_calls") or []):
            name, arguments = read_call(call)
            result = await _carried_out(session, name, arguments)
            identity = str(call.get("id", ""))
            talk.messages.append(
                {"role": "tool", "tool_call_id": identity, "content": observed(result)}
            )
            parameters: Json = arguments or {}
            done.append({"name": name, "parameters": parameters, "tool_call_id": identity,
                         "result": result})  # fmt: skip
            if name == "terminate" and arguments is not None:
                return talk.episode(Ended.TERMINATED)
        if failure := session.infrastructure_error():
            return talk.episode(Ended.FAILED, failure)
        if not done:
            return talk.episode(Ended.NO_CALL)
    return talk.episode(Ended.TURN_LIMIT)


def _stopped(session: Session, talk: _Talk, status: int, answer: Json) -> Episode:
    """The end of a rollout whose next turn was refused or failed."""
    failure = session.infrastructure_error()
    if failure is None and status >= 500:
        failure = ErrorInfo("rollout.no_answer", Fault.VALIDATOR, f"the gateway said {status}")
    if failure is not None:
        return talk.episode(Ended.FAILED, failure)
    return talk.episode(Ended.NO_ROOM)


def spoken(message: Mapping[str, Json]) -> JsonObject:
    """The model's message as it is handed back: thinking, text and calls, nothing else."""
    said: JsonObject = {"role": "assistant", "content": message.get("content") or ""}
    thinking = message.get("reasoning_content") or message.get("reasoning")
    if thinking:
        said["reasoning_content"] = thinking
    given = message.get("tool_calls")
    calls = [call for call in given if isinstance(call, dict)] if isinstance(given, list) else []
    if calls:
        said["tool_calls"] = cast("list[Json]", calls)
    return said


def observed(result: Json) -> str:
    """A result as the model reads it: a text as it is, anything else as compact JSON."""
    shown = shortened(result)
    if not isinstance(shown, str):
        shown = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    return harmless(shown)


def shortened(value: Json) -> Json:
    """A result without its longest parts."""
    if isinstance(value, str):
        return value if len(value) <= TEXT_CHARS else value[:TEXT_CHARS] + "..."
    if isinstance(value, list):
        return [shortened(item) for item in value[:LIST_ITEMS]]
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in list(value.items())[:LIST_ITEMS]}
    return value


def read_call(call: Mapping[str, Json]) -> tuple[str, JsonObject | None]:
    """The name of a call and its arguments; None where they are no JSON object."""
    function = call.get("function")
    if not isinstance(function, dict):
        return "", None
    arguments = function.get("arguments")
    if not isinstance(arguments, dict):
        try:
            arguments = json.loads(cast("str", arguments or ""))
        except (TypeError, ValueError, RecursionError):
            arguments = None
    return str(function.get("name", "")), arguments if isinstance(arguments, dict) else None


async def _carried_out(session: Session, name: str, arguments: JsonObject | None) -> Json:
    if arguments is None:
        return {"error": "the arguments are not a JSON object"}
    if name not in TOOL_NAMES:
        return {"error": f"there is no tool {name[:100]!r}"}
    status, answer = await _post(session, f"/tools/{name}", arguments)
    return answer if answer is not None else {"error": f"status {status}"}


async def _post(session: Session, path: str, body: JsonObject) -> tuple[int, Json]:
    """What the session's door would make of a POST with this body."""
    try:
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return 400, {"error": "the arguments cannot be sent"}

    async def read(limit: int) -> bytes:
        if len(data) > limit:
            raise BodyTooLarge
        return data

    request = Request("POST", path, "", len(data), len(path), read)
    response = await session.handle(request)
    try:
        decoded: Json = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        decoded = None
    return response.status, decoded


def _message(answer: Json) -> JsonObject | None:
    choices = answer.get("choices") if isinstance(answer, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return message if isinstance(message, dict) else None


def _step(number: int, query: str, said: JsonObject, done: list[Json]) -> JsonObject:
    """One step of the dialogue; `done` fills up as its calls are made."""
    thinking = said.get("reasoning_content", "")
    return {
        "completion": {
            "reasoning_content": thinking,
            "content": said["content"],
            "message": {"think": thinking, "tool_call": done, "response": said["content"]},
        },
        "extra_info": {"step": number, "query": query, "timestamp": int(time.time() * 1000)},
    }
