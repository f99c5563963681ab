"""Traces and records made for tests: one scripted behaviour, told in either dialect."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from arena.runs.canonical import canonical
from corpus_export.normalise import normalise
from corpus_export.types import (
    Features,
    Reject,
    ResultSource,
    ToolCall,
    ToolResult,
    Trajectory,
    Turn,
)
from sandbox.trace import Trace
from scoring.types import Json, JsonObject
from tests.unit.sandbox.provenance.traces import SYSTEM, TraceBuilder, listing

QUERY = "I'm looking for a blue canvas backpack under 500 pesos"
WIRE_TOOLS = ("find_product", "view_product_information")
"""The tools that an agent in tag text calls over the wire; others run in its own code."""


@dataclass(frozen=True)
class Called:
    """A call of a script, and its result."""

    name: str
    arguments: JsonObject
    result: Json


@dataclass(frozen=True)
class Move:
    """One completion of a script."""

    think: str = ""
    calls: tuple[Called, ...] = ()
    response: str = ""


def find(q: str, *ids: int, **filters: Json) -> Called:
    return Called("find_product", {"q": q, **filters}, listing(*(ids or (1, 2))))


def view(*ids: int) -> Called:
    shown: list[JsonObject] = [
        {
            "product_id": str(i),
            "short_description": "",
            "description": f"Bag number {i}, made of canvas",
            "attributes": {"colour": ["blue"]},
            "sku_options": {},
        }
        for i in ids
    ]
    ids_text = ",".join(str(i) for i in ids)
    return Called("view_product_information", {"product_ids": ids_text}, cast("Json", shown))


def recommend(*ids: int | str) -> Called:
    text = ",".join(str(i) for i in ids)
    said = f"Having recommended the products to the user: {text}."
    return Called("recommend_product", {"product_ids": text}, said)


def terminate(status: str = "success") -> Called:
    said = f"The interaction has been completed with status: {status}"
    return Called("terminate", {"status": status}, said)


GOOD: tuple[Move, ...] = (
    Move("I search for blue canvas backpacks first.", (find("blue canvas backpack", 1, 2),)),
    Move("Number 1 and number 2 are close: I look at both.", (view(1, 2),)),
    Move("Number 1 is blue and cheaper than number 2.", (recommend(1),)),
    Move("The recommendation was taken.", (terminate(),), "I recommend number 1."),
)
"""A run that passes every gate."""


@dataclass
class NativeAgent:
    """Messages grow; the model speaks `tool_calls`; every tool is a POST."""

    build: TraceBuilder = field(default_factory=TraceBuilder)
    messages: list[JsonObject] = field(
        default_factory=lambda: [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": QUERY},
        ]
    )
    turns: int = 0

    def speak(self, move: Move, *, beside: Sequence[JsonObject] = ()) -> JsonObject:
        """One completion, answered with the move's message and then those `beside` it."""
        self.turns += 1
        message = native_message(move, f"t{self.turns}")
        self.build.llm(self.messages, message, *beside)
        self.messages = [*self.messages, message]
        return message

    def act(self, move: Move) -> None:
        """The move's calls dispatched, and their results shown."""
        for number, made in enumerate(move.calls):
            call: JsonObject = {"name": made.name, "parameters": made.arguments}
            self.build.dispatch(call, made.result)
            self.show(number, made.result)
        if not move.calls:
            self.messages = [*self.messages, {"role": "user", "content": "Go on."}]

    def show(self, number: int, result: Json) -> None:
        """A result of the last turn, as the model gets to see it."""
        shown: JsonObject = {
            "role": "tool",
            "tool_call_id": f"t{self.turns}-{number}",
            "content": json.dumps(result),
        }
        self.messages = [*self.messages, shown]

    def play(self, moves: Sequence[Move]) -> Trace:
        for move in moves:
            self.speak(move)
            self.act(move)
        return self.build.trace


def native_message(move: Move, prefix: str = "t1") -> JsonObject:
    """A move as a native assistant message."""
    message: JsonObject = {"role": "assistant", "content": move.response or None}
    if move.think:
        message["reasoning_content"] = move.think
    if move.calls:
        message["tool_calls"] = [
            {
                "id": f"{prefix}-{number}",
                "type": "function",
                "function": {"name": c.name, "arguments": json.dumps(c.arguments)},
            }
            for number, c in enumerate(move.calls)
        ]
    return message


