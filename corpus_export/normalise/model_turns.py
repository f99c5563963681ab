"""Axis A: the turns that the model made, with what it was shown of their results."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from corpus_export.normalise.answered import CLOSING, Truth, Wire, is_shortening
from corpus_export.normalise.made import MadeTurns
from corpus_export.normalise.path import Path, Step, find_path, prompt_messages
from corpus_export.normalise.shown import Answers, Shown, read_answers
from corpus_export.normalise.speech import message_of
from corpus_export.normalise.texts import arguments_text, clean, in_tool_order, observation_text
from corpus_export.types import (
    Dialect,
    LeftOut,
    ResultSource,
    ToolCall,
    ToolResult,
    Turn,
)
from sandbox.catalog.interface import Catalog
from sandbox.provenance import message_text
from sandbox.trace import Trace


def model_turns(
    trace: Trace, dialogue: Sequence[Any], wire: Wire, catalog: Catalog | None
) -> MadeTurns:
    """The turns of the conversation that leads to the recommendation."""
    path = find_path(trace, dialogue)
    work = _Work(trace, wire, catalog)
    turns = [work.turn(*pair) for pair in zip_longest(path.steps, path.steps[1:])]
    left_out = _left_out(path, wire, work.harness_messages)
    return MadeTurns(tuple(turns), _dialect(path), left_out)


class _Work:
    """The state of one trajectory in the making: call numbers, and the wire's answers."""

    def __init__(self, trace: Trace, wire: Wire, catalog: Catalog | None) -> None:
        self._trace = trace
        self._wire = wire
        self._catalog = catalog
        self._number = 0
        self.harness_messages = 0

    def turn(self, step: Step, follower: Step | None) -> Turn:
        """One turn; `follower` is the next of the path, whose prompt shows the results."""
        speech = step.speech
        answers = self._answers(step, follower)
        self.harness_messages += answers.other_messages
        start = step.completion.position
        stop = follower.completion.position if follower else len(self._trace.events)
        calls: list[ToolCall] = []
        results: list[ToolResult] = []
        for (written, call), shown in zip(speech.calls, answers.results, strict=True):
            self._number += 1
            made = ToolCall(f"call_{self._number}", clean(call.name), arguments_text(written))
            calls.append(made)
            truth = self._wire.answer(call, written.arguments, start, stop, self._catalog)
            result = _result(made, shown, truth, last=follower is None, others=answers.any)
            if result is not None:
                results.append(result)
        return Turn(
            reasoning=clean(speech.reasoning),
            content=clean(speech.content),
            calls=tuple(calls),
            results=tuple(results),
            finish_reason=_finish_reason(step, calls),
        )

    def _answers(self, step: Step, follower: Step | None) -> Answers:
        if follower is None:
            return Answers((None,) * len(step.speech.calls), 0)
        message = message_of(step.completion.event.choices[step.choice]) or {}
        return read_answers(
            step.speech,
            prompt_messages(self._trace, step.completion),
            prompt_messages(self._trace, follower.completion),
            message_text(message.get("content")),
        )


def _result(
    made: ToolCall, shown: Shown | None, truth: Truth | None, *, last: bool, others: bool
) -> ToolResult | None:
    """What answers a call: what the model saw; else what is known and nobody could show it.

    `last`: no prompt comes after. `others`: the next prompt shows results of this turn, so
    that one it does not show was kept from the model.
    """
    if shown is not None:
        differs = truth is not None and shown.value != truth.value
        return ToolResult(
            made.id,
            observation_text(shown.value),
            ResultSource.PROMPT,
            mismatch=differs,
            abridged=differs and truth is not None and is_shortening(shown.value, truth.value),
        )
    if truth is None:
        return None
    unshowable = last or made.name in CLOSING
    if unshowable or (truth.source is ResultSource.WIRE and not others):
        return ToolResult(made.id, observation_text(in_tool_order(truth.value)), truth.source)
    return None


def _finish_reason(step: Step, calls: Sequence[ToolCall]) -> str:
    reason = step.completion.event.choices[step.choice].get("finish_reason")
    if reason == "length":
        return reason
    return "tool_calls" if calls else "stop"


def _dialect(path: Path) -> Dialect:
    speeches = [step.speech for step in path.steps]
    tagged = any(s.tagged for s in speeches) and not any(s.native for s in speeches)
    return Dialect.TAGS if tagged else Dialect.NATIVE


def _left_out(path: Path, wire: Wire, harness_messages: int) -> LeftOut:
    return LeftOut(
        completions=path.answered - len(path.steps),
        failed=path.failed,
        choices=sum(len(step.completion.speeches) - 1 for step in path.steps),
        harness_messages=harness_messages,
        dispatches=wire.untaken,
    )
