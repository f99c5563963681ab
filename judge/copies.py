"""Thinking that was put into the model's mouth: text that stood in its prompt before.

A harness can write a narration itself and have the model repeat it. What a completion
shares, word by word, with prompt text that no model had written is such a copy. Words
are compared without case, invisible characters and look-alike letters, so that a copy
is not hidden by them. Tool results are what a model is to quote: data words (titles,
numbers) alone make no copy, except in a plain answer, which may be an echo of the prompt.

Paraphrases cannot be seen.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from judge.comparing import sentences
from judge.thinking import Thinking, ThoughtKind, compact
from sandbox.provenance.tags import message_text, read_blocks
from sandbox.trace import LlmEvent, Trace

RUN = 6
"""Words in a row that are a copy."""
PROSE = 4
"""Words of a copied stretch that are no data, from which it is more than a quoted title."""
LONG = 12
LONG_PROSE = 2
"""In a long stretch fewer will do: templates that compare are mostly data."""

_INVISIBLE = "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff"  # noqa: E501
_TOKEN = re.compile(rf"[\w{_INVISIBLE}]+")
_HIDDEN = re.compile(rf"[{_INVISIBLE}]")
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁԛԝһкмнтвгпαονρτυικχγη",
    "aeopcyxijsdqwhkmhtbrnaovptuikxyn",
)

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 ,.;:()-]{34,}[A-Za-z0-9)]", re.ASCII)
"""A stretch that JSON writes as it is, long enough to be nobody's chance."""
MAX_SENTENCES = 500
"""Sentences of one trace that are looked for so."""

Token = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Copy:
    """`[start, end)` of a thinking stood in prompt text that no model wrote.

    `echo` says that it is data in a plain answer; otherwise it is prose.
    """

    start: int
    end: int
    echo: bool


def normal_words(text: str) -> list[Token]:
    """The words of a text as they are compared, with their places."""
    if text.isascii():
        return [(m[0].lower(), m.start(), m.end()) for m in _TOKEN.finditer(text)]
    found = []
    for match in _TOKEN.finditer(text):
        word = match[0]
        if not word.isascii():
            word = unicodedata.normalize("NFKC", _HIDDEN.sub("", word)).casefold()
            word = word.translate(_LOOKALIKES)
        if word:
            found.append((word.lower(), match.start(), match.end()))
    return found


class CopyDetector:
    """Compares all thinking of a trace with all that its harness put into prompts."""

    def __init__(self, trace: Trace, thoughts: Sequence[Thinking]) -> None:
        self._trace = trace
        self._words = {(t.event, t.choice): normal_words(t.text) for t in thoughts}
        self._order = {event.seq: i for i, event in enumerate(trace.llm())}
        self._by_model: dict[int, int] = {}
        self._looked = 0
        self._by_harness: dict[int, int] = {}
        for thought in thoughts:
            order = self._order[thought.event]
            for run in _runs(self._words[thought.event, thought.choice]):
                self._by_model[run] = min(order, self._by_model.get(run, order))
        if self._by_model:
            self._read_prompts()

    def copies(self, thinking: Thinking, data: frozenset[str] | set[str]) -> list[Copy]:
        """The copied stretches of a thinking; `data` are the words of titles shown so far."""
        words = self._words[thinking.event, thinking.choice]
        order = self._order[thinking.event]
        echoes = [(p.start, p.end) for p in thinking.parts if p.kind is ThoughtKind.ANSWER]
        prose = [not (w in data or w[:1].isdigit()) for w, _, _ in words]
        found: list[Copy] = []
        for first, last in _stretches(
            i for i, run in enumerate(_runs(words)) if self._is_planted(run, order)
        ):
            start, end = words[first][1], words[last][2]
            said = sum(prose[first : last + 1])
            is_prose = said >= PROSE or (last - first >= LONG and said >= LONG_PROSE)
            if is_prose or any(a <= start < b for a, b in echoes):
                found.append(Copy(start, end, not is_prose))
        found += self._from_false_results(thinking)
        return sorted(found, key=lambda copy: (copy.start, copy.end))

    def _from_false_results(self, thinking: Thinking) -> Iterator[Copy]:
        """Sentences that stand in a message posing as a tool's answer, and in no tool's answer.

        Looked for as they are written: all results word by word would take too long.
        """
        posing = self._posing(thinking)
        if not posing:
            return
        for start, end in sentences(thinking.text):
            self._looked += 1
            if self._looked > MAX_SENTENCES:
                return
            telling = _PLAIN.search(thinking.text, start, end)
            if telling is None or not any(telling[0] in text for text in posing):
                continue
            if not any(telling[0] in result for result in self._results):
                yield Copy(start, end, echo=False)

    def _posing(self, thinking: Thinking) -> list[str]:
        event = next(e for e in self._trace.llm() if e.seq == thinking.event)
        texts = []
        for index in dict.fromkeys(event.prompt):
            if 0 <= index < len(self._trace.messages):
                message = self._trace.messages[index]
                text = message_text(message.get("content"))
                if message.get("role") in ("tool", "function"):
                    texts.append(text)
                elif "<obs>" in text:  # beside which the query stands, and earlier thinking
                    texts += [block.body for block in read_blocks(text) if block.kind == "obs"]
        return texts

    @cached_property
    def _results(self) -> list[str]:
        return [compact(event.result) for event in self._trace.tools()]

    def _is_planted(self, run: int, order: int) -> bool:
        """Whether a run of words stood in a prompt before any model had written it."""
        harness = self._by_harness.get(run)
        return harness is not None and harness <= order and harness <= self._by_model[run]

    def _read_prompts(self) -> None:
        done: set[int] = set()
        bodies: set[str] = set()
        written: set[str] = set()
        for event in self._trace.llm():
            order = self._order[event.seq]
            for index in event.prompt:
                if index in done or not 0 <= index < len(self._trace.messages):
                    continue
                done.add(index)
                for body in self._harness_bodies(index):
                    if body not in bodies and body.strip() not in written:
                        bodies.add(body)
                        for run in _runs(normal_words(body)):
                            if run in self._by_model:
                                self._by_harness.setdefault(run, order)
            written.update(_written(event))

    def _harness_bodies(self, index: int) -> Iterator[str]:
        message = self._trace.messages[index]
        role, text = message.get("role"), message_text(message.get("content"))
        if role in ("tool", "function"):
            return
        for block in read_blocks(text):
            if block.kind not in ("obs", "tool_call"):
                yield block.body


def _written(event: LlmEvent) -> Iterator[str]:
    """What a model wrote, in the forms in which a history repeats it."""
    for choice in event.choices:
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict):
            continue
        for name in ("content", "reasoning_content", "reasoning"):
            text = message_text(message.get(name))
            if text:
                yield text.strip()
                yield from (block.body.strip() for block in read_blocks(text))


def _runs(words: Sequence[Token]) -> Iterator[int]:
    texts = [word for word, _, _ in words]
    for i in range(len(texts) - RUN + 1):
        yield hash(tuple(texts[i : i + RUN]))


def _stretches(starts: Iterable[int]) -> list[tuple[int, int]]:
    """First and last word of each stretch that runs starting at `starts` cover."""
    found: list[tuple[int, int]] = []
    for i in starts:
        if found and i <= found[-1][1] + 1:
            found[-1] = (found[-1][0], i + RUN - 1)
        else:
            found.append((i, i + RUN - 1))
    return found
