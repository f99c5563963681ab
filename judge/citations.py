"""Do the citations of a verdict hold? Checked against the raw trace, character by character.

A judge quotes what it was shown, which is `neutral` text with the offsets of the raw
one. Where the offset is wrong or missing, the quote's first occurrence in the named
field is taken: an agent that repeats itself must not become one that nobody can cite.
Any other difference makes a citation false. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from judge.neutral import neutral
from judge.thinking import field_text
from judge.verdict import Gate, Span
from sandbox.trace import Event, Trace

MAX_QUOTE = 2_000
MIN_QUOTE = 2
MAX_CITATIONS = 12


@dataclass(frozen=True, slots=True)
class Citation:
    """What a judge claims: `quote` stands in a field of an event, perhaps at `start`."""

    event: int
    field: str
    quote: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """Citations after the check: those that hold, and why the others do not."""

    spans: tuple[Span, ...]
    faults: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether every citation holds."""
        return not self.faults


class CitationChecker:
    """Checks citations against one trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._events: dict[int, Event] = {event.seq: event for event in trace.events}
        self._text = lru_cache(maxsize=64)(self._read)

    def check(self, citations: Iterable[Citation], gate: Gate) -> Checked:
        """Check the citations of a verdict that stopped at `gate`.

        From quality 0.5 on a verdict needs one from the model's thinking.
        """
        spans: list[Span] = []
        faults: list[str] = []
        for number, citation in enumerate(citations, start=1):
            if number > MAX_CITATIONS:
                faults.append(f"there are more than {MAX_CITATIONS} citations")
                break
            found = self.locate(citation)
            if isinstance(found, Span):
                spans.append(found)
            else:
                faults.append(f"citation {number}: {found}")
        if needs_thinking(gate) and not any(s.field.startswith("think:") for s in spans):
            faults.append("no citation of a think field holds, and this gate needs one")
        return Checked(tuple(dict.fromkeys(spans)), tuple(faults))

    def locate(self, citation: Citation) -> Span | str:
        """The exact span of a citation in the raw trace, or why there is none."""
        event = self._events.get(citation.event)
        if event is None:
            return f"there is no event {citation.event}"
        texts = self._text(citation.event, citation.field)
        if texts is None:
            return f"event {citation.event} has no field {citation.field[:40]!r}"
        raw, shown = texts
        quote = citation.quote
        if len(quote.strip()) < MIN_QUOTE or len(quote) > MAX_QUOTE:
            return f"a quote has {MIN_QUOTE} to {MAX_QUOTE:,} characters"
        start = self._place(citation, quote, shown)
        if start is None:
            # Some models write the plain character where they were shown its look-alike.
            start = self._place(citation, neutral(quote), shown)
        if start is None:
            return f"event {citation.event}, {citation.field}: the quote does not stand there"
        end = start + len(quote)
        return Span(citation.event, citation.field, start, end, raw[start:end])

    def _place(self, citation: Citation, quote: str, shown: str) -> int | None:
        start = citation.start
        if start is not None and start >= 0 and shown.startswith(quote, start):
            return start
        first = shown.find(quote)
        return None if first < 0 else first

    def _read(self, seq: int, field: str) -> tuple[str, str] | None:
        raw = field_text(self._trace, self._events[seq], field)
        return None if raw is None else (raw, neutral(raw))


def needs_thinking(gate: Gate) -> bool:
    """Whether a verdict that stops at `gate` says that there is thinking to cite."""
    return gate not in (Gate.INFERENCE, Gate.REFERENCE)


def holds(trace: Trace, span: Span) -> bool:
    """Whether a stored span stands in the trace exactly as it says."""
    event = next((e for e in trace.events if e.seq == span.event), None)
    text = None if event is None else field_text(trace, event, span.field)
    return (
        text is not None
        and 0 <= span.start < span.end <= len(text)
        and text[span.start : span.end] == span.quote
    )