def tag_text(move: Move) -> str:
    """A move as tag text."""
    calls = [{"name": c.name, "parameters": c.arguments} for c in move.calls]
    return (
        (f"<think>{move.think}</think>\n" if move.think else "")
        + (f"<tool_call>{json.dumps(calls)}</tool_call>\n" if calls else "")
        + (f"<response>{move.response}</response>" if move.response else "")
    )


@dataclass
class TagAgent:
    """The whole history in one user text; searches and views over the wire, the rest in code."""

    build: TraceBuilder = field(default_factory=TraceBuilder)
    history: str = f"<user>{QUERY}</user>"

    @property
    def prompt(self) -> list[JsonObject]:
        return [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": f"# History\n{self.history}"},
        ]

    def speak(self, move: Move, *, text: str | None = None) -> None:
        self.build.llm(self.prompt, tag_text(move) if text is None else text)

    def act(self, move: Move) -> None:
        for made in move.calls:
            if made.name in WIRE_TOOLS:
                self.build.wire(made.name, made.result, **made.arguments)  # type: ignore[arg-type]
        self.remember(move, [c.result for c in move.calls])

    def remember(self, move: Move, results: Sequence[Json]) -> None:
        """The turn and what the agent shows of its results, appended to the history."""
        calls = [
            {"name": c.name, "parameters": c.arguments, "tool_call_id": f"id{n}"}
            for n, c in enumerate(move.calls)
        ]
        if move.think:
            self.history += f"\n\n<think>{move.think}</think>"
        if calls:
            seen = [{"tool_call_id": f"id{n}", "results": r} for n, r in enumerate(results)]
            self.history += f"\n\n<tool_call>{json.dumps(calls)}</tool_call>"
            self.history += f"\n\n<obs>{json.dumps(seen)}</obs>"
        if move.response:
            self.history += f"\n\n<response>{move.response}</response>"

    def play(self, moves: Sequence[Move]) -> Trace:
        for move in moves:
            self.speak(move)
            self.act(move)
        return self.build.trace


def record_of(
    trace: Trace, /, *, axis: str = "A", dialogue: Sequence[JsonObject] = (), **more: Json
) -> JsonObject:
    """As much of a record as this stage reads, through the bytes that records are."""
    value: JsonObject = {
        "trace": trace.to_json(),
        "dialogue": list(dialogue),
        "axis": {"axis": axis},
        "failure": None,
    }
    decoded: JsonObject = json.loads(canonical(value | more))
    return decoded


def trajectory_of(trace: Trace, /, **more: Json) -> Trajectory:
    """The trajectory of an axis A record; a reject fails the test."""
    made = normalise(record_of(trace, **more), QUERY)  # type: ignore[arg-type]
    assert isinstance(made, Trajectory), made
    return made


def reject_of(trace: Trace, /, **more: Json) -> Reject:
    """Why a record has no trajectory; one that has fails the test."""
    made = normalise(record_of(trace, **more), QUERY)  # type: ignore[arg-type]
    assert isinstance(made, Reject), made
    return made


def trajectory(*moves: Move) -> Trajectory:
    """A trajectory without a trace: every call answered."""
    turns: list[Turn] = []
    number = 0
    for move in moves:
        calls: list[ToolCall] = []
        results: list[ToolResult] = []
        for made in move.calls:
            number += 1
            name = f"call_{number}"
            arguments = json.dumps(made.arguments, sort_keys=True)
            calls.append(ToolCall(name, made.name, arguments))
            results.append(ToolResult(name, json.dumps(made.result), ResultSource.PROMPT))
        turns.append(Turn(move.think, move.response, tuple(calls), tuple(results), None))
    return Trajectory(QUERY, tuple(turns), "native")


def features_like(
    *,
    depth: int = 4,
    queries: int = 2,
    verified: bool = True,
    regularity: float = 1.0,
    shape: Sequence[str] = ("find_product", "recommend_product", "terminate"),
) -> Features:
    return Features(
        depth, queries, verified, regularity, tuple(shape), depth, len(shape), tokens=1000
    )
