"""The dataset card: `README.md` with what `datasets` needs to load the export as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from corpus_export.figures import Series, bars, steps
from corpus_export.manifest import CARD
from corpus_export.rows import AXES, NOT_PUBLIC, SPLITS
from corpus_export.stats import MEASURES, bin_labels
from corpus_export.types import Reason
from scoring.types import JsonObject

_FIGURES = "figures"
_COUNTS = (
    ("trajectories", "trajectories"),
    ("distinct_shapes", "distinct sequences of tools"),
    ("verified", "verified before recommending"),
)
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def figures_of(found: JsonObject) -> dict[str, bytes]:
    """The pictures of some statistics, by file name."""
    funnel = cast("JsonObject", found["funnel"])
    stages = cast("list[dict[str, int]]", funnel["stages"])
    rows = [("read", cast("int", funnel["read"]))]
    rows += [(f"after {stage['stage']}", stage["out"]) for stage in stages]
    pictures = {f"{_FIGURES}/funnel.svg": steps("From records to rows", rows)}
    for measure in MEASURES:
        series = [
            Series(name, cast("list[int]", _measure(found, name, measure.name)["counts"]))
            for name in ("kept", "rejected")
        ]
        picture = bars(measure.title, bin_labels(measure.bins), series)
        pictures[f"{_FIGURES}/{measure.name}.svg"] = picture
    buckets = sorted({b for name in ("kept", "rejected") for b in _buckets(found, name)})
    if buckets:
        series = [
            Series(name, [_buckets(found, name).get(b, 0) for b in buckets])
            for name in ("kept", "rejected")
        ]
        pictures[f"{_FIGURES}/buckets.svg"] = bars("Buckets", buckets, series)
    return pictures


def card_of(manifest: JsonObject, found: JsonObject) -> dict[str, bytes]:
    """The card, by file name."""
    counted = cast("dict[str, dict[str, int]]", manifest["rows"])
    rows = {split: {a: counted[split][a] for a in AXES.values()} for split in SPLITS.values()}
    total = sum(n for split in rows.values() for n in split.values())
    public = bool(manifest["public"])
    day = cast("JsonObject", cast("JsonObject", manifest["inputs"])["options"])["day"]
    title = f"Shopping-agent trajectories of {day}" if day else "Shopping-agent trajectories"
    parts = [
        _front_matter(rows, total, title),
        f"# {title}\n",
        ""
        if public
        else f"> **{NOT_PUBLIC}** Records in it are not released: do not publish it.\n",
        _INTRODUCTION.format(total=total),
        _loading(rows),
        _numbers(manifest, found),
        _PICTURES,
        *(f"![{name}]({name})" for name in figures_of(found)),
        "",
    ]
    return {CARD: "\n".join(parts).encode()}


_INTRODUCTION = """\
{total} trajectories of agents that raced on shopping problems, in the OpenAI tool-calls schema.
Each is the run of one agent on one problem, recorded outside its sandbox, scored by rules and
judged for its reasoning; `axis_a` are those in which the model itself made the calls, `axis_b`
those in which code made them. `train` and `eval` share no leak cluster of problems
(`partition.json`). Every row names the signed record it was made of.

`arena corpus verify DIR` proves from these files alone that they hold what is said here;
`manifest.json` has every count, hash and setting, `rejects.jsonl.zst` every record that is not
in, with its reason.
"""

_PICTURES = """\
## Kept against rejected

Shares of each population, in per cent; records that were refused before they were normalised
are in none of them.
"""


def _front_matter(rows: Mapping[str, Mapping[str, int]], total: int, title: str) -> str:
    """`datasets` refuses an empty split: only those with rows are declared."""
    size = next((name for limit, name in _SIZES if total < limit), "1M<n<10M")
    lines = ["---", f"pretty_name: {title}", "language:", "- en", "task_categories:"]
    lines += ["- text-generation", "tags:", "- agent", "- tool-use", "- trajectories"]
    lines += ["size_categories:", f"- {size}"]
    configs: list[str] = []
    for name in AXES.values():
        splits = [split for split, counts in rows.items() if counts[name]]
        if splits:
            configs += [f"- config_name: {name}", *(["  default: true"] if not configs else [])]
            configs.append("  data_files:")
            for split in splits:
                configs += [f"  - split: {split}", f"    path: {split}/{name}.parquet"]
    lines += ["configs:", *configs] if configs else []
    return "\n".join([*lines, "---", ""])


def _loading(rows: Mapping[str, Mapping[str, int]]) -> str:
    lines = ["## Loading\n", "```python", "from datasets import load_dataset\n"]
    for name in AXES.values():
        splits = [split for split, counts in rows.items() if counts[name]]
        if splits:
            lines.append(f'load_dataset("DIR", "{name}")  # {", ".join(splits)}')
    lines.append('load_dataset("json", data_files="DIR/train/axis_a.jsonl.zst")')
    lines += ["```\n", "| split | axis A | axis B |", "|---|---|---|"]
    for split, counts in rows.items():
        lines.append(f"| {split} | " + " | ".join(str(n) for n in counts.values()) + " |")
    return "\n".join([*lines, ""])


def _numbers(manifest: JsonObject, found: JsonObject) -> str:
    funnel = cast("JsonObject", manifest["funnel"])
    lines = ["## From records to rows\n", "| stage | in | refused | out |", "|---|---|---|---|"]
    for stage in cast("list[JsonObject]", funnel["stages"]):
        refused = cast("dict[str, int]", stage["refused"])
        why = ", ".join(f"{n} {_reason(reason)}" for reason, n in sorted(refused.items()))
        lines.append(f"| {stage['stage']} | {stage['in']} | {why or '0'} | {stage['out']} |")
    removed = cast("dict[str, int]", manifest["removed"])
    what = ", ".join(f"{n} {kind}" for kind, n in sorted(removed.items())) or "nothing"
    lines += ["", f"Taken out of the rows as secret or personal: {what}.", ""]
    lines += ["| | kept | rejected |", "|---|---|---|"]
    populations = [cast("JsonObject", found[name]) for name in ("kept", "rejected")]
    for key, label in _COUNTS:
        lines.append(f"| {label} | " + " | ".join(str(p[key]) for p in populations) + " |")
    for measure in MEASURES:
        cells = [_cell(_measure(found, name, measure.name)) for name in ("kept", "rejected")]
        lines.append(f"| {measure.title.lower()}: p10 / p50 / p90 | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def _reason(code: str) -> str:
    return Reason(code).value.partition(".")[2].replace("_", " ")


def _cell(summary: JsonObject) -> str:
    if summary["p50"] is None:
        return "–"
    return " / ".join(f"{summary[name]:g}" for name in ("p10", "p50", "p90"))


def _measure(found: JsonObject, population: str, name: str) -> JsonObject:
    measures = cast("JsonObject", cast("JsonObject", found[population])["measures"])
    return cast("JsonObject", measures[name])


def _buckets(found: JsonObject, population: str) -> dict[str, int]:
    return cast("dict[str, int]", cast("JsonObject", found[population])["buckets"])
