"""The stand-in judge `standin/judge-1`: rules behind the wire of a model, named as what it is.

It is asked like any judge, sees the prompt and nothing else, and answers in the same
format. It follows the decision tree over the facts that a rendering states, and is
stricter than they are: a comparison needs a quoted sentence with both a word of preference
or cause and a datum. Importing this module registers it with the offline server
(`python -m sandbox.standin --load judge.standin`). It reads `sandbox` and this room.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from judge.rendering import read_framed_facts
from judge.verdict import Gate
from sandbox.standin.conversation import Conversation
from sandbox.standin.registry import PREFIX, Speech, register
from scoring.types import Json, JsonObject

JUDGE = PREFIX + "judge-1"
MODULE = __name__
"""What the server loads to host it."""
QUOTES = 3
MAX_QUOTE = 300
MIN_QUOTE = 10
NO_TRACE = "There is no rendered trace in this conversation, and I judge nothing else."

_HEAD = re.compile(r"TRACE mark=([0-9a-f]{16}) ")
_REASON = re.compile(
    r"""\b(?:because|since|so|therefore|hence|thus|than|prefer\w*|whereas|while|but|however
    |instead|rather|unlike|against|versus|vs|lacks?|lacking|missing|breaks?|fails?|violates?
    |exceeds?|beats?|wins?|better|best|cheap\w*|lower|lowest|closer|closest|only|not|no)\b
    |因为|因此|所以|但|比|优于|没有""",
    re.IGNORECASE | re.VERBOSE,
)
_DATUM = re.compile(r"\d{2,}|[\"“][^\"”]{3,}[\"”]")
"""A number as ids and prices have, or something quoted."""
_REFERENCE = re.compile(
    r"\b(?:results?|hits?|found|returned|shows?|shown|listed|candidates?|nothing|empty|match\w*)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[.!?;]\s|\n")
_REASONS = {
    Gate.INFERENCE: "No completion has 30 tokens.",
    Gate.REFERENCE: "The thinking does not refer to what the tools returned.",
    Gate.DATUM: "The thinking refers to results and names no datum of them.",
    Gate.COMPARISON: "A datum of a result is named; candidates are not compared with a reason.",
    Gate.PASSED: "One step compares candidates by their data and gives a reason.",
}
_SPANS = {Gate.PASSED: "comparisons", Gate.COMPARISON: "data"}
"""Which spans of a step bear out a gate."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """A stretch of a thinking as the rendering shows it, from `start` of the whole on."""

    start: int
    text: str
    cut: bool = False
    """Whether there is more of it that is not shown."""


def judge(conversation: Conversation) -> Speech:
    """The verdict on the first rendering in the conversation; a later correction changes nothing,
    since every quote is taken from the rendering itself."""
    for text in conversation.users:
        facts = read_framed_facts(text)
        head = _HEAD.match(text)
        if facts is not None and head is not None:
            return Speech(json.dumps(_verdict(facts, _thinking(text, head[1])), ensure_ascii=False))
    return Speech(NO_TRACE)


Shown = dict[tuple[int, str], list[_Shown]]


def _verdict(facts: JsonObject, shown: Shown) -> JsonObject:
    gate = _gate(facts.get("highest_gate"))
    if gate is Gate.PASSED:
        quotes = [q for q in _quotes(facts, shown, gate) if _gives_a_reason(str(q["quote"]))]
        if quotes:
            return _answer(gate, quotes)
        gate = Gate.COMPARISON
    if gate is Gate.COMPARISON:
        quotes = list(_quotes(facts, shown, gate))
        if quotes:
            return _answer(gate, quotes)
        gate = Gate.DATUM
    if gate is Gate.DATUM:
        quotes = list(_references(facts, shown))
        if quotes:
            return _answer(gate, quotes)
        gate = Gate.REFERENCE
    return _answer(gate, [])


def _gives_a_reason(quote: str) -> bool:
    """Whether one sentence says why, and of what: a reason that names nothing fits any product."""
    sentences = _SENTENCE.split(quote)
    return any(_REASON.search(text) and _DATUM.search(text) for text in sentences)


def _answer(gate: Gate, quotes: list[JsonObject]) -> JsonObject:
    evidence: list[Json] = [*quotes[:QUOTES]]
    return {"reason": _REASONS[gate], "gate": gate.value, "evidence": evidence}


def _gate(value: Json) -> Gate:
    try:
        return Gate(str(value))
    except ValueError:
        return Gate.INFERENCE


def _steps(facts: JsonObject) -> Iterator[tuple[int, str, JsonObject]]:
    steps = facts.get("steps")
    for step in steps if isinstance(steps, list) else []:
        if isinstance(step, dict) and isinstance(step.get("event"), int):
            yield int(str(step["event"])), f"think:{step.get('choice', 0)}", step


def _quotes(facts: JsonObject, shown: Shown, gate: Gate) -> Iterator[JsonObject]:
    """Quotes around the spans that bear out `gate`, each once."""
    seen: set[tuple[int, Json]] = set()
    for event, field, step in _steps(facts):
        spans = step.get(_SPANS[gate])
        for span in spans if isinstance(spans, list) else []:
            if not isinstance(span, dict):
                continue
            start, end = span.get("start"), span.get("end")
            if isinstance(start, int) and isinstance(end, int):
                quote = _around(shown.get((event, field), []), start, end)
                if quote is not None and (event, quote["quote"]) not in seen:
                    seen.add((event, quote["quote"]))
                    yield {"event": event, "field": field, **quote}


def _references(facts: JsonObject, shown: Shown) -> Iterator[JsonObject]:
    """Where a step refers to results; the facts give no place, so its words are looked for."""
    for event, field, step in _steps(facts):
        if step.get("gate") != Gate.DATUM.value:
            continue
        pieces = shown.get((event, field), [])
        places = [p.start + m.start() for p in pieces for m in _REFERENCE.finditer(p.text)]
        for at in [*places, 0]:
            quote = _around(pieces, at, at + 1)
            if quote is not None:
                yield {"event": event, "field": field, **quote}
                break


def _around(pieces: list[_Shown], start: int, end: int) -> JsonObject | None:
    """The sentence of the shown text that holds the span, wider where it stands there more than
    once; None when the span is not shown.

    Where no quote of at most `MAX_QUOTE` tells its place, and in a cut text, of which nobody is
    shown whether it repeats the quote, the offset stands beside it.
    """
    for piece in pieces:
        text, at = piece.text, start - piece.start
        if not 0 <= at < len(text):
            continue
        stop = min(max(end - piece.start, at + MIN_QUOTE), len(text), at + MAX_QUOTE)
        floor = max(0, stop - MAX_QUOTE)
        begin = max((m.end() for m in _SENTENCE.finditer(text, floor, at)), default=floor)
        closing = _SENTENCE.search(text, stop - 1)
        close = min(closing.start() + 1 if closing else len(text), begin + MAX_QUOTE)
        for a, b in ((begin, close), (floor, stop), (at, at + MAX_QUOTE)):
            quote = text[a:b].strip()
            if len(quote) >= MIN_QUOTE and sum(p.text.count(quote) for p in pieces) == 1:
                place = piece.start + text.index(quote)
                return {"quote": quote, "start": place} if piece.cut else {"quote": quote}
        quote = text[begin:close].strip()
        if len(quote) >= MIN_QUOTE:
            return {"quote": quote, "start": piece.start + text.index(quote, begin)}
    return None


def _thinking(text: str, mark: str) -> Shown:
    """The thinking that the rendering shows, by event and field. Only lines with the mark frame."""
    opening = re.compile(
        rf"^«{mark} event=(\d+) field=(think:\d+)[^»\n]*?(?: characters (\d+) to \d+ of \d+)?»\n",
        re.MULTILINE,
    )
    closing = f"\n«/{mark}»"
    shown: Shown = {}
    for match in opening.finditer(text):
        end = text.find(closing, match.end() - 1)
        body = text[match.end() : end if end >= 0 else len(text)]
        piece = _Shown(int(match[3] or 0), body, cut=match[3] is not None)
        shown.setdefault((int(match[1]), match[2]), []).append(piece)
    return shown


register(JUDGE, judge)
