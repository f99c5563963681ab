"""A judgement for people: the verdict in a line, and the cited spans marked in their text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judge.neutral import neutral
from judge.thinking import field_text
from judge.verdict import Judgement, Span, Unjudged, Verdict
from sandbox.terminal import plain
from sandbox.trace import Trace

AROUND = 200
"""Characters shown on each side of a citation."""
MAX_QUOTE = 1_000
OPEN, CLOSE = "⟦", "⟧"
"""Around a cited span: a terminal without colours shows it as well."""


def lines(name: str, trace: Trace, judgement: Judgement) -> Iterator[str]:
    """The judgement as lines of markup; text of agents and models is bounded and harmless."""
    if isinstance(judgement, Unjudged):
        yield f"[bold]{plain(name, 200)}[/]: [yellow]unjudged[/]"
        yield f"  {plain(judgement.reason.code)}: {plain(judgement.reason.message)}"
        return
    yield f"[bold]{plain(name, 200)}[/]: quality [bold]{judgement.quality:g}[/], {_gate(judgement)}"
    who = ", ".join(plain(model, 80) for model in judgement.judges)
    kind = " (rule-based stand-in)" if judgement.standin else ""
    cost = f", {judgement.cost_usd:.4f} USD" if judgement.cost_usd else ""
    yield f"  judged by {who}{kind}; {judgement.calls} calls{cost}"
    if judgement.capped_from is not None:
        yield f"  the model said {judgement.capped_from:g}; the facts of the trace allow no more"
    for span in judgement.evidence:
        yield f"  event {span.event}, {plain(span.field, 40)}, characters {span.start}–{span.end}:"
        yield f"    {marked(trace, span)}"


def marked(trace: Trace, span: Span) -> str:
    """The cited span, marked, with what stands around it, as one line of markup."""
    event = next((e for e in trace.events if e.seq == span.event), None)
    text = (field_text(trace, event, span.field) if event is not None else None) or span.quote
    start = min(span.start, len(text))
    end = min(max(span.end, start), len(text))
    before, after = text[max(0, start - AROUND) : start], text[end : end + AROUND]
    quote = _shown([text[start:end]], MAX_QUOTE)
    lead = "…" if start > AROUND else ""
    tail = "…" if end + AROUND < len(text) else ""
    shown = f"[bold reverse]{OPEN}{quote}{CLOSE}[/]"
    return f"{lead}{_shown([before], AROUND)}{shown}{_shown([after], AROUND)}{tail}"


def _gate(verdict: Verdict) -> str:
    if verdict.gate.value == "passed":
        return "all gates passed"
    return f"stopped at the gate {verdict.gate.value}"


def _shown(parts: Sequence[str], limit: int) -> str:
    """Foreign text on one line; it can hold no mark of ours, no markup and no control."""
    text = neutral("".join(parts)).translate({ord(OPEN): "[", ord(CLOSE): "]", 10: " ", 9: " "})
    return plain(text, limit)
