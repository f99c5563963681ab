"""A trace as bounded text for a judge model, with nothing in it that can pose as ours.

Everything untrusted stands between two lines that carry a mark derived from the content
(and checked not to occur in it), so that no text can close its own frame. Events keep
their numbers, so that a citation is an event, a field and a quote. What does not fit the
budget is left out by name: of a long text its middle, of a long trace its least telling
events, each with a line that says so.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judge.facts import Facts
from judge.neutral import neutral
from judge.thinking import compact, thinking_of
from sandbox.provenance.tags import message_text
from sandbox.trace import Event, LlmEvent, ToolEvent, Trace
from scoring.types import Json, JsonObject

DEFAULT_TOKENS = 24_000
EVENT_TOKENS = 25
"""What the line of an event costs."""
PIECE_TOKENS = 70
"""What the lines around a cut text cost."""
MIN_CHARS = 160
"""A text is not cut below this at the first guess."""
LEAST_CHARS = 40
"""Nor below this at all."""
TIGHTER = 6
"""Layouts tried, each with two thirds of the one before; foreign scripts take more tokens."""
WEIGHTS = {"think": 6.0, "arguments": 2.0, "result": 2.0, "prompt": 1.0, "narration": 0.5}
"""How the budget is shared: thinking is what is judged."""
MAX_CODE_TEXTS = 12
CONTEXT = 64
"""Characters beyond a cut that decide how those at the cut are shown."""
MIN_SHARED = 200
"""Characters that a prompt must share with the one before to be shown from there on."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """The text for a judge, and what identifies the content that it shows."""

    text: str
    mark: str
    """In every line that frames foreign text; occurs nowhere else."""
    content_hash: str
    """SHA-256 of the text: what a cached verdict is filed under."""
    left_out: int
    """Events that no longer fitted, each told by a line."""


@dataclass(slots=True)
class _Piece:
    """One foreign text with the line that introduces it."""

    event: int | None
    field: str
    raw: str
    note: str = ""
    share: int = 0

    @property
    def weight(self) -> float:
        return WEIGHTS.get(self.field.partition(":")[0], 1.0)

    def parts(self) -> list[tuple[int, str]]:
        """What is shown, harmless, with its offset: all, or the head and the tail."""
        size = len(self.raw)
        if size <= self.share:
            return [(0, neutral(self.raw))]
        head = self.share * 2 // 3
        tail = size - (self.share - head)
        before = max(0, tail - CONTEXT)
        # With what stands before it: whether a word begins a line must not depend on the cut.
        return [
            (0, neutral(self.raw[: head + CONTEXT])[:head]),
            (tail, neutral(self.raw[before:])[tail - before :]),
        ]


def estimate_tokens(text: str) -> int:
    """Tokens of a text, on the high side: no tokeniser is at hand for a foreign model."""
    if text.isascii():
        return len(text) // 3 + 1
    plain = len(text.encode("ascii", "ignore"))
    return plain // 3 + (len(text) - plain) * 3 // 2 + 1


def render(
    trace: Trace, facts: Facts, query: str = "", *, max_tokens: int = DEFAULT_TOKENS
) -> Rendering:
    """Render a trace within about `max_tokens`. Never raises on the trace's content.

    Deterministic: the same trace, facts, query and budget give the same bytes.
    """
    shown, dropped = _chosen(trace, facts, max_tokens)
    pieces = {event.seq: list(_pieces(trace, event)) for event in shown}
    _drop_known_prompts(trace, shown, pieces)
    query_piece = _Piece(None, "query", query)
    told = [
        _Piece(None, "narration", n.text, f"dialogue step {n.step}, written by code")
        for n in facts.narrations
        if not n.recorded
    ][:MAX_CODE_TEXTS]
    page = _Page(trace, facts, shown, dropped, pieces, query_piece, told, max_tokens)
    chars = page.room()
    for _ in range(TIGHTER):
        text, mark = page.laid_out(chars)
        if estimate_tokens(text) <= max_tokens:
            break
        chars = chars * 2 // 3
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return Rendering(text, mark, digest, len(dropped))


class _Page:
    """What is to be shown, laid out again until it fits."""

    def __init__(
        self,
        trace: Trace,
        facts: Facts,
        shown: Sequence[Event],
        dropped: dict[int, Event],
        pieces: dict[int, list[_Piece]],
        query: _Piece,
        told: Sequence[_Piece],
        max_tokens: int,
    ) -> None:
        self._trace, self._facts = trace, facts
        self._shown, self._dropped = shown, dropped
        self._pieces, self._query, self._told = pieces, query, told
        self._every = [query, *(p for ps in pieces.values() for p in ps), *told]
        self._stated = _stated_facts(facts, max_tokens)
        self._max_tokens = max_tokens

    def room(self) -> int:
        """Characters for foreign text, at the first guess."""
        frames = PIECE_TOKENS * len(self._every) + EVENT_TOKENS * len(self._shown)
        chars = (self._max_tokens - frames) * 3 - len(self._stated)
        return max(chars, MIN_CHARS * len(self._every))

    def laid_out(self, chars: int) -> tuple[str, str]:
        """The text with `chars` characters of foreign text, and its mark."""
        _share(self._every, chars)
        mark = _mark(self._every)
        lines = [_head(self._trace, self._facts, mark), f"FACTS {self._stated}"]
        lines += _framed(self._query, mark)
        for item in _in_order(self._trace, self._shown, self._dropped):
            if isinstance(item, str):
                lines.append(item)
                continue
            lines.append(_event_line(item))
            for piece in self._pieces[item.seq]:
                lines += _framed(piece, mark)
        lines += _told(self._facts, self._told, mark)
        return "\n".join(lines), mark


def read_framed_facts(text: str) -> JsonObject | None:
    """The facts that a rendering states in its second line, or None when there are none.

    For rule-based judges behind the wire. The line stands before all foreign text.
    """
    found = re.search(r"^FACTS (\{.*\})$", text, re.MULTILINE)
    if found is None:
        return None
    try:
        value = json.loads(found[1])
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


# What is shown --------------------------------------------------------------------


def _chosen(trace: Trace, facts: Facts, max_tokens: int) -> tuple[list[Event], dict[int, Event]]:
    """The events that fit, in order, and those that do not."""
    room = max(4, max_tokens // (EVENT_TOKENS + 2 * (PIECE_TOKENS + MIN_CHARS // 3)))
    if len(trace.events) <= room:
        return list(trace.events), {}
    gates = {s.event: s.gate.quality for s in facts.steps}
    last = len(trace.events) - 1

    def telling(i: int) -> tuple[float, int]:
        event = trace.events[i]
        kind = 1.0 if isinstance(event, LlmEvent) else 0.5 if isinstance(event, ToolEvent) else 0.0
        # Of equals, the ends of the trace before its middle.
        return -(gates.get(event.seq, 0.0) * 2 + kind), min(i, last - i)

    kept = set(sorted(range(len(trace.events)), key=telling)[:room])
    shown = [event for i, event in enumerate(trace.events) if i in kept]
    return shown, {i: event for i, event in enumerate(trace.events) if i not in kept}


def _pieces(trace: Trace, event: Event) -> Iterator[_Piece]:
    if isinstance(event, LlmEvent):
        yield _Piece(event.seq, "prompt", "", "put into the prompt by the harness, new here")
        for thinking in thinking_of(trace, event):
            yield _Piece(event.seq, thinking.field, thinking.text, "written by the model")
    elif isinstance(event, ToolEvent):
        yield _Piece(event.seq, "arguments", compact(event.arguments))
        yield _Piece(event.seq, "result", compact(event.result), "data from outside")


def _drop_known_prompts(
    trace: Trace, shown: Sequence[Event], pieces: dict[int, list[_Piece]]
) -> None:
    """Fill in what is new in each prompt; tool results and model turns stand elsewhere."""
    known: set[int] = set()
    last = ""
    for event in shown:
        if not isinstance(event, LlmEvent):
            continue
        piece = pieces[event.seq][0]
        new = [i for i in dict.fromkeys(event.prompt) if i not in known]
        known.update(new)
        texts = []
        for index in new:
            message = trace.messages[index] if 0 <= index < len(trace.messages) else {}
            role = str(message.get("role"))[:20]
            if role not in ("assistant", "tool", "function"):
                text = message_text(message.get("content"))
                # Agents that write their history into one text send all of it each time.
                shared = _shared_start(last, text)
                last = text
                start = f"[goes on from character {shared}] " if shared else ""
                texts.append(f"({role}) {start}{text[shared:]}")
        piece.raw = "\n".join(texts)
        if not piece.raw:
            pieces[event.seq].pop(0)


def _shared_start(before: str, text: str) -> int:
    """How many characters two texts share at their start; 0 when it is not worth leaving out."""
    low, high = 0, min(len(before), len(text))
    while low < high:
        middle = (low + high + 1) // 2
        if text.startswith(before[:middle]):
            low = middle
        else:
            high = middle - 1
    return low if low >= MIN_SHARED else 0


def _in_order(
    trace: Trace, shown: Sequence[Event], dropped: dict[int, Event]
) -> Iterator[Event | str]:
    """The shown events, with one line for each run of events left out."""
    if not dropped:
        yield from shown
        return
    run: list[Event] = []
    for i, event in enumerate(trace.events):
        if i in dropped:
            run.append(event)
            continue
        if run:
            yield _gap_line(run)
            run = []
        yield event
    if run:
        yield _gap_line(run)


def _gap_line(run: Sequence[Event]) -> str:
    kinds = {kind: sum(e.kind == kind for e in run) for kind in ("llm", "tool", "http")}
    what = ", ".join(f"{n} {kind}" for kind, n in kinds.items() if n)
    return f"LEFT OUT events {run[0].seq} to {run[-1].seq}: {len(run)} events ({what})"


# How it is shown ------------------------------------------------------------------


def _head(trace: Trace, facts: Facts, mark: str) -> str:
    limits = ", ".join(trace.limits_hit) or "none"
    return (
        f"TRACE mark={mark} events={len(trace.events)} completions={facts.completions} "
        f"limits_hit={neutral(limits)} unrecorded={trace.unrecorded}"
    )


def _stated_facts(facts: Facts, max_tokens: int) -> str:
    """The facts on one line of ASCII: no character of a quote can end it or look like a frame.

    Fewer steps where they would fill more than a third of the budget.
    """
    for limit in (6, 3, 1, 0):
        text = json.dumps(_neutral_json(facts.to_json(limit)), separators=(",", ":"))
        if len(text) <= max_tokens:
            break
    return text


def _neutral_json(value: Json) -> Json:
    if isinstance(value, str):
        return neutral(value[:300])
    if isinstance(value, list):
        return [_neutral_json(v) for v in value]
    if isinstance(value, dict):
        return {k: _neutral_json(v) for k, v in value.items()}
    return value


def _event_line(event: Event) -> str:
    if isinstance(event, LlmEvent):
        usage = event.usage.completion_tokens if event.usage else "unknown"
        return f"EVENT {event.seq} completion status={event.status} completion_tokens={usage}"
    if isinstance(event, ToolEvent):
        name = json.dumps(neutral(event.name[:80]))
        return f"EVENT {event.seq} tool {name} status={event.status}"
    path = json.dumps(neutral(event.path[:120]))
    return f"EVENT {event.seq} other request {path} status={event.status}"


def _framed(piece: _Piece, mark: str) -> Iterator[str]:
    """A foreign text between its marks; a cut one as its head and its tail."""
    name = piece.field if piece.event is None else f"event={piece.event} field={piece.field}"
    note = f" ({piece.note})" if piece.note else ""
    size = len(piece.raw)
    end = 0
    for start, text in piece.parts():
        if start > end:
            yield f"LEFT OUT {start - end} characters"
        end = start + len(text)
        place = f" characters {start} to {end} of {size}" if len(text) < size else ""
        yield f"«{mark} {name}{note}{place}»"
        yield text
        yield f"«/{mark}»"


def _told(facts: Facts, told: Sequence[_Piece], mark: str) -> Iterator[str]:
    if not facts.narrated_by_code:
        return
    yield (
        f"THE AGENT'S OWN ACCOUNT: {facts.narrated_by_code} thoughts that no completion holds. "
        "Code wrote them; they count for nothing and cannot be cited."
    )
    for piece in told:
        yield from _framed(piece, mark)
    if facts.narrated_by_code > len(told):
        yield f"LEFT OUT {facts.narrated_by_code - len(told)} more of them"


# The budget and the mark ----------------------------------------------------------


def _share(pieces: Sequence[_Piece], chars: int) -> None:
    """Give each text its share: short ones whole, what they leave to the long ones."""
    open_ = sorted(pieces, key=lambda p: _cost(p.raw) / p.weight)
    weight = sum(p.weight for p in open_)
    for piece in open_:
        cost = _cost(piece.raw)
        allowed = chars * piece.weight / weight if weight else 0.0
        if cost <= allowed:
            piece.share = len(piece.raw)
            chars -= cost
        else:
            piece.share = max(LEAST_CHARS, int(len(piece.raw) * allowed / cost))
            chars -= int(allowed)
        chars = max(chars, 0)
        weight -= piece.weight


def _cost(text: str) -> int:
    """Characters of budget that a text takes; other scripts take more tokens."""
    return len(text) if text.isascii() else estimate_tokens(text) * 3


def _mark(pieces: Sequence[_Piece]) -> str:
    """Sixteen hexadecimal digits that stand in no shown text and that no text can foresee."""
    texts = [text for piece in pieces for _, text in piece.parts()]
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "replace") + b"\x00")
    while True:
        mark = digest.hexdigest()[:16]
        if not any(mark in text for text in texts):
            return mark
        digest.update(b"again")
