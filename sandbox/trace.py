"""The trace: what the gateway saw of one run, in order, recorded outside the sandbox.

A conversation with a model grows by a few messages a call, and agents send all of
it each time. The trace therefore keeps every distinct message once, in
`Trace.messages`, and an `LlmEvent` names its prompt by indices into that table.

All times are milliseconds since the session began, from a monotonic clock. Events stand
in the order in which their answers were recorded, which is before they were sent: what
an agent did because of an answer has started after that answer's event ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

from sandbox.exceptions import ErrorInfo
from scoring.types import Json, JsonObject

TRACE_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one completion, as the provider counted them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class LlmEvent:
    """One request for a completion and its answer.

    `params` is the request body without `messages` (model, temperature, tools,
    tool_choice, response_format, n …). `choices` are the provider's choices as
    JSON (`{"index", "message": {...}, "finish_reason"}`), empty when it failed.
    `waited_ms` is the part of `elapsed_ms` that is the validator's: queue and
    provider. `server` is the operator's name for the route that answered;
    `standin` says that a rule-based model did. `extras` is what else the provider's
    answer held (id, created, system_fingerprint …).
    """

    seq: int
    started_ms: float
    elapsed_ms: float
    waited_ms: float
    model: str
    server: str
    standin: bool
    prompt: tuple[int, ...]
    params: JsonObject
    status: int
    choices: tuple[JsonObject, ...] = ()
    usage: Usage | None = None
    cost_usd: float = 0.0
    error: ErrorInfo | None = None
    extras: JsonObject = field(default_factory=dict)
    kind: Literal["llm"] = "llm"

    @property
    def empty(self) -> bool:
        """Answered, but no choice has text or a tool call. Handed on as it was; whose
        fault it is cannot be told, since a prompt can ask for silence."""
        return self.error is None and not any(speaks(choice) for choice in self.choices)


@dataclass(frozen=True, slots=True)
class ToolEvent:
    """One tool call as it reached the gateway, and the full answer.

    `via` is `search` for the SN15 wire (`GET /search/...`) and `tools` for
    `POST /tools/{name}`. `arguments` are as the tool received them. `query` is the
    raw query string of the wire, for the record.
    """

    seq: int
    started_ms: float
    elapsed_ms: float
    via: Literal["search", "tools"]
    name: str
    arguments: JsonObject
    status: int
    result: Json
    query: str | None = None
    error: ErrorInfo | None = None
    kind: Literal["tool"] = "tool"


@dataclass(frozen=True, slots=True)
class HttpEvent:
    """Any other request: a forbidden path, a health check, a body too large."""

    seq: int
    started_ms: float
    elapsed_ms: float
    method: str
    path: str
    status: int
    body_bytes: int = 0
    error: ErrorInfo | None = None
    kind: Literal["http"] = "http"


Event: TypeAlias = LlmEvent | ToolEvent | HttpEvent


@dataclass(frozen=True, slots=True)
class Trace:
    """All events of one run. `limits_hit` names each limit that turned a request away,
    `unrecorded` counts requests refused after the request limit, which are not kept."""

    messages: tuple[JsonObject, ...] = ()
    events: tuple[Event, ...] = ()
    limits_hit: tuple[str, ...] = field(default=())
    unrecorded: int = 0

    def llm(self) -> Iterator[LlmEvent]:
        """The completions, in order."""
        return (e for e in self.events if isinstance(e, LlmEvent))

    def tools(self) -> Iterator[ToolEvent]:
        """The tool calls, in order."""
        return (e for e in self.events if isinstance(e, ToolEvent))

    def prompt(self, event: LlmEvent) -> list[JsonObject]:
        """The messages that `event` sent, resolved."""
        return [self.messages[i] for i in event.prompt]

    def to_json(self) -> JsonObject:
        """The JSON object that records hold."""
        return {
            "schema": TRACE_SCHEMA,
            "messages": cast("list[Json]", list(self.messages)),
            "events": [_event_to_json(e) for e in self.events],
            "limits_hit": list(self.limits_hit),
            "unrecorded": self.unrecorded,
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> Trace:
        """Read what `to_json` wrote. Raises ValueError on another schema."""
        if value.get("schema") != TRACE_SCHEMA:
            raise ValueError(f"trace schema {value.get('schema')!r}, expected {TRACE_SCHEMA}")
        events = cast("list[JsonObject]", value["events"])
        return cls(
            messages=tuple(cast("list[JsonObject]", value["messages"])),
            events=tuple(_event_from_json(e) for e in events),
            limits_hit=tuple(cast("list[str]", value["limits_hit"])),
            unrecorded=cast("int", value["unrecorded"]),
        )


def speaks(choice: JsonObject) -> bool:
    """Whether a choice of a completion has text or tool calls."""
    message = choice.get("message")
    if not isinstance(message, dict):
        return False
    content = message.get("content")
    return bool(content.strip() if isinstance(content, str) else content) or bool(
        message.get("tool_calls")
    )


def _event_to_json(event: Event) -> JsonObject:
    common: JsonObject = {
        "kind": event.kind,
        "seq": event.seq,
        "started_ms": event.started_ms,
        "elapsed_ms": event.elapsed_ms,
        "status": event.status,
        "error": cast("Json", event.error.to_json()) if event.error else None,
    }
    match event:
        case LlmEvent():
            usage: Json = None
            if event.usage:
                usage = {
                    "prompt_tokens": event.usage.prompt_tokens,
                    "completion_tokens": event.usage.completion_tokens,
                }
            return common | {
                "waited_ms": event.waited_ms,
                "model": event.model,
                "server": event.server,
                "standin": event.standin,
                "prompt": list(event.prompt),
                "params": event.params,
                "choices": list(event.choices),
                "usage": usage,
                "cost_usd": event.cost_usd,
                "extras": event.extras,
            }
        case ToolEvent():
            return common | {
                "via": event.via,
                "name": event.name,
                "arguments": event.arguments,
                "result": event.result,
                "query": event.query,
            }
        case HttpEvent():
            return common | {
                "method": event.method,
                "path": event.path,
                "body_bytes": event.body_bytes,
            }


def _event_from_json(value: JsonObject) -> Event:
    # The values were written by `_event_to_json`; a record's signature vouches for
    # them, so types are asserted to the checker and not parsed again.
    fields = dict(value)
    error = fields.pop("error")
    kind = fields.pop("kind")
    info = ErrorInfo.from_json(cast("dict[str, str]", error)) if error else None
    if kind == "llm":
        usage = cast("dict[str, int] | None", fields.pop("usage"))
        prompt = tuple(cast("list[int]", fields.pop("prompt")))
        choices = tuple(cast("list[JsonObject]", fields.pop("choices")))
        return LlmEvent(
            error=info,
            usage=Usage(**usage) if usage else None,
            prompt=prompt,
            choices=choices,
            **fields,  # type: ignore[arg-type]
        )
    if kind == "tool":
        return ToolEvent(error=info, **fields)  # type: ignore[arg-type]
    if kind == "http":
        return HttpEvent(error=info, **fields)  # type: ignore[arg-type]
    raise ValueError(f"unknown event kind {kind!r}")
