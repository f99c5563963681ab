"""What follows from a record's trace, decided again: outcome, axis, score, citations.

Whoever signs a record can sign any outcome; here it is held against the trace that the same
record holds. What cannot be decided again is counted with its reason.
"""

from __future__ import annotations

from typing import Any, cast

from arena.records.verification.contents import Opened
from arena.records.verification.findings import Check, Code, Report
from arena.records.verification.materials import Workbench
from arena.runs.canonical import canonical
from arena.runs.problems import problem_ref
from arena.runs.rescoring import rejudge_axis, rescore
from judge.citations import holds, needs_thinking
from judge.facts import read_facts
from judge.prompts import PROMPT_VERSION
from judge.verdict import Verdict
from sandbox.provenance import PROVENANCE_VERSION
from sandbox.trace import Trace
from scoring.coefficient import coefficient
from scoring.exceptions import Fault
from scoring.types import Json, JsonObject, Problem

NO_PROBLEM = "the problem is not here"
NO_CATALOG = "the catalogue is not here"
NO_SOURCE = "the agent's source is not here"


def check_run(opened: Opened, bench: Workbench, report: Report) -> None:
    """Decide everything about a run again, as far as the workbench allows."""
    value = cast("dict[str, Any]", opened.value)
    assert opened.trace is not None
    check_closed(opened, report)
    _check_standins(opened, value["conditions"], report)
    problem = bench.problem(value["problem"].get("content_hash"))
    if problem is not None:
        _check_problem(opened, value["problem"], problem, report)
    if value["closed"]:
        _check_outcome(opened, value, problem, bench, report)
        _check_axis(opened, value, problem, bench, report)
        if value["verdict"] is not None:
            check_ceiling(opened.place, value["verdict"], opened, problem, report)
    check_score(opened.place, value, _success(value), report)
    if value["verdict"] is not None:
        check_citations(opened.place, value["verdict"], opened.trace, report)


def _check_problem(opened: Opened, said: dict[str, Any], problem: Problem, report: Report) -> None:
    """What a record calls its problem is what the problem is called."""
    ref = problem_ref(problem)
    for name in ("problem_id", "bucket", "cluster", "pool"):
        if said.get(name) != (right := getattr(ref, name)):
            detail = f"{name} is {_short(said.get(name))}; that of its problem is {_short(right)}"
            report.found(Code.RECORD_PROBLEM, Check.CONTENT, opened.place, detail)
            return


def _check_standins(opened: Opened, conditions: dict[str, Any], report: Report) -> None:
    """What rules answered is named as such: a record must not pass for one of a real model."""
    assert opened.trace is not None
    seen = {f"model:{event.model}" for event in opened.trace.llm() if event.standin}
    if missing := sorted(seen.difference(conditions["standins"])):
        detail = f"{_short(missing[0])} answered, and is not among its stand-ins"
        report.found(Code.RECORD_STANDINS, Check.CONTENT, opened.place, detail)


def check_closed(opened: Opened, report: Report) -> None:
    """Open exactly when the host, the provider or the arena failed."""
    value = cast("dict[str, Any]", opened.value)
    failure = value["failure"]
    closed = failure is None or failure["fault"] == Fault.AGENT.value
    wrong = None
    if value["closed"] is not closed:
        wrong = f"closed is {value['closed']}, and its failure says {closed}"
    elif closed and value["outcome"] is None:
        wrong = "a closed run without an outcome"
    elif not closed and (value["outcome"] or value["verdict"] or value["axis"]):
        wrong = "an open run with an outcome, an axis or a verdict"
    if wrong:
        report.found(Code.CLOSED_OTHER, Check.CLOSED, opened.place, wrong)
    else:
        report.passed(Check.CLOSED)


def check_score(place: str, value: dict[str, Any], success: bool, report: Report) -> None:
    """Quality by the gate, coefficient by the quality, score by both."""
    if value["verdict"] is None:
        if value["coefficient"] is None and value["final_score"] is None:
            return
        detail = "a coefficient or a score without a verdict"
        report.found(Code.SCORE_COEFFICIENT, Check.SCORE, place, detail)
        return
    verdict = Verdict.from_json(value["verdict"])
    worth = coefficient(verdict.gate.quality)
    for code, what, said, right in (
        (Code.SCORE_QUALITY, "the quality", verdict.quality, verdict.gate.quality),
        (Code.SCORE_COEFFICIENT, "the coefficient", value["coefficient"], worth),
        (Code.SCORE_FINAL, "the final score", value["final_score"], float(success) * worth),
    ):
        if said != right:
            detail = f"{what} is {said}, and {right} follows from gate and outcome"
            report.found(code, Check.SCORE, place, detail)
            return
    report.passed(Check.SCORE)


