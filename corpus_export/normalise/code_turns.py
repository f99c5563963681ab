"""Axis B: the calls that code made, as turns, so that they can be rewritten or studied.

Every dispatch is a call, in the order of the wire. Where a completion emitted it, its
thinking stands in the turn; else there is none, whatever the agent's dialogue claims.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from corpus_export.normalise.answered import Truth, Wire
from corpus_export.normalise.made import MadeTurns
from corpus_export.normalise.speech import Speech, read_speeches
from corpus_export.normalise.texts import clean, compact, in_tool_order, observation_text
from corpus_export.types import Dialect, LeftOut, ResultSource, ToolCall, ToolResult, Turn
from sandbox.catalog.interface import Catalog
from sandbox.provenance.calls import RECOMMEND, TERMINATE, Call
from sandbox.provenance.dialogue import dialogue_calls
from sandbox.trace import LlmEvent, ToolEvent, Trace
from scoring.types import Json, JsonObject


@dataclass(frozen=True, slots=True)
class _Dispatch:
    """One call that was made, and where in the trace; the dialogue's stand at its end."""

    at: int
    call: Call
    arguments: JsonObject
    truth: Truth | None


def code_turns(
    trace: Trace, dialogue: Sequence[Any], wire: Wire, catalog: Catalog | None
) -> MadeTurns:
    """One turn per dispatch; those of one completion are one turn."""
    emitted = _Emitted(trace)
    turns: list[Turn] = []
    last: int | None = None
    dispatches = [*_on_wire(wire), *_in_dialogue(trace, dialogue, wire, catalog)]
    for number, one in enumerate(dispatches, start=1):
        source = emitted.take(one.call, one.at)
        completion, speech = source if source is not None else (None, None)
        turn = _turn(one, number, speech)
        if completion is not None and completion == last:
            turns[-1] = _with_calls(turns[-1], turn)
        else:
            turns.append(turn)
        last = completion
    return MadeTurns(tuple(turns), Dialect.CODE, emitted.left_out())


def _turn(one: _Dispatch, number: int, speech: Speech | None) -> Turn:
    name, arguments = clean(one.call.name), compact(one.arguments, sort_keys=True)
    call = ToolCall(f"call_{number}", name, arguments)
    results: tuple[ToolResult, ...] = ()
    if one.truth is not None:
        text = observation_text(in_tool_order(one.truth.value))
        results = (ToolResult(call.id, text, one.truth.source),)
    reasoning, content = (speech.reasoning, speech.content) if speech is not None else ("", "")
    return Turn(clean(reasoning), clean(content), (call,), results, "tool_calls")


def _with_calls(turn: Turn, more: Turn) -> Turn:
    return replace(turn, calls=turn.calls + more.calls, results=turn.results + more.results)


def _on_wire(wire: Wire) -> Iterator[_Dispatch]:
    """Every call of the wire; one that was repeated after a failure is one."""
    for index, (at, call, first) in enumerate(wire.calls):
        if wire.taken(index):
            continue
        event = wire.take(call, at - 1, wire.calls[-1][0] + 1) or first
        arguments = dict(event.arguments)
        if event.via == "search" and "q" in arguments:
            arguments["q"] = call.text("q")  # the wire carries it as the agent quoted it
        yield _Dispatch(at, call, arguments, Truth(_result(event), ResultSource.WIRE))


def _result(event: ToolEvent) -> Json:
    if event.status == 200 or event.result is not None:
        return event.result
    return {"error": event.error.message if event.error else f"status {event.status}"}


def _in_dialogue(
    trace: Trace, dialogue: Sequence[Any], wire: Wire, catalog: Catalog | None
) -> Iterator[_Dispatch]:
    """Recommendations and the end, where the wire has none: copies of one are one."""
    seen = {call.name for _, call, _ in wire.calls}
    told: dict[str | None, Call] = {}
    for call in dialogue_calls(dialogue):
        if call.name in (RECOMMEND, TERMINATE) and call.name not in seen:
            told.setdefault(call.key, call)
    end = len(trace.events)
    for call in told.values():
        arguments: JsonObject = dict(call.arguments)  # type: ignore[arg-type]
        if call.name == TERMINATE:
            arguments.setdefault("status", "success")
        yield _Dispatch(end, call, arguments, wire.answer(call, arguments, end, end, catalog))


class _Emitted:
    """What completions emitted, to be found by the calls that were made of it."""

    def __init__(self, trace: Trace) -> None:
        self._by_key: defaultdict[str, deque[tuple[int, Speech]]] = defaultdict(deque)
        self._used: set[int] = set()
        self._answered = self._failed = 0
        for at, event in enumerate(trace.events):
            if isinstance(event, LlmEvent):
                self._read(at, event)

    def take(self, call: Call, at: int) -> tuple[int, Speech] | None:
        """The completion before `at` that emitted this call, each emission once."""
        waiting = self._by_key.get(call.key) if call.key is not None else None
        if not waiting or waiting[0][0] >= at:
            return None
        found = waiting.popleft()
        self._used.add(found[0])
        return found

    def left_out(self) -> LeftOut:
        """The completions that stand in no turn."""
        return LeftOut(completions=self._answered - len(self._used), failed=self._failed)

    def _read(self, at: int, event: LlmEvent) -> None:
        speeches = read_speeches(event)
        self._answered += bool(speeches)
        self._failed += not speeches
        for speech in speeches:
            for _, call in speech.calls:
                if call.key is not None:
                    self._by_key[call.key].append((at, speech))
