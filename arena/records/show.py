"""A record for people: who sealed it, what happened turn by turn, how it was decided.

Everything that an agent, a model or a product wrote is bounded and harmless to a terminal;
what a verdict cites is marked where it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from arena.runs.record import EncodedRecord, Kind
from arena.runs.seal import Sealed
from judge.neutral import neutral
from judge.show import CLOSE, OPEN
from judge.show import lines as judgement_lines
from judge.thinking import compact, field_text, thinking_of
from judge.verdict import Span, Unjudged, Verdict
from sandbox.exceptions import ErrorInfo
from sandbox.provenance import message_text
from sandbox.terminal import plain
from sandbox.trace import Event, HttpEvent, LlmEvent, ToolEvent, Trace
from scoring.types import JsonObject

MAX_TEXT = 1_200
"""Characters shown of one text; a cited span beyond that is shown with what stands around it."""
MAX_MESSAGES = 6
_AROUND = 80


def record_lines(
    record: EncodedRecord, sealed: Sealed | None, in_log: str, later: Verdict | None = None
) -> Iterator[str]:
    """A record as lines of markup. `later` is a verdict that came in a record of its own.

    Raises ValueError, KeyError or TypeError for a record of another schema.
    """
    value = cast("dict[str, Any]", record.value)
    if record.kind is Kind.VERDICT:
        yield f"[bold]a later verdict on run {_shown(str(value['run_id']), 80)}[/]"
        yield f"  on the record {_shown(str(value['record_hash']), 64)}"
        yield from _seal_lines(record, sealed, in_log)
        return
    trace = Trace.from_json(value["trace"])
    verdict = later or _verdict(value)
    yield from _head_lines(value)
    yield from _seal_lines(record, sealed, in_log)
    yield ""
    yield from _trace_lines(trace, verdict.evidence if verdict else ())
    yield ""
    yield from _outcome_lines(value)
    yield from _judgement_lines(value, trace, verdict, later is not None)


def _head_lines(value: dict[str, Any]) -> Iterator[str]:
    agent, problem, timing = value["agent"], value["problem"], value["timing"]
    yield f"[bold]run {_shown(value['run_id'], 80)}[/]"
    yield (
        f"  {_shown(agent['label'], 80)} on problem {_shown(problem['problem_id'], 80)}"
        f" ({_shown(problem['bucket'], 20)}{_in_pool(problem)}), attempt {value['attempt']}"
    )
    yield f"  {_shown(timing['started_at'], 40)}, {float(timing['wall_s']):.1f} s"
    conditions = value["conditions"]
    standins = ", ".join(_shown(str(name), 80) for name in conditions["standins"])
    yield (
        f"  model {_shown(str(conditions['model']), 80)}, scoring"
        f" {_shown(conditions['scoring_version'], 80)}"
        + (f"; stand-ins took part: {standins}" if standins else "")
    )


def _seal_lines(record: EncodedRecord, sealed: Sealed | None, in_log: str) -> Iterator[str]:
    yield f"  record {record.hash}, {len(record.content):,} bytes"
    if sealed is None:
        yield "  [yellow]nobody sealed it[/]"
    else:
        seal = sealed.seal
        block = f", after block {seal.block.number}" if seal.block else ""
        yield f"  sealed by {seal.validator} as number {seal.sequence} at {seal.sealed_at}{block}"
    yield f"  {in_log}"


def _trace_lines(trace: Trace, evidence: Sequence[Span]) -> Iterator[str]:
    shown: set[int] = set()
    for event in trace.events:
        spans = [span for span in evidence if span.event == event.seq]
        match event:
            case LlmEvent():
                yield from _completion_lines(trace, event, spans, shown)
            case ToolEvent():
                yield f"[bold]{event.seq} tool {_shown(event.name, 60)}[/] {_status(event)}"
                yield from _field(trace, event, "arguments", spans)
                yield from _field(trace, event, "result", spans)
            case HttpEvent():
                yield (
                    f"[bold]{event.seq} {_shown(event.method, 10)} {_shown(event.path, 200)}[/]"
                    f" {_status(event)}"
                )
    for limit in trace.limits_hit:
        yield f"[yellow]a limit turned requests away: {_shown(limit, 80)}[/]"
    if trace.unrecorded:
        yield f"[yellow]{trace.unrecorded} requests beyond the limit were not kept[/]"


def _completion_lines(
    trace: Trace, event: LlmEvent, spans: Sequence[Span], shown: set[int]
) -> Iterator[str]:
    usage = event.usage
    tokens = f", {usage.prompt_tokens} + {usage.completion_tokens} tokens" if usage else ""
    standin = " (stand-in)" if event.standin else ""
    yield (
        f"[bold]{event.seq} model {_shown(event.model, 60)}{standin}[/] {_status(event)}{tokens}"
    )
    new = [i for i in event.prompt if i not in shown and 0 <= i < len(trace.messages)]
    shown.update(new)
    if len(new) > MAX_MESSAGES:
        yield f"  … {len(new) - MAX_MESSAGES} more new messages"
    for index in new[-MAX_MESSAGES:]:
        message = trace.messages[index]
        text = message_text(message.get("content"))
        yield f"  [dim]{_shown(str(message.get('role')), 20)}:[/] {_shown(text, MAX_TEXT // 3)}"
    for thinking in thinking_of(trace, event):
        yield f"  [dim]{thinking.field}:[/] {_marked(thinking.text, spans, thinking.field)}"
    for index, choice in enumerate(event.choices):
        if any(span.field == f"content:{index}" for span in spans):
            yield from _field(trace, event, f"content:{index}", spans)
        message = cast("JsonObject", choice.get("message") or {})
        for call in cast("list[Any]", message.get("tool_calls") or []):
            yield f"  [dim]calls:[/] {_shown(compact(call), MAX_TEXT // 3)}"


def _field(trace: Trace, event: Event, field: str, spans: Sequence[Span]) -> Iterator[str]:
    text = field_text(trace, event, field)
    if text is not None:
        yield f"  [dim]{field}:[/] {_marked(text, spans, field)}"


def _status(event: Event) -> str:
    ok = event.status == 200 and event.error is None
    colour = "green" if ok else "red"
    error = f" {_shown(event.error.code, 80)}" if event.error else ""
    return f"[{colour}]{event.status}{error}[/], {event.elapsed_ms:.0f} ms"


def _marked(text: str, spans: Sequence[Span], field: str) -> str:
    """A text with its cited spans marked; what is cut around them is said by dots."""
    own = sorted((s.start, s.end) for s in spans if s.field == field and s.start < s.end)
    if not own:
        return _shown(text, MAX_TEXT)
    pieces: list[str] = []
    at = 0
    for start, end in own:
        if start < at or end > len(text):
            continue  # spans that overlap, or that do not stand here: the list below has them
        pieces += [_between(text, at, start), f"[bold reverse]{OPEN}"]
        pieces += [_shown(text[start:end], MAX_TEXT), f"{CLOSE}[/]"]
        at = end
    return "".join([*pieces, _between(text, at, len(text))])


def _between(text: str, start: int, end: int) -> str:
    """What stands between two spans: its ends, when it is long."""
    if end - start <= MAX_TEXT // 2:
        return _shown(text[start:end], MAX_TEXT)
    head = text[start : start + _AROUND] if start else ""
    return f"{_shown(head, _AROUND)}…{_shown(text[end - _AROUND : end], _AROUND)}"


def _shown(text: str, limit: int) -> str:
    """Foreign text on one line, without our marks, markup or control characters."""
    cut = neutral(text[: 2 * limit])
    return plain(cut.translate({ord(OPEN): "[", ord(CLOSE): "]", 10: " ", 9: " "}), limit)


def _outcome_lines(value: dict[str, Any]) -> Iterator[str]:
    failure = ErrorInfo.from_json(value["failure"]) if value["failure"] else None
    if failure is not None:
        yield (
            f"[bold red]failed[/]: {_shown(failure.code, 80)}, the {failure.fault.value}'s fault:"
            f" {_shown(failure.message, 300)}"
        )
    outcome = value["outcome"]
    if outcome is None:
        yield "[bold yellow]open[/]: no outcome, by no fault of the agent"
        return
    if outcome["success"]:
        yield "[bold green]success[/] (strict)"
    else:
        yield f"[bold red]no success[/]: {_shown(str(outcome['reason']), 80)}"
    axes = ", ".join(
        f"{_shown(name, 30)} {share:.2f}"
        for name, share in outcome["axes"].items()
        if share is not None
    )
    yield f"  constraints met: {axes or 'none stated'}"
    ids = ", ".join(_shown(str(i), 40) for i in outcome["recommended_ids"][:10])
    yield f"  recommended: {ids or 'nothing'}; by upstream's rule {_yes(outcome)}"
    axis = value["axis"]
    if axis is not None:
        why = ", ".join(_shown(str(reason), 60) for reason in axis["reasons"])
        yield f"  axis {_shown(axis['axis'], 5)}{f': {why}' if why else ''}"


def _judgement_lines(
    value: dict[str, Any], trace: Trace, verdict: Verdict | None, later: bool
) -> Iterator[str]:
    if verdict is not None:
        yield from judgement_lines("verdict, later" if later else "verdict", trace, verdict)
    elif value["unjudged"] is not None:
        reason = ErrorInfo.from_json(value["unjudged"]["unjudged"])
        yield from judgement_lines("verdict", trace, Unjudged(reason))
    else:
        yield "no judge was asked"
    if value["coefficient"] is not None:
        yield (
            f"[bold]coefficient {float(value['coefficient']):.4f}, final score"
            f" {float(value['final_score']):.4f}[/]"
        )


def _verdict(value: dict[str, Any]) -> Verdict | None:
    return Verdict.from_json(value["verdict"]) if value["verdict"] else None


def _in_pool(problem: dict[str, Any]) -> str:
    return f", {_shown(problem['pool'], 40)}" if problem.get("pool") else ""


def _yes(outcome: dict[str, Any]) -> str:
    return "a success" if outcome["upstream_success"] else "no success"
