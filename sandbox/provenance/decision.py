"""Axis A or B, decided from the trace. The seven rules are those of docs and tests.

Pure: a trace, a dialogue and the agent's source go in, a verdict comes out. All of
them may be hostile; nothing here raises on their content, and the work is close to
linear in their size.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.provenance.calls import RECOMMEND, RETRIEVALS, TOOLS, Call, normalise
from sandbox.provenance.conversation import Conversations, Prompt
from sandbox.provenance.coverage import Cover
from sandbox.provenance.dialogue import dialogue_calls, dialogue_query, last_recommendation
from sandbox.provenance.dictation import DictationDetector
from sandbox.provenance.emissions import Emission, read_emissions
from sandbox.provenance.ledger import Credit, Ledger
from sandbox.provenance.schema import Request
from sandbox.provenance.timeline import Phase, timeline
from sandbox.provenance.verdict import (
    DictatedEmission,
    Provenance,
    Reason,
    UnmatchedDispatch,
)
from sandbox.trace import LlmEvent, ToolEvent, Trace

MAX_EVENTS = 20_000
MAX_EMISSIONS = 20_000
MAX_UNKNOWN_TOOLS = 20
"""Different unknown tool names that a model may hallucinate before they count as invented."""


def decide_axis(
    trace: Trace,
    dialogue: Sequence[Any] | None,
    agent_source: bytes | None = None,
    *,
    query: str | None = None,
) -> Provenance:
    """Decide whether the model made the run's tool calls (axis A) or code did (axis B).

    `dialogue` is the agent's answer (steps as JSON objects, or None), `agent_source`
    the source whose hash the record holds: its constants are instructions and
    examples, not dictation. `query` is the problem's query, which every prompt
    repeats; left out, the dialogue's own statement of it is taken.

    Never raises on hostile content: what cannot be read pays nothing, which is axis B.
    """
    if len(trace.events) > MAX_EVENTS:
        return Provenance("B", (Reason.TOO_LARGE,))
    run = _Run(trace, dialogue or (), agent_source, query)
    for moment in timeline(trace):
        event = moment.event
        if isinstance(event, ToolEvent):
            run.called(event)
        elif moment.phase is Phase.SENT:
            run.sent(event)
        else:
            run.answered(event)
    run.recommended_in_dialogue()
    return run.verdict()


@dataclass(slots=True)
class _Dispatch:
    """One tool call on the wire, with its repetitions after failures."""

    call: Call
    status: int
    credit: Credit | None = None
    cover: Cover | None = None


class _Run:
    """The state of one decision, moment by moment."""

    def __init__(
        self,
        trace: Trace,
        dialogue: Sequence[Any],
        agent_source: bytes | None,
        query: str | None,
    ) -> None:
        self._messages = trace.messages
        self._dialogue = dialogue
        self._ledger = Ledger()
        self._conversations = Conversations(trace.messages)
        self._dictation = DictationDetector(trace, agent_source, query or dialogue_query(dialogue))
        self._last: dict[str, _Dispatch] = {}
        self._recommendable: set[str | None] = set()
        self._gateway_recommended = False
        self._unknown: dict[str, bool] = {}
        self._emitted = self._matched = self._covered = self._dispatched = 0
        self._retrievals = 0
        self._unmatched: list[UnmatchedDispatch] = []
        self._dictated: list[DictatedEmission] = []
        self._reasons: set[Reason] = set()

    # What happened, in order -------------------------------------------------------

    def sent(self, event: LlmEvent) -> None:
        """A prompt left the agent: conversations it carries on have moved past their turns."""
        prompt = self._prompt(event)
        for completion in self._conversations.extended_by(prompt):
            self._ledger.expire(completion)
        self._dictation.observe(prompt)

    def answered(self, event: LlmEvent) -> None:
        """A completion arrived: what the model emitted in it becomes credit."""
        if event.status != 200:
            return
        prompt = self._prompt(event)
        emissions = read_emissions(event, [self._messages[i] for i in prompt])
        self._emitted += len(emissions)
        if self._emitted > MAX_EMISSIONS:
            self._reasons.add(Reason.TOO_LARGE)
            return
        verdicts = self._dictation.judge(event, prompt, emissions)
        own: list[Emission] = []
        for emission, dictated in zip(emissions, verdicts, strict=True):
            name = emission.call.name
            if name not in TOOLS:
                self._meet_unknown(name, event, prompt)
            if dictated is not None:
                self._dictated.append(DictatedEmission(event.seq, name, dictated))
            else:
                own.append(emission)
        for emission in own:
            self._ledger.credit(emission)
        self._conversations.add(event, prompt)
        # With several choices each may recommend; the agent takes one of them.
        last = {e.choice: e.call.key for e in own if e.call.name == RECOMMEND}
        if last:
            self._recommendable = set(last.values())

    def called(self, event: ToolEvent) -> None:
        """A tool was called: it repeats a failed call, spends a credit, or is the code's own."""
        call = normalise(str(event.name), event.arguments)
        if call.name not in TOOLS:
            self._reasons.add(Reason.INVENTED_TOOL)
        earlier = self._last.get(call.key) if call.key is not None else None
        if earlier is not None and earlier.status != 200:
            earlier.status = event.status
            self._note_answer(earlier, event)
            return
        dispatch = self._settle(event, call)
        if call.key is not None:
            self._last[call.key] = dispatch
        self._note_answer(dispatch, event)

    def recommended_in_dialogue(self) -> None:
        """The end: a recommendation that only the dialogue holds is a dispatch as well."""
        if self._gateway_recommended:
            return
        call = last_recommendation(self._dialogue)
        if call is None:
            return
        self._dispatched += 1
        if call.key is not None and call.key in self._recommendable:
            self._matched += 1
        else:
            self._unmatched.append(UnmatchedDispatch(None, RECOMMEND))
            self._reasons.add(Reason.RECOMMENDATION)

    def verdict(self) -> Provenance:
        """Rule 7."""
        self._look_for_invented_steps()
        if self._dispatched == 0:
            self._reasons.add(Reason.EMPTY)
        elif self._retrievals == 0:
            self._reasons.add(Reason.NO_RETRIEVAL)
        if self._unmatched:
            self._reasons.add(Reason.UNMATCHED)
        if self._dictated:
            self._reasons.add(Reason.DICTATED)
        reasons = tuple(reason for reason in Reason if reason in self._reasons)
        return Provenance(
            axis="B" if reasons else "A",
            reasons=reasons,
            emitted=self._emitted,
            matched=self._matched,
            covered=self._covered,
            dispatched=self._dispatched,
            agentic_ratio=self._ratio(),
            unmatched=tuple(self._unmatched),
            dictated=tuple(self._dictated),
        )

    # Details -----------------------------------------------------------------------

    def _settle(self, event: ToolEvent, call: Call) -> _Dispatch:
        self._dispatched += 1
        credit = self._ledger.pay(call)
        if credit is not None:
            self._matched += 1
            return _Dispatch(call, event.status, credit)
        covered = self._ledger.cover(call)
        if covered is not None:
            self._covered += 1
            return _Dispatch(call, event.status, *covered)
        self._unmatched.append(UnmatchedDispatch(event.seq, call.name[:100]))
        return _Dispatch(call, event.status)

    def _note_answer(self, dispatch: _Dispatch, event: ToolEvent) -> None:
        if event.status != 200:
            return
        if dispatch.call.name == RECOMMEND and not _refused(event):
            self._gateway_recommended = True
            if dispatch.call.key not in self._recommendable:
                self._reasons.add(Reason.RECOMMENDATION)
        if dispatch.credit is None:
            return
        if dispatch.call.name in RETRIEVALS:
            self._retrievals += 1
        if dispatch.cover is not None:
            dispatch.cover.learn(dispatch.call, event.result)
        else:
            self._ledger.answered(dispatch.credit, dispatch.call, event.result)

    def _prompt(self, event: LlmEvent) -> Prompt:
        """The indices of a prompt that name a message. A broken record may hold others."""
        n = len(self._messages)
        return tuple(i for i in event.prompt if 0 <= i < n and isinstance(self._messages[i], dict))

    def _meet_unknown(self, name: str, event: LlmEvent, prompt: Prompt) -> None:
        """A model called a tool that is none of the seven: offered by the miner, or made up?"""
        if name in self._unknown:
            return
        too_many = len(self._unknown) >= MAX_UNKNOWN_TOOLS
        offered = too_many or name in Request(event.params).declared_tools
        if not offered:
            written = re.compile(_OFFER.format(name=re.escape(name)))
            offered = any(
                name in text and written.search(text)
                for text in self._dictation.harness_texts(event, prompt)
            )
        self._unknown[name] = bool(offered)
        if offered:
            self._reasons.add(Reason.INVENTED_TOOL)

    def _look_for_invented_steps(self) -> None:
        """Tools in the dialogue that are none of the seven and that no model called."""
        for call in dialogue_calls(self._dialogue):
            if call.name not in TOOLS and call.name not in self._unknown:
                self._reasons.add(Reason.INVENTED_TOOL)
                return

    def _ratio(self) -> float:
        if self._dispatched == 0:
            return 0.0
        owed = self._dispatched - self._covered
        return self._matched / owed if owed else 1.0


def _refused(event: ToolEvent) -> bool:
    """A tool's own error is 200 with `error`."""
    return isinstance(event.result, dict) and "error" in event.result


# How a prompt offers a tool: quoted, called, or at the head of a line of a list.
_OFFER = r"""["'`*]{name}["'`*]|\b{name}\s?\(|(?:^|\n)[ \-*\d.)]{{0,9}}{name}\s?[:(—-]"""
