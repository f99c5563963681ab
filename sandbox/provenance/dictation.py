"""Was an emission the model's own, or did the harness put it into its mouth?

A call is dictated when its name and argument values stand close together in prompt
text that no model wrote, or when a schema or `tool_choice` left no other. Not
counted as such text: earlier emissions and what a model wrote earlier, tool results,
the constants of the agent's own source (its instructions and examples), and the
problem's query, unless it stands there as the argument of a written call.

Paraphrased dictation cannot be seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sandbox.provenance.calls import TOOLS, Call, leaves
from sandbox.provenance.emissions import Emission, block_calls, native_calls
from sandbox.provenance.passages import (
    Passage,
    mentions_tool,
    phrase,
    source_literals,
    word_stream,
)
from sandbox.provenance.schema import Request, strings
from sandbox.provenance.tags import message_text, read_blocks
from sandbox.trace import LlmEvent, Trace
from scoring.types import Json, JsonObject

TELLING = (
    "q",
    "product_ids",
    "product_id",
    "requirements",
    "product_queries",
    "product_prices",
    "price",
    "shop_id",
)
"""Arguments whose values tell one call from another; the rest are options and numbers."""
MAX_VALUES = 50
MAX_NEW_IDS = 200_000
NEIGHBOURS = 2
"""Words on each side by which a value is recognised as part of a copied tool result."""


class DictationKind(StrEnum):
    """How an emission was dictated. Stable: records hold them."""

    PROMPT = "prompt"
    SCHEMA = "schema"
    TOOL_CHOICE = "tool_choice"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is looked for of a call: argument and phrase of each telling value."""

    name: str
    values: tuple[tuple[str, str], ...]

    @property
    def phrases(self) -> list[str]:
        return [value for _, value in self.values]


class DictationDetector:
    """Judges emissions in the order in which they were made."""

    def __init__(self, trace: Trace, agent_source: bytes | None, query: str | None) -> None:
        self._messages = trace.messages
        self._literals = Passage(source_literals(agent_source))
        self._query = phrase(query or "")
        self._results = _Results(trace)
        self._emitted: set[str] = set()
        self._written: list[Passage] = []
        self._by_message: dict[int, tuple[Passage, ...]] = {}
        self._by_text: dict[str, Passage | None] = {}

    def judge(
        self, event: LlmEvent, prompt: Sequence[int], emissions: Sequence[Emission]
    ) -> list[DictationKind | None]:
        """For each emission of a completion: how it was dictated, or None when it was not.

        Then takes note of what the model wrote: repeated in a later prompt, it is the model's.
        """
        request = Request(event.params)
        passages = self._prompt_passages(request, prompt) if emissions else []
        verdicts = [self._judge_one(request, passages, e.call) for e in emissions]
        for emission, verdict in zip(emissions, verdicts, strict=True):
            if verdict is None and emission.call.key is not None:
                self._emitted.add(emission.call.key)
        text = "\n".join(_completion_texts(event))
        if mentions_tool(text):
            self._written.append(Passage(text))
        return verdicts

    def observe(self, prompt: Iterable[int]) -> None:
        """Read the messages of a prompt when it is sent, before anything is emitted for it."""
        for index in prompt:
            self._message_passages(index)

    def harness_texts(self, event: LlmEvent, prompt: Sequence[int]) -> Iterator[str]:
        """The raw texts in which a harness may have offered tools to the model."""
        for index in dict.fromkeys(prompt):
            yield message_text(self._messages[index].get("content"))
        yield from Request(event.params).texts()

    def _judge_one(
        self, request: Request, passages: Sequence[Passage], call: Call
    ) -> DictationKind | None:
        if call.name == request.forced_tool:
            return DictationKind.TOOL_CHOICE
        wanted = _wanted(call)
        if not wanted.values:
            return None
        forced = request.forced_values(call.name)
        if all(value in forced for value in wanted.phrases):
            return DictationKind.SCHEMA
        if call.key in self._emitted:
            return None
        if any(self._dictates(passage, wanted) for passage in passages):
            return DictationKind.PROMPT
        return None

    def _dictates(self, passage: Passage, wanted: _Wanted) -> bool:
        if not any(True for _ in passage.windows(wanted.name, wanted.phrases)):
            return False
        if any(p.close(wanted.name, wanted.phrases) for p in (self._literals, *self._written)):
            return False
        if passage.states(wanted.name, *wanted.values[0]):
            return True
        unasked = passage.masked(self._query)
        return any(
            not self._results.explain(window, wanted.phrases)
            for window in unasked.windows(wanted.name, wanted.phrases)
        )

    def _prompt_passages(self, request: Request, prompt: Sequence[int]) -> list[Passage]:
        passages = [p for i in dict.fromkeys(prompt) for p in self._message_passages(i)]
        passages += (p for t in request.texts() if (p := self._passage(t)))
        return list(dict.fromkeys(passages))

    def _message_passages(self, index: int) -> tuple[Passage, ...]:
        passages = self._by_message.get(index)
        if passages is None:
            texts = self._harness_parts(self._messages[index])
            passages = tuple(p for t in texts if (p := self._passage(t)) is not None)
            self._by_message[index] = passages
        return passages

    def _harness_parts(self, message: JsonObject) -> Iterator[str]:
        """The parts of a message that are not an earlier emission."""
        for block in read_blocks(message_text(message.get("content"))):
            calls = block_calls(block.body) if block.kind == "tool_call" else []
            if not calls or not all(call.key in self._emitted for call in calls):
                yield block.body
        items = message.get("tool_calls")
        for call in native_calls(message) if isinstance(items, list) else []:
            if call.key not in self._emitted:
                yield " ".join([call.name, *_pairs(call)])
        # Which of its other fields a model gets to see is the provider's secret.
        for field, value in message.items():
            if field not in ("role", "content", "tool_calls"):
                yield "\n".join(strings(value))

    def _passage(self, text: str) -> Passage | None:
        if text not in self._by_text:
            self._by_text[text] = Passage(text) if mentions_tool(text) else None
        return self._by_text[text]


