"""The paper's Table 1 with our rows beside its published ones, marked by who measured them.

Two harnesses are not one yardstick: the paper scores on its own 75 held-out problems, under
its own runner. Rows say which harness they are of, and nothing is computed across them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scoring.types import JsonObject
from training.evaluation.report import Comparison, Report
from training.evaluation.statistics import Interval

PAPER = "paper"
OURS = "ours"


@dataclass(frozen=True, slots=True)
class Row:
    """A row. Rates are 0 to 1; None was not published, or is incomplete."""

    harness: str
    model: str
    problems: int
    asr: float | None
    low: float | None = None
    high: float | None = None
    pass_at: tuple[tuple[int, float], ...] = ()
    open: int = 0

    def to_json(self) -> JsonObject:
        """The object of `--json`."""
        return {
            "harness": self.harness,
            "model": self.model,
            "problems": self.problems,
            "asr": self.asr,
            "low": self.low,
            "high": self.high,
            "pass_at": {str(k): rate for k, rate in self.pass_at},
            "open": self.open,
        }


def _published(model: str, asr: float, *pass_at: tuple[int, float]) -> Row:
    shares = tuple((k, rate / 100) for k, rate in pass_at)
    return Row(PAPER, model, 75, asr / 100, pass_at=shares)


PUBLISHED: tuple[Row, ...] = (
    _published("Qwen3-4B (base)", 18.0),
    _published("rejection_v2", 34.7),
    _published("opd_sonnet", 34.7),
    _published("GPT-5.5", 38.7),
    _published("opd_rebal", 40.0),
    _published("opd_renderers", 42.7, (1, 34.8), (8, 53.3)),
    _published("KTO from opd_renderers", 42.7, (1, 35.1)),
    _published("ShoppingBench SFT", 43.6),
    _published("ShoppingBench SFT + GRPO", 48.7),
    _published("Sonnet 4.6", 64.0),
    _published("top SN15 miner", 77.3),
)
"""ASR on the paper's 75 held-out problems, in per cent there, of one run a problem; pass@1 is
the mean over eight. (KTO is given as "42.7 / 35.1"; 35.1 % is no number of 75 problems, so it
is taken for its pass@1.)"""


def row_of(report: Report) -> Row:
    """Our row. An incomplete evaluation has a row without a number."""
    rates = report.overall
    first = rates.pass_at.get(1)
    return Row(
        harness=OURS,
        model=report.label,
        problems=rates.problems,
        asr=first.estimate if first else None,
        low=first.low if first else None,
        high=first.high if first else None,
        pass_at=tuple((k, rate.estimate) for k, rate in rates.pass_at.items() if k > 1),
        open=rates.open,
    )


def table(reports: Sequence[Report], *, published: bool = True) -> tuple[Row, ...]:
    """Published rows, then ours, each by rate; incomplete ones last."""
    ours = sorted(map(row_of, reports), key=lambda row: (row.asr is None, row.asr or 0.0))
    return ((*PUBLISHED,) if published else ()) + tuple(ours)


def table_markdown(rows: Sequence[Row]) -> str:
    """The table for a document."""
    lines = [
        "| harness | model | problems | ASR % | 95 % interval | pass@k % |",
        "|---|---|--:|--:|---|---|",
    ]
    for row in rows:
        interval = "" if row.low is None or row.high is None else _span(row.low, row.high)
        more = ", ".join(f"@{k} {100 * rate:.1f}" for k, rate in row.pass_at)
        asr = f"{100 * row.asr:.1f}" if row.asr is not None else f"incomplete ({row.open} open)"
        name = row.model.replace("|", "\\|").replace("\n", " ")
        lines.append(f"| {row.harness} | {name} | {row.problems} | {asr} | {interval} | {more} |")
    return "\n".join(lines) + "\n"


def report_markdown(reports: Sequence[Report], comparisons: Sequence[Comparison]) -> str:
    """Everything of some evaluations: Table 1, buckets, axes, behaviour, comparisons."""
    parts = [
        "## Success (strict), Table 1\n",
        table_markdown(table(reports)),
        "Rows of the paper were measured by its authors on its own 75 problems; ours by this"
        " arena's sandbox and strict scorer. They stand side by side and are not one ranking.\n",
    ]
    for report in reports:
        if report.complete:
            parts += [f"## {report.label}\n", _details(report)]
        else:
            found = ", ".join(f"{n} × {code}" for code, n in sorted(report.errors.items()))
            parts.append(
                f"## {report.label}\n\nIncomplete: {report.overall.open} of"
                f" {report.overall.samples} samples have no outcome"
                + (f" ({found})" if found else "")
                + ".\n"
            )
    if comparisons:
        parts += ["## Paired comparisons\n", _comparisons(comparisons)]
    return "\n".join(parts)


def _details(report: Report) -> str:
    lines = ["| | all |" + "".join(f" {b.value} |" for b in report.by_bucket), ""]
    lines[1] = "|---|" + "--:|" * (1 + len(report.by_bucket))
    columns = [report.overall, *report.by_bucket.values()]

    def add(name: str, cells: Sequence[str]) -> None:
        lines.append(f"| {name} | " + " | ".join(cells) + " |")

    add("problems", [str(rates.problems) for rates in columns])
    for k in report.overall.pass_at:
        add(f"pass@{k} %", [_cell(rates.pass_at.get(k)) for rates in columns])
    add("upstream's rule %", [_cell(rates.upstream) for rates in columns])
    for axis in report.overall.axes:
        add(f"axis {axis} %", [_cell(rates.axes.get(axis)) for rates in columns])
    add("recommended %", [_cell(rates.recommended) for rates in columns])
    add("truncated %", [_cell(rates.truncated) for rates in columns])
    add("crashed or timed out %", [_cell(rates.failed) for rates in columns])
    add("invented ids a step", [_number(rates.invented_per_step, 3) for rates in columns])
    add("steps a run", [_number(rates.steps, 1) for rates in columns])
    return "\n".join(lines) + "\n"


def _comparisons(comparisons: Sequence[Comparison]) -> str:
    lines = [
        "| from | to | difference, points | 95 % interval | p | better | worse |",
        "|---|---|--:|---|--:|--:|--:|",
    ]
    for one in comparisons:
        found = one.paired.difference
        lines.append(
            f"| {one.first} | {one.second} | {100 * found.estimate:+.1f} |"
            f" {_span(found.low, found.high)} | {one.paired.p_value:.4f} |"
            f" {one.paired.better} | {one.paired.worse} |"
        )
    return "\n".join(lines) + "\n"


def _span(low: float, high: float) -> str:
    return f"{100 * low:.1f} to {100 * high:.1f}"


def _cell(rate: Interval | None) -> str:
    if rate is None:
        return ""
    return f"{100 * rate.estimate:.1f} ({_span(rate.low, rate.high)})"


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
