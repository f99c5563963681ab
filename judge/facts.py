"""What can be known of a trace without asking anybody: facts, and the ceiling they set.

Computed in code from the gateway's events. A judge may say less than the facts allow,
never more. Every fact is on the generous side where language is concerned (is this
sentence a comparison?) and on the strict side where data are (did the model see this
id before it named it?). Pure; never raises on a trace's content.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from judge.comparing import candidates, compared
from judge.copies import CopyDetector
from judge.mentions import DatumKind, Mention, Query, ThoughtText, find_mentions, unknown_ids
from judge.observations import Observations, product_ids
from judge.thinking import Narration, Thinking, narrations, read_thinking
from judge.verdict import Gate, Span
from sandbox.provenance.dialogue import dialogue_query
from sandbox.provenance.tags import message_text
from sandbox.trace import LlmEvent, ToolEvent, Trace
from scoring.types import Json, JsonObject

MIN_TOKENS = 30
"""Completion tokens of a call that counts as inference (notes of the public judge)."""
CHARS_PER_TOKEN = 4
"""For providers that report no usage."""
MAX_SPANS = 50
"""Spans kept of a kind in a step."""
MAX_STEPS_SHOWN = 6
MAX_SPANS_SHOWN = 4

MAX_THINKING = 1_000_000
"""Characters of thinking read in one trace: several times what the gateway's limit of
completion tokens lets through."""
MAX_LOOKUPS = 500
"""Texts that are no plain numbers and are looked for in prompts, of one trace."""

_ID = re.compile(r"\d{4,20}", re.ASCII)
_REFERS = re.compile(
    r"""\b(?:results?|hits?|found|returned|returns|shows|showed|shown|listed|listings?|candidates?
    |match(?:es|ed)|search\s(?:gave|brought|has|had)|nothing|empty|none\sof)\b
    |结果|找到|返回|显示""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class StepFacts:
    """One choice of one completion: what its thinking names and does."""

    event: int
    choice: int
    tokens: int
    refers: bool
    data: tuple[Span, ...] = ()
    kinds: tuple[DatumKind, ...] = ()
    """Of each of `data`."""
    candidates: int = 0
    """Different candidates named."""
    comparisons: tuple[Span, ...] = ()
    copied: tuple[Span, ...] = ()
    unknown: tuple[Span, ...] = ()
    """Ids that the model had not been shown."""

    @property
    def gate(self) -> Gate:
        """The highest gate that this step could pass, were it inference."""
        if self.comparisons:
            return Gate.PASSED
        if self.data:
            return Gate.COMPARISON
        return Gate.DATUM if self.refers else Gate.REFERENCE


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a trace. `gate` is the ceiling: what the highest verdict may say."""

    completions: int
    """Completions that were answered."""
    max_tokens: int
    """Completion tokens of the longest."""
    tool_events: int
    steps: tuple[StepFacts, ...] = ()
    narrated_by_code: int = 0
    """Thoughts of the dialogue that no completion holds."""
    narrated_by_model: int = 0
    standin: bool = False
    narrations: tuple[Narration, ...] = field(default=(), repr=False)

    @property
    def inference(self) -> bool:
        """Whether there is a completion long enough to hold a thought."""
        return self.max_tokens >= MIN_TOKENS

    @property
    def gate(self) -> Gate:
        """The gate at which even the kindest judge has to stop."""
        if not self.inference:
            return Gate.INFERENCE
        order = list(Gate)
        return max((s.gate for s in self.steps), key=order.index, default=Gate.REFERENCE)

    @property
    def ceiling(self) -> float:
        """The highest quality that a verdict may have."""
        return self.gate.quality

    @property
    def evidence(self) -> tuple[Span, ...]:
        """The spans that carry the ceiling: comparisons, else data of the first such step."""
        best = next((s for s in self.steps if s.gate is self.gate), None)
        return (best.comparisons or best.data)[:5] if best else ()

    def to_json(self, limit: int = MAX_STEPS_SHOWN) -> JsonObject:
        """The JSON object that a rendering shows and a command prints.

        Bounded: the `limit` steps that carry most, the first spans of each.
        """
        steps = cast("list[Json]", [_step_to_json(step) for step in self.telling_steps(limit)])
        return {
            "inference": self.inference,
            "completions": self.completions,
            "max_completion_tokens": self.max_tokens,
            "tool_events": self.tool_events,
            "narrated_by_code": self.narrated_by_code,
            "narrated_by_model": self.narrated_by_model,
            "highest_gate": self.gate.value,
            "thinking_steps": len(self.steps),
            "steps": steps,
        }

    def telling_steps(self, limit: int = MAX_STEPS_SHOWN) -> list[StepFacts]:
        """The `limit` steps that carry most, in order of the trace."""
        order = list(Gate)
        best = sorted(self.steps, key=lambda s: (-order.index(s.gate), s.event))[:limit]
        return sorted(best, key=lambda s: (s.event, s.choice))


def read_facts(
    trace: Trace, query: str | None = None, dialogue: Sequence[Any] | None = None
) -> Facts:
    """The facts of a trace. `query` is the problem's; left out, the dialogue's or the prompt's."""
    return _Reader(trace, query, dialogue).facts()


