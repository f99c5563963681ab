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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judge.thinking import Thinking, ThoughtKind
from sandbox.provenance.tags import message_text, read_blocks
from sandbox.trace import LlmEvent, Trace

RUN = 6
"""Words in a row that are a copy."""
PROSE = 4
"""Of these, words that are no data."""

_INVISIBLE = "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff"  # noqa: E501
_TOKEN = re.compile(rf"[\w{_INVISIBLE}]+")
_HIDDEN = re.compile(rf"[{_INVISIBLE}]")
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁԛԝһкмнтвгпαονρτυικχγη",
    "aeopcyxijsdqwhkmhtbrnaovptuikxyn",
)

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
        for i, run in enumerate(_runs(words)):
            harness = self._by_harness.get(run)
            if harness is None or harness > order or self._by_model[run] < harness:
                continue
            start, end = words[i][1], words[i + RUN - 1][2]
            is_prose = sum(prose[i : i + RUN]) >= PROSE
            if is_prose or any(a <= start < b for a, b in echoes):
                _add(found, Copy(start, end, not is_prose))
        return found

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


def _add(found: list[Copy], copy: Copy) -> None:
    last = found[-1] if found else None
    if last is not None and copy.start <= last.end and last.echo == copy.echo:
        found[-1] = Copy(last.start, max(last.end, copy.end), last.echo)
    else:
        found.append(copy)