class _Results:
    """Recorded tool results: what a prompt repeats of them is no dictation."""

    def __init__(self, trace: Trace) -> None:
        self._ids: set[str] = set()
        self._contexts: set[tuple[str, ...]] = set()
        for event in trace.tools():
            if len(self._ids) < MAX_NEW_IDS:
                self._add(event.result)

    def explain(self, window: str, values: Sequence[str]) -> bool:
        """Whether these ids stand in `window` as part of a list of results, or of a copy of one.

        A list shows other results as well: the choice among them was the model's.
        """
        if not any(value in self._ids for value in values):
            return False
        words = window.split()
        if any(word in self._ids and word not in values for word in words):
            return True
        places = [i for i, word in enumerate(words) if word in self._ids]
        return all(_context(words, i) in self._contexts for i in places)

    def _add(self, result: Json) -> None:
        ids = set(_product_ids(result))
        if not ids:
            return
        self._ids |= ids
        words = word_stream(_as_text(result)).split()
        self._contexts.update(_context(words, i) for i, w in enumerate(words) if w in ids)


def _context(words: Sequence[str], i: int) -> tuple[str, ...]:
    return tuple(words[max(0, i - NEIGHBOURS) : i + NEIGHBOURS + 1])


def _wanted(call: Call) -> _Wanted:
    values: list[tuple[str, str]] = []
    if call.name in TOOLS:
        for argument in TELLING:
            for leaf in leaves(call.arguments.get(argument, "")):
                parts = leaf.split(",") if argument == "product_ids" else [leaf]
                values += ((argument, phrase(part)) for part in parts)
    telling = (pair for pair in values if len(pair[1]) > 1)
    return _Wanted(call.name, tuple(dict.fromkeys(telling))[:MAX_VALUES])


def _pairs(call: Call) -> Iterator[str]:
    for argument, value in call.arguments.items():
        yield argument
        yield from leaves(value)


def _completion_texts(event: LlmEvent) -> Iterator[str]:
    for choice in event.choices:
        message = choice.get("message") if isinstance(choice, dict) else None
        if isinstance(message, dict):
            yield message_text(message.get("reasoning_content"))
            yield message_text(message.get("content"))
            for call in native_calls(message):
                yield " ".join([call.name, *_pairs(call)])


def _product_ids(result: Json) -> Iterator[str]:
    if isinstance(result, dict):
        result = result.get("products", [result])
    for product in result if isinstance(result, list) else ():
        if isinstance(product, dict) and isinstance(product.get("product_id"), str | int):
            yield str(product["product_id"])


def _as_text(result: Json) -> str:
    try:
        return json.dumps(result, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        return ""
