"""What an agent showed its model of the results: read from the next recorded prompt.

Native conversations answer with `tool` messages; tag text answers with `<obs>` blocks,
in a message of their own or in the one text that holds the whole history. Only what
follows the turn answers it, and a result that the model wrote for itself is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corpus_export.normalise.speech import Speech
from corpus_export.normalise.texts import observation_value
from sandbox.provenance import message_text
from scoring.types import Json, JsonObject

_OBS = re.compile(r"<obs>\s*")
_CALLS = re.compile(r"<tool_call>\s*")
_CLOSE = {"obs": "</obs>", "tool_call": "</tool_call>"}
_DECODER = json.JSONDecoder(strict=False)
_RESULT_KEYS = ("results", "result")
_ID_KEYS = ("tool_call_id", "id")
MAX_OBSERVATIONS = 1_000
"""Observations read after one turn; what follows answers nothing."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One result as the model saw it, and the id of the call it says to answer."""

    call_id: str | None
    value: Json


@dataclass(frozen=True, slots=True)
class Answers:
    """Of one turn: per call what was shown, or None; and the messages that show no result."""

    results: tuple[Shown | None, ...]
    other_messages: int

    @property
    def any(self) -> bool:
        """Whether any call of the turn was answered."""
        return any(shown is not None for shown in self.results)


def read_answers(
    speech: Speech, before: Sequence[JsonObject], after: Sequence[JsonObject], content: str
) -> Answers:
    """Pair the calls of a turn with what the next prompt shows of them.

    `before` is the turn's prompt, `after` the next one, `content` the raw text of the
    completion. Paired by id where both sides have ids, else in order.
    """
    tail = _tail(before, after)
    tools = [m for m in tail if m.get("role") == "tool"]
    if tools:
        shown = [_tool_message(m) for m in tools]
        ids = list(speech.ids)
    else:
        text = _new_text(before, tail, content)
        start = _last_calls(text)
        shown = list(_observations(text[start:]))
        ids = _written_ids(text[start:])
    others = 0 if shown and not tools else sum(_is_new(m, before) for m in tail)
    return Answers(tuple(_paired(len(speech.calls), ids, shown)), others)


def _tail(before: Sequence[JsonObject], after: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """The messages of the next prompt that come after the turn."""
    for i in range(len(after) - 1, -1, -1):
        if after[i].get("role") == "assistant":
            if i == len(after) - 1 and not after[i].get("tool_calls"):
                continue  # a prefilled answer
            return after[i + 1 :]
    same = 0
    for old, new in zip(before, after, strict=False):
        if old is not new:
            break
        same += 1
    return after[same:]


def _is_new(message: JsonObject, before: Sequence[JsonObject]) -> bool:
    """Whether code wrote a user message anew: a history that grew is the same message."""
    if message.get("role") != "user":
        return False
    last = message_text(before[-1].get("content")) if before else ""
    return not (last and message_text(message.get("content")).startswith(last))


def _tool_message(message: JsonObject) -> Shown:
    named = message.get("tool_call_id")
    text = message_text(message.get("content"))
    return Shown(named if isinstance(named, str) else None, observation_value(text))


def _new_text(before: Sequence[JsonObject], tail: Sequence[JsonObject], content: str) -> str:
    """The text after the turn: of a history in one text, what was added to it."""
    text = "\n".join(message_text(m.get("content")) for m in tail if m.get("role") != "assistant")
    last = message_text(before[-1].get("content")) if before else ""
    if last and text.startswith(last):
        text = text[len(last) :]
    written = content.strip()
    at = text.rfind(written) if written else -1
    return text[at + len(written) :] if at >= 0 else text


def _last_calls(text: str) -> int:
    """Where the last written calls begin that stand outside an observation; 0 without any."""
    start = at = 0
    while (calls := _CALLS.search(text, at)) is not None:
        observed = _OBS.search(text, at, calls.start())
        if observed is not None:
            at = max(_body(text, observed.end(), "obs")[1], observed.end())
            continue
        start, at = calls.start(), calls.end()
    return start


def _written_ids(text: str) -> list[str | None]:
    """The ids that a history gives the calls of its last turn."""
    calls = _CALLS.match(text)
    if calls is None:
        return []
    value, _ = _body(text, calls.end(), "tool_call")
    items = value if isinstance(value, list) else [value]
    return [_id_of(item) for item in items]


def _observations(text: str) -> Iterator[Shown]:
    at = 0
    for _ in range(MAX_OBSERVATIONS):
        opening = _OBS.search(text, at)
        if opening is None:
            return
        value, at = _body(text, opening.end(), "obs")
        items = value if isinstance(value, list) else [value]
        if items and all(_result_key(item) for item in items):
            yield from (_result(item) for item in items)
        else:  # the whole of it is one result
            yield Shown(None, value)


def _body(text: str, start: int, role: str) -> tuple[Json, int]:
    """The body of the block that opens before `start`, and where the block ends.

    What tools return may hold tags of its own: a JSON body ends where its JSON ends.
    """
    close = _CLOSE[role]
    try:
        value, end = _DECODER.raw_decode(text, start)
        closing = text.find(close, end)
        if closing >= 0 and not text[end:closing].strip():
            return value, closing + len(close)
    except (ValueError, RecursionError):
        pass
    closing = text.find(close, start)
    if closing < 0:
        return text[start:].strip(), len(text)
    return observation_value(text[start:closing].strip()), closing + len(close)


def _result_key(item: Json) -> str | None:
    if not isinstance(item, dict):
        return None
    return next((key for key in _RESULT_KEYS if key in item), None)


def _result(item: Json) -> Shown:
    key = _result_key(item)
    assert isinstance(item, dict)
    assert key is not None
    value = item[key]
    return Shown(_id_of(item), observation_value(value) if isinstance(value, str) else value)


def _id_of(item: Json) -> str | None:
    if not isinstance(item, dict):
        return None
    named = (item.get(key) for key in _ID_KEYS)
    return next((name for name in named if isinstance(name, str)), None)


def _paired(count: int, ids: Sequence[str | None], shown: list[Shown]) -> Iterator[Shown | None]:
    """For each of `count` calls its result: by id when ids fit, else by place."""
    known = {s.call_id for s in shown if s.call_id is not None}
    if not known.intersection(i for i in ids if i is not None):
        yield from ((shown[i] if i < len(shown) else None) for i in range(count))
        return
    left = list(shown)
    for i in range(count):
        named = ids[i] if i < len(ids) else None
        found = next((s for s in left if s.call_id == named), None)
        if found is not None:
            left.remove(found)
        yield found
