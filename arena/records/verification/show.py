"""A report of verification for people: the table of checks, the first findings, a verdict."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.table import Table

from arena.records.verification.findings import Check, Report
from sandbox.terminal import plain

SHOWN = 10
"""Findings shown in full; `--json` has all."""
_REASONS = 3


def table_of(report: Report) -> Table:
    """What was checked: how often it held, how often not, and what could not be checked."""
    table = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False, pad_edge=False)
    table.add_column("check")
    for heading in ("passed", "failed", "not checkable"):
        table.add_column(heading, justify="right")
    table.add_column("why not", overflow="fold")
    for check in Check:
        tally = report.tallies.get(check)
        if tally is None:
            continue
        failed = f"[bold red]{tally.failed:,}[/]" if tally.failed else "0"
        if tally.noticed:
            failed += f" [yellow]+{tally.noticed:,} noticed[/]"
        reasons = tally.uncheckable.most_common(_REASONS)
        table.add_row(
            check.value,
            f"{tally.passed:,}",
            failed,
            f"{tally.uncheckable.total():,}",
            "; ".join(plain(reason, 80) for reason, _ in reasons),
        )
    return table


def first_findings(report: Report) -> Iterator[str]:
    """The first findings in full, as lines of markup."""
    ordered = sorted(report.findings, key=lambda finding: finding.code.is_notice)
    for finding in ordered[:SHOWN]:
        colour = "yellow" if finding.code.is_notice else "red"
        yield (
            f"[bold {colour}]{finding.code.value}[/] {plain(finding.place, 200)}:"
            f" {plain(finding.detail, 600)}"
        )
    more = report.failed + report.noticed - min(len(ordered), SHOWN)
    if more > 0:
        yield f"and {more:,} more; --json FILE has them"


def verdict_of(report: Report) -> str:
    """In a sentence: what the table comes to."""
    passed = sum(tally.passed for tally in report.tallies.values())
    open_ = sum(tally.uncheckable.total() for tally in report.tallies.values())
    if report.failed:
        return f"[bold red]not verified[/]: {report.failed:,} checks failed"
    left = f"; {open_:,} could not be made, for the reasons above" if open_ else ""
    notices = f"; {report.noticed:,} notices" if report.noticed else ""
    if not passed:
        return f"[bold yellow]nothing was verified[/]{left}"
    return f"[bold green]nothing failed[/]: {passed:,} checks held{left}{notices}"
