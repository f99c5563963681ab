"""Which conversations a prompt goes on with.

An emission is the model's decision at one point of one conversation. Once a later
prompt carries that conversation on, the decision is past: what it did not pay for
then, it pays no more.

Agents carry a conversation on in two ways: by adding messages, and by writing the
whole history into one user text. A prompt extends a completion's conversation when it
begins with that completion's prompt and goes on, or when it holds the turn itself
(its thinking or its calls). Several completions of one prompt are branches: a prompt
that holds the turn of one of them extends that branch alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from sandbox.provenance.calls import Call
from sandbox.provenance.emissions import block_calls, native_calls
from sandbox.provenance.tags import message_text, read_blocks
from sandbox.trace import LlmEvent
from scoring.types import JsonObject

Prompt: TypeAlias = tuple[int, ...]
Mark: TypeAlias = tuple[str, ...]
"""What a turn is recognised by: its thinking, or the keys of its calls."""

MIN_TEXT = 16
"""Shorter thinking ("ok") is no mark: it would recognise any turn."""


class Conversations:
    """The completions so far, and which of them a new prompt extends."""

    def __init__(self, messages: Sequence[JsonObject]) -> None:
        self._messages = messages
        self._marks_of_message: dict[int, tuple[Mark, ...]] = {}
        self._by_mark: defaultdict[Mark, list[int]] = defaultdict(list)
        self._by_prompt: defaultdict[Prompt, list[int]] = defaultdict(list)
        self._open: defaultdict[Prompt, set[int]] = defaultdict(set)
        self._prompt_of: dict[int, Prompt] = {}

    def add(self, event: LlmEvent, prompt: Prompt) -> None:
        """Note an answered completion."""
        self._by_prompt[prompt].append(event.seq)
        self._open[prompt].add(event.seq)
        self._prompt_of[event.seq] = prompt
        marks: set[Mark] = set()
        for choice in event.choices:
            message = choice.get("message") if isinstance(choice, dict) else None
            if isinstance(message, dict):
                marks.update(turn_marks(message))
        for mark in marks:
            self._by_mark[mark].append(event.seq)

    def extended_by(self, prompt: Prompt) -> set[int]:
        """The completions whose conversation `prompt` carries on; each is told once."""
        held = self._held_turns(prompt)
        extended = {seq for seq in held if seq in self._open.get(self._prompt_of[seq], ())}
        for earlier, open_ in list(self._open.items()):
            if self._goes_on(earlier, prompt) and not held.intersection(self._by_prompt[earlier]):
                extended |= open_
        for seq in extended:
            self._close(seq)
        return extended

    def held_by(self, prompt: Prompt) -> set[int]:
        """The completions whose turn stands in `prompt`, however often that was asked."""
        return self._held_turns(prompt)

    def _close(self, seq: int) -> None:
        prompt = self._prompt_of[seq]
        self._open[prompt].discard(seq)
        if not self._open[prompt]:
            del self._open[prompt]

    def _held_turns(self, prompt: Prompt) -> set[int]:
        # The same turn may have been taken in two conversations at once: a mark that
        # stands there n times stands for the n oldest of them.
        counts: Counter[Mark] = Counter()
        for index, times in Counter(prompt).items():
            for mark in self._marks(index):
                counts[mark] += times
        return {seq for mark, n in counts.items() for seq in self._by_mark.get(mark, [])[:n]}

    def _marks(self, index: int) -> tuple[Mark, ...]:
        marks = self._marks_of_message.get(index)
        if marks is None:
            marks = tuple(turn_marks(self._messages[index]))
            self._marks_of_message[index] = marks
        return marks

    def _goes_on(self, earlier: Prompt, prompt: Prompt) -> bool:
        n = len(earlier)
        if n == 0 or len(prompt) < n or prompt[: n - 1] != earlier[:-1]:
            return False
        if prompt[n - 1] == earlier[-1]:
            return len(prompt) > n
        before, after = self._messages[earlier[-1]], self._messages[prompt[n - 1]]
        start, text = message_text(before.get("content")), message_text(after.get("content"))
        return (
            before.get("role") == after.get("role")
            and bool(start)
            and len(text) > len(start)
            and text.startswith(start)
        )


def turn_marks(message: JsonObject) -> Iterable[Mark]:
    """What the turns in a message are recognised by.

    An assistant message is one turn; the text of any other may hold a history of them.
    """
    text = message_text(message.get("content"))
    yield from _batch(native_calls(message))
    thoughts = [text] if message.get("role", "assistant") == "assistant" else []
    reasoning = message.get("reasoning_content")
    if isinstance(reasoning, str):
        thoughts.append(reasoning)
    blocks = read_blocks(text)
    thoughts += [b.body for b in blocks if b.kind == "think"]
    for block in blocks:
        if block.kind == "tool_call":
            yield from _batch(block_calls(block.body))
    for thought in thoughts:
        words = " ".join(thought.split())
        if len(words) >= MIN_TEXT:
            yield ("think", words)


def _batch(calls: Sequence[Call]) -> Iterable[Mark]:
    if calls:
        yield ("calls", *(call.key or "" for call in calls))