class _Reader:
    """One reading of a trace, event by event."""

    def __init__(self, trace: Trace, query: str | None, dialogue: Sequence[Any] | None) -> None:
        self._trace = trace
        self._dialogue = dialogue
        self._query = Query(stated_query(trace, query, dialogue))
        self._thoughts = _bounded(read_thinking(trace))
        self._copies = CopyDetector(trace, self._thoughts)
        self._shown = Observations()
        self._texts: dict[int, str] = {}
        self._wanted = self._numbers_wanted()
        self._numbers: dict[int, frozenset[str]] = {}
        self._lookups = 0
        self._stands_in: dict[str, int] = {}

    def facts(self) -> Facts:
        by_event: dict[int, list[Thinking]] = {}
        for thought in self._thoughts:
            by_event.setdefault(thought.event, []).append(thought)
        steps: list[StepFacts] = []
        completions = longest = tool_events = 0
        for event in self._trace.events:
            if isinstance(event, ToolEvent):
                tool_events += 1
                self._shown.learn(event)
            elif isinstance(event, LlmEvent) and event.status == 200:
                completions += 1
                tokens = completion_tokens(event)
                longest = max(longest, tokens)
                prompt = self._prompt(event)
                looked = tool_events > 0 and self._holds_results(prompt)
                steps += (
                    self._step(t, tokens, prompt, looked) for t in by_event.get(event.seq, ())
                )
        told = tuple(narrations(self._trace, self._dialogue))
        return Facts(
            completions=completions,
            max_tokens=longest,
            tool_events=tool_events,
            steps=tuple(steps),
            narrated_by_code=sum(not n.recorded for n in told),
            narrated_by_model=sum(n.recorded for n in told),
            standin=any(e.standin for e in self._trace.llm()),
            narrations=told,
        )

    def _step(
        self, thinking: Thinking, tokens: int, prompt: tuple[int, ...], looked: bool
    ) -> StepFacts:
        thought = ThoughtText(thinking.text)
        copies = self._copies.copies(thinking, self._shown.title_words)
        masked = _disjoint([(c.start, c.end) for c in copies])
        found = find_mentions(thought, self._shown, self._query, lambda p: self._seen(p, prompt))
        mentions = _outside(found, masked)
        unknown = unknown_ids(thinking.text, lambda n: self._seen(n, prompt))
        ids = {p for m in mentions if m.kind is DatumKind.PRODUCT for p in m.products}
        numbers = {thinking.text[a:b] for a, b in unknown}
        if len(numbers) > len(ids):
            # Most of what it names was never shown: these thoughts are of another world.
            mentions = []
        free = thinking.text if not masked else _without(thinking.text, masked)
        refers = looked and (bool(mentions) or bool(_REFERS.search(free)))
        data = _merged(mentions)
        comparisons = compared(thought, mentions, self._query, masked) if mentions else []
        return StepFacts(
            event=thinking.event,
            choice=thinking.choice,
            tokens=tokens,
            refers=refers,
            data=tuple(_span(thinking, m.start, m.end) for m in data[:MAX_SPANS]),
            kinds=tuple(m.kind for m in data[:MAX_SPANS]),
            candidates=len(candidates(mentions)),
            comparisons=tuple(_span(thinking, a, b) for a, b in _disjoint(comparisons)[:MAX_SPANS]),
            copied=tuple(_span(thinking, a, b) for a, b in masked[:MAX_SPANS]),
            unknown=tuple(_span(thinking, a, b) for a, b in unknown[:MAX_SPANS]),
        )

    def _seen(self, text: str, prompt: tuple[int, ...]) -> bool:
        """Whether `text` stands in a message of the prompt."""
        hint = self._stands_in.get(text)
        if hint is not None and hint in prompt:
            return True
        in_numbers = text in self._wanted
        if not in_numbers:
            self._lookups += 1
            if self._lookups > MAX_LOOKUPS:
                return False
        for index in prompt:
            if text in (self._numbers_in(index) if in_numbers else self._message(index)):
                self._stands_in[text] = index
                return True
        return False

    def _numbers_wanted(self) -> frozenset[str]:
        """The numbers that are asked for later: those of thoughts, and ids of products."""
        wanted = {n for t in self._thoughts for n in _ID.findall(t.text)}
        for event in self._trace.tools():
            wanted.update(product_ids(event.result))
        return frozenset(n for n in wanted if _ID.fullmatch(n))

    def _numbers_in(self, index: int) -> frozenset[str]:
        """The wanted numbers in a message; read once, however often it is asked."""
        found = self._numbers.get(index)
        if found is None:
            found = self._wanted.intersection(_ID.findall(self._message(index)))
            self._numbers[index] = found
        return found

    def _holds_results(self, prompt: tuple[int, ...]) -> bool:
        """Whether the prompt shows anything of a tool's answer, an empty one included."""
        return any(self._is_result(index) for index in prompt)

    def _is_result(self, index: int) -> bool:
        if self._trace.messages[index].get("role") in ("tool", "function"):
            return True
        if "<obs>" in self._message(index):
            return True
        return not self._numbers_in(index).isdisjoint(self._shown.products)

    def _prompt(self, event: LlmEvent) -> tuple[int, ...]:
        n = len(self._trace.messages)
        return tuple(i for i in event.prompt if 0 <= i < n)

    def _message(self, index: int) -> str:
        text = self._texts.get(index)
        if text is None:
            text = message_text(self._trace.messages[index].get("content"))
            self._texts[index] = text
        return text


