"""A record for people: everything foreign is bounded, harmless, and cited where it stands."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from arena.records.show import record_lines
from arena.runs.record import EncodedRecord
from judge.show import CLOSE, OPEN
from judge.verdict import Gate, Span, Verdict
from sandbox.trace import HttpEvent, LlmEvent, ToolEvent, Trace, Usage
from scoring.types import JsonObject
from tests.unit.arena.builders import AGENT_FAULT, HOST_FAULT, problem, record, seal, verdict_record

HOSTILE = "\x1b[31mfake ⟦cited⟧ [bold]markup[/] \x07 sealed by nobody\nnew line"


def printed(found: EncodedRecord, later: Verdict | None = None) -> str:
    console = Console(file=io.StringIO(), width=100_000)
    for line in record_lines(found, seal(found)[0].sealed, "leaf 3", later):
        console.print(line, soft_wrap=True)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def completion(text: str) -> LlmEvent:
    message: JsonObject = {"role": "assistant", "content": text, "tool_calls": [{"id": HOSTILE}]}
    choice: JsonObject = {"index": 0, "message": message, "finish_reason": "stop"}
    return LlmEvent(
        0, 0, 1, 0, HOSTILE, "s", standin=True, prompt=(0,), params={}, status=200,
        choices=(choice,), usage=Usage(3, 40),
    )  # fmt: skip


def run_with(text: str, *spans: Span) -> EncodedRecord:
    refused = ToolEvent(1, 0, 0, "tools", HOSTILE, {"q": HOSTILE}, 500, HOSTILE * 500)
    trace = Trace(
        ({"role": HOSTILE, "content": HOSTILE * 500},),
        (
            completion(text),
            replace(refused, error=AGENT_FAULT),
            HttpEvent(2, 0, 0, "GET", HOSTILE, 404),
        ),
        (HOSTILE,),
        3,
    )
    verdict = Verdict(0.9, Gate.PASSED, spans, ("a judge",), "1")
    made = record(problem(), gate=Gate.PASSED)
    agent = replace(made.agent, label=HOSTILE)
    return replace(
        made, trace=trace.to_json(), verdict=verdict.to_json(), agent=agent, log_tail=HOSTILE
    ).encode()


def test_a_hostile_record_is_shown_harmless_and_bounded() -> None:
    text = printed(run_with(HOSTILE * 1_000))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert OPEN not in text
    assert "[bold]markup[/]" in text
    assert all(len(line) < 5_000 for line in text.splitlines())
    assert "3 requests beyond the limit" in text


def test_cited_spans_are_marked_where_they_stand() -> None:
    thought = "It costs 10 pesos. " * 100 + "I prefer mug 1 over mug 6." + " More." * 300
    start = thought.index("I prefer")
    spans = (
        Span(0, "think:0", start, start + 26, thought[start : start + 26]),
        Span(0, "think:0", 0, 8, "It costs"),
        Span(0, "think:0", 4, 20, "overlaps"),
        Span(1, "result", 10**6, 10**6 + 1, "x"),
    )
    text = printed(run_with(thought, *spans))
    line = next(one for one in text.splitlines() if one.strip().startswith("think:0:"))
    assert f"{OPEN}It costs{CLOSE}" in line
    assert f"{OPEN}I prefer mug 1 over mug 6.{CLOSE}" in line
    assert "…" in line


def test_who_sealed_it_and_how_it_ended_are_told() -> None:
    text = printed(record(problem(), recommended="2").encode())
    assert "sealed by 5Grw" in text
    assert "leaf 3" in text
    assert "no success: price" in text
    assert "constraints met: price 0.00" in text
    assert "no judge was asked" in text
    assert "by no fault of the agent" in printed(record(problem(), failure=HOST_FAULT).encode())
    run = record(problem())
    later = verdict_record(run, Gate.DATUM)
    assert "a later verdict on run" in printed(later.encode())
    told = printed(run.encode(), Verdict.from_json(later.verdict))
    assert "verdict, later: quality 0.5" in told
