"""The conversation that leads to a run's recommendation, found among all its completions.

Agents run several conversations, sample more than one choice, try again and start over.
The path is one conversation: each completion the one that the next one's prompt goes on
with, ending where the model ended it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from corpus_export.normalise.speech import Speech, message_of, read_speeches
from sandbox.provenance.calls import RECOMMEND, TERMINATE, normalise
from sandbox.provenance.conversation import MIN_TEXT, Conversations, Prompt, turn_marks
from sandbox.provenance.dialogue import last_recommendation
from sandbox.provenance.emissions import prefilled_text
from sandbox.provenance.timeline import Phase, timeline
from sandbox.trace import LlmEvent, ToolEvent, Trace
from scoring.types import JsonObject


@dataclass(slots=True)
class Completion:
    """An answered completion, and the one whose conversation its prompt goes on with."""

    event: LlmEvent
    position: int
    """Of the event in the trace."""
    prompt: Prompt
    parent: int | None
    """The position of the completion before it in its conversation."""
    speeches: tuple[Speech, ...]
    """Of each choice."""

    def emits(self, name: str) -> bool:
        """Whether any choice calls the tool."""
        return any(c.name == name for s in self.speeches for _, c in s.calls)

    @property
    def calls(self) -> bool:
        """Whether any choice calls a tool."""
        return any(s.calls for s in self.speeches)

    @property
    def marked(self) -> bool:
        """Whether a prompt that holds this turn can be told by it."""
        texts = (text for s in self.speeches for text in (s.reasoning, s.content))
        return self.calls or any(len(" ".join(text.split())) >= MIN_TEXT for text in texts)


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the path: a completion, the choice that was gone on with."""

    completion: Completion
    choice: int

    @property
    def speech(self) -> Speech:
        """What the choice says."""
        return self.completion.speeches[self.choice]


@dataclass(frozen=True, slots=True)
class Path:
    """The turns of the conversation, in order, and how many completions there were."""

    steps: tuple[Step, ...]
    answered: int
    failed: int


def find_path(trace: Trace, dialogue: Sequence[Any]) -> Path:
    """The path of a run. Empty when no completion was answered. Never raises on content."""
    completions, failed = _completions(trace)
    if not completions:
        return Path((), 0, failed)
    target = recommendation_key(trace, dialogue)
    leaf = _leaf(completions, target)
    chain: list[Completion] = []
    at: int | None = leaf.position
    while at is not None:
        chain.append(completions[at])
        at = completions[at].parent
    chain.reverse()
    steps = [
        Step(one, _choice(trace, one, follower, target))
        for one, follower in zip(chain, [*chain[1:], None], strict=True)
    ]
    return Path(tuple(_ended(steps)), len(completions), failed)


def recommendation_key(trace: Trace, dialogue: Sequence[Any]) -> str | None:
    """The call that recommended: the gateway's, else the last one of the dialogue."""
    for event in trace.events:
        if (
            isinstance(event, ToolEvent)
            and event.name == RECOMMEND
            and event.status == 200
            and not (isinstance(event.result, dict) and "error" in event.result)
        ):
            return normalise(RECOMMEND, event.arguments).key
    last = last_recommendation(dialogue)
    return last.key if last is not None else None


def _completions(trace: Trace) -> tuple[dict[int, Completion], int]:
    """Answered completions by position, in the order of their answers, and how many failed."""
    conversations = Conversations(trace.messages)
    found: dict[int, Completion] = {}
    by_seq: dict[int, Completion] = {}
    by_prompt: dict[Prompt, int | None] = {}
    failed = 0
    for moment in timeline(trace):
        event = moment.event
        if not isinstance(event, LlmEvent):
            continue
        prompt = _prompt(trace, event)
        if moment.phase is Phase.SENT:
            if prompt not in by_prompt:
                held = [by_seq[s] for s in conversations.held_by(prompt)]
                extended = [by_seq[s] for s in conversations.extended_by(prompt)]
                by_prompt[prompt] = _parent(held, extended)
            continue
        prefill = prefilled_text([trace.messages[i] for i in prompt[-1:]])
        speeches = read_speeches(event, prefill)
        if not speeches:
            failed += 1
        elif event.seq not in by_seq:
            one = Completion(event, moment.position, prompt, by_prompt[prompt], speeches)
            found[moment.position] = by_seq[event.seq] = one
            conversations.add(event, prompt)
    return found, failed


def _parent(held: list[Completion], extended: list[Completion]) -> int | None:
    """The turn that a prompt goes on from.

    The latest turn that stands in it. A turn that does not, though its conversation goes
    on, was taken (too short to be told, or carried out without being repeated), or was
    thrown away by the agent: text that called nothing, asked for again.
    """
    taken = held + [c for c in extended if not c.marked or (c.calls and not held)]
    if taken:
        return max(c.position for c in taken)
    latest = max(extended, key=lambda c: c.position, default=None)
    return latest.parent if latest is not None else None


def _prompt(trace: Trace, event: LlmEvent) -> Prompt:
    """The indices of a prompt that name a message. A broken record may hold others."""
    messages = trace.messages
    n = len(messages)
    return tuple(i for i in event.prompt if 0 <= i < n and isinstance(messages[i], dict))


def _leaf(completions: dict[int, Completion], target: str | None) -> Completion:
    """Where the path ends: the last turn with a call after the recommending one, or itself.

    Without a recommendation: the last completion that calls a tool, else the last one.
    """
    ordered = sorted(completions.values(), key=lambda c: c.position)
    recommending = [c for c in ordered if target is not None and _emits_key(c, target)]
    recommending = recommending or [c for c in ordered if c.emits(RECOMMEND)]
    if not recommending:
        return ([c for c in ordered if c.calls] or ordered)[-1]
    start = recommending[-1]
    line = [start]
    below = {start.position}
    for one in ordered:
        if one.parent in below and one.prompt[:1] == start.prompt[:1]:
            below.add(one.position)
            line.append(one)
    return ([c for c in line[1:] if c.calls] or [line[-1]])[-1]


def _emits_key(completion: Completion, key: str) -> bool:
    return any(c.key == key for s in completion.speeches for _, c in s.calls)


def _choice(trace: Trace, one: Completion, follower: Completion | None, target: str | None) -> int:
    """Which choice the agent went on with: the one that the next prompt holds."""
    if len(one.speeches) == 1:
        return 0
    if follower is None:
        for index, speech in enumerate(one.speeches):
            if any(c.key == target or c.name == TERMINATE for _, c in speech.calls):
                return index
        return 0
    held = {m for i in set(follower.prompt) for m in turn_marks(trace.messages[i])}
    shared = [
        len(held.intersection(turn_marks(message_of(choice) or {}))) for choice in one.event.choices
    ]
    return shared.index(max(shared))


def _ended(steps: list[Step]) -> list[Step]:
    """Without the talk after the model ended the dialogue: trailing turns that call nothing."""
    while len(steps) > 1 and not steps[-1].speech.calls and _terminates(steps[:-1]):
        steps = steps[:-1]
    return steps


def _terminates(steps: list[Step]) -> bool:
    return any(c.name == TERMINATE for step in steps for _, c in step.speech.calls)


def prompt_messages(trace: Trace, completion: Completion) -> list[JsonObject]:
    """The messages that a completion was asked with."""
    return [trace.messages[i] for i in completion.prompt]