def check_citations(place: str, verdict: JsonObject, trace: Trace, report: Report) -> None:
    """Every cited span stands in the trace, character by character."""
    read = Verdict.from_json(verdict)
    for number, span in enumerate(read.evidence, start=1):
        if not holds(trace, span):
            detail = (
                f"citation {number} does not stand in event {span.event}, {span.field[:40]}, at"
                f" {span.start} to {span.end}"
            )
            report.found(Code.CITATION_FALSE, Check.CITATIONS, place, detail)
            return
    if needs_thinking(read.gate) and not any(s.field.startswith("think:") for s in read.evidence):
        detail = f"it stops at the gate {read.gate.value} and cites no thinking"
        report.found(Code.CITATION_FALSE, Check.CITATIONS, place, detail)
        return
    report.passed(Check.CITATIONS)


def check_ceiling(
    place: str, verdict: JsonObject, run: Opened, problem: Problem | None, report: Report
) -> None:
    """No verdict says more than the facts of the trace allow."""
    read = Verdict.from_json(verdict)
    if problem is None:
        report.uncheckable(Check.CEILING, NO_PROBLEM)
    elif read.prompt_version != PROMPT_VERSION:
        report.uncheckable(Check.CEILING, "judged by another version of the judge")
    else:
        assert run.trace is not None
        facts = read_facts(run.trace, problem.query, cast("list[Any]", run.value["dialogue"]))
        if read.quality > facts.ceiling:
            detail = f"quality {read.quality}, and the facts of the trace allow {facts.ceiling}"
            report.found(Code.VERDICT_ABOVE_FACTS, Check.CEILING, place, detail)
        else:
            report.passed(Check.CEILING)


def _check_outcome(
    opened: Opened,
    value: dict[str, Any],
    problem: Problem | None,
    bench: Workbench,
    report: Report,
) -> None:
    titles = bench.titles(value["conditions"]["scoring_version"])
    catalog = bench.catalog
    reason = None
    if problem is None:
        reason = NO_PROBLEM
    elif catalog is None:
        reason = NO_CATALOG
    elif catalog.content_hash != value["conditions"]["catalog_hash"]:
        reason = "run on another catalogue than the one here"
    elif isinstance(titles, str):
        reason = titles
    if reason or problem is None or catalog is None or isinstance(titles, str):
        report.uncheckable(Check.OUTCOME, reason or NO_PROBLEM)
        return
    assert opened.trace is not None
    again = rescore(
        problem,
        opened.trace,
        value["dialogue"],
        catalog,
        titles,
        completed=value["failure"] is None,
    ).to_json()
    _compare(Code.OUTCOME_OTHER, Check.OUTCOME, opened.place, value["outcome"], again, report)


def _check_axis(
    opened: Opened,
    value: dict[str, Any],
    problem: Problem | None,
    bench: Workbench,
    report: Report,
) -> None:
    source = bench.source(value["agent"]["source_hash"])
    if value["axis"] is None:
        report.uncheckable(Check.AXIS, "the record has none")
    elif value["axis"].get("version") != PROVENANCE_VERSION:
        report.uncheckable(Check.AXIS, "decided by another version of the axis rules")
    elif problem is None:
        report.uncheckable(Check.AXIS, NO_PROBLEM)
    elif source is None:
        report.uncheckable(Check.AXIS, NO_SOURCE)
    else:
        assert opened.trace is not None
        again = rejudge_axis(problem, opened.trace, value["dialogue"], source).to_json()
        _compare(Code.AXIS_OTHER, Check.AXIS, opened.place, value["axis"], again, report)


def _compare(
    code: Code, check: Check, place: str, said: JsonObject | None, again: JsonObject, report: Report
) -> None:
    """Equal as a record would hold them, or which field differs."""
    if canonical(said) == canonical(again):
        report.passed(check)
        return
    held = said or {}
    for name in sorted({*held, *again}):
        ours, theirs = again.get(name), held.get(name)
        if canonical(ours) != canonical(theirs):
            detail = f"{name} is {_short(theirs)}; {_short(ours)} follows from the trace"
            report.found(code, check, place, detail)
            return


def _short(value: Json) -> str:
    text = canonical(value).decode()
    return text if len(text) <= 120 else text[:120] + "…"


def _success(value: dict[str, Any]) -> bool:
    outcome = value["outcome"]
    return bool(outcome and outcome["success"])