def stated_query(trace: Trace, query: str | None, dialogue: Sequence[Any] | None) -> str:
    """The problem's query: given, else as the dialogue states it, else the first user message."""
    return query or dialogue_query(dialogue or ()) or first_user_text(trace)


def completion_tokens(event: LlmEvent) -> int:
    """Completion tokens as the provider counted them, else estimated from the text."""
    if event.usage is not None and event.usage.completion_tokens > 0:
        return event.usage.completion_tokens
    chars = 0
    for choice in event.choices:
        message = choice.get("message") if isinstance(choice, dict) else None
        if isinstance(message, dict):
            for name in ("content", "reasoning_content"):
                chars += len(message_text(message.get(name)))
    return chars // CHARS_PER_TOKEN


def first_user_text(trace: Trace) -> str:
    """The first user message that a model was sent: it states the query. Empty when there is none.

    Only its first 4,000 characters: a history in one text goes on with results.
    """
    for event in trace.llm():
        for index in event.prompt:
            if 0 <= index < len(trace.messages):
                message = trace.messages[index]
                if message.get("role") == "user":
                    text = message_text(message.get("content"))[:4000]
                    return text.partition("<obs>")[0]
    return ""


def _bounded(thoughts: Sequence[Thinking]) -> list[Thinking]:
    """Thinking up to `MAX_THINKING` characters; what a flood holds beyond counts for nothing."""
    kept: list[Thinking] = []
    left = MAX_THINKING
    for thought in thoughts:
        if left <= 0:
            break
        fits = len(thought.text) <= left
        kept.append(thought if fits else replace(thought, text=thought.text[:left]))
        left -= len(thought.text)
    return kept


def _span(thinking: Thinking, start: int, end: int) -> Span:
    return Span(thinking.event, thinking.field, start, end, thinking.text[start:end])


def _outside(mentions: Sequence[Mention], masked: Sequence[tuple[int, int]]) -> list[Mention]:
    """The mentions that touch none of the masked stretches, which stand in order."""
    ends = [end for _, end in masked]

    def touches(mention: Mention) -> bool:
        i = bisect_right(ends, mention.start)
        return i < len(masked) and masked[i][0] < mention.end

    return [mention for mention in mentions if not touches(mention)]


def _merged(mentions: Sequence[Mention]) -> list[Mention]:
    """Mentions without those that another covers."""
    kept: list[Mention] = []
    for mention in mentions:
        if not kept or mention.end > kept[-1].end:
            kept.append(mention)
    return kept


def _disjoint(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _without(text: str, hidden: Sequence[tuple[int, int]]) -> str:
    parts = []
    at = 0
    for start, end in sorted(hidden):
        if end > at:
            parts.append(text[at : max(at, start)])
            at = end
    return " ".join([*parts, text[at:]])


def _step_to_json(step: StepFacts) -> JsonObject:
    def shown(spans: tuple[Span, ...]) -> Json:
        return cast("Json", [span.to_json() for span in spans[:MAX_SPANS_SHOWN]])

    return {
        "event": step.event,
        "choice": step.choice,
        "completion_tokens": step.tokens,
        "gate": step.gate.value,
        "data": shown(step.data),
        "candidates": step.candidates,
        "comparisons": shown(step.comparisons),
        "copied": len(step.copied),
        "unknown_ids": len(step.unknown),
    }
