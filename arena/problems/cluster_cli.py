"""`arena problems cluster`: which problems give each other away, and why."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from arena.exceptions import SettingsError
from arena.problems.suite import load_suites
from arena.settings import ArenaSettings
from sandbox.terminal import JsonFile, console, plain, writable, write_json
from scoring.types import Json, JsonObject, Problem

if TYPE_CHECKING:  # loads datasketch, which other commands need not wait for
    from arena.problems.clusters import Clusters, Link

_SHOWN = 20
"""Clusters that are shown to people; `--json` has them all."""
_MEMBERS = 6
"""Members of one of them that are shown."""

Alike = Annotated[
    float | None,
    typer.Option(
        min=0.5,
        max=1.0,
        help="Likeness from which listings and queries are one, instead of the measured ones.",
    ),
]


def cluster_command(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Suites: JSON Lines or a JSON array. Without one: the bank."),
    ] = None,
    alike: Alike = None,
    json_file: JsonFile = None,
) -> None:
    """Put problems that give each other away into leak clusters, and say by which rule.

    Example: arena problems cluster product.jsonl shop.jsonl voucher.jsonl --json clusters.json
    """
    writable(json_file)
    problems = load_suites(files) if files else asyncio.run(_banked())
    if not problems:
        raise SettingsError(
            "the bank holds no problems yet", remedy="give suites, or: arena problems import"
        )
    report = _clustered(problems, alike)
    _show(report)
    write_json(_to_json(report), json_file)


@dataclass(frozen=True, slots=True)
class _Report:
    problems: int
    clusters: Clusters
    groups: Sequence[tuple[str, tuple[str, ...]]]
    """Clusters of more than one, the largest first."""
    queries: dict[str, str]

    @property
    def sizes(self) -> dict[int, int]:
        """How many clusters there are of each size."""
        counts = Counter(len(members) for members in self.clusters.groups().values())
        return dict(sorted(counts.items()))

    @property
    def rules(self) -> dict[str, int]:
        """How many links each rule gave."""
        from arena.problems.clusters import Rule

        counts = Counter(link.rule for link in self.clusters.links)
        return {rule.value: counts[rule] for rule in Rule}

    def links(self) -> dict[str, list[Link]]:
        """The links of each cluster, by its name."""
        found: dict[str, list[Link]] = {}
        for link in self.clusters.links:
            found.setdefault(self.clusters.find(link.problem) or "", []).append(link)
        return found


async def _banked() -> Sequence[Problem]:
    # Only this way needs a database.
    from arena.db.engine import open_database
    from arena.db.journal import PostgresJournal
    from arena.problems.bank import STREAM, Bank

    async with open_database(ArenaSettings()) as database:
        await database.ready()
        entries = await PostgresJournal(database.engine).read(STREAM)
    return [holding.problem for holding in Bank.folded(entry.event for entry in entries)]


def _clustered(problems: Sequence[Problem], alike: float | None) -> _Report:
    from arena.problems.clusters import Clusters, Thresholds

    clusters = Clusters(Thresholds(alike, alike) if alike else None)
    columns = (TextColumn("Clustering"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        for problem in progress.track(problems):
            clusters.add(problem)
    several = [(name, ids) for name, ids in clusters.groups().items() if len(ids) > 1]
    several.sort(key=lambda group: -len(group[1]))
    queries = {problem.problem_id: " ".join(problem.query.split()) for problem in problems}
    return _Report(len(problems), clusters, several, queries)


def _show(report: _Report) -> None:
    inside = sum(len(members) for _, members in report.groups)
    console.print(
        f"{report.problems} problems in {len(report.clusters)} clusters; {inside} of them "
        f"share {len(report.groups)} clusters, the largest has "
        f"{max(report.sizes)}",
        soft_wrap=True,
    )
    table = Table("joined by", box=None, pad_edge=False)
    table.add_column("links", justify="right")
    for rule, count in report.rules.items():
        table.add_row(rule, str(count))
    console.print(table)
    links = report.links()
    for name, members in report.groups[:_SHOWN]:
        why = Counter(link.rule.value for link in links[name])
        told = ", ".join(f"{rule} {count}" for rule, count in why.items())
        console.print(f"\n{name}: {len(members)} problems ({told})", soft_wrap=True)
        for problem_id in members[:_MEMBERS]:
            console.print(f"  {plain(problem_id, 60)}  {plain(report.queries[problem_id], 90)}")
        if len(members) > _MEMBERS:
            console.print(f"  and {len(members) - _MEMBERS} more")
    if len(report.groups) > _SHOWN:
        console.print(f"\nand {len(report.groups) - _SHOWN} clusters more: --json has them all")


def _to_json(report: _Report) -> JsonObject:
    links = report.links()
    shared: list[Json] = [
        {
            "cluster": name,
            "problems": list[Json](members),
            "links": [
                {
                    "rule": link.rule.value,
                    "problem": link.problem,
                    "other": link.other,
                    "alike": round(link.alike, 4),
                }
                for link in links[name]
            ],
        }
        for name, members in report.groups
    ]
    return {
        "problems": report.problems,
        "clusters": len(report.clusters),
        "sizes": {str(size): count for size, count in report.sizes.items()},
        "rules": dict(report.rules),
        "shared": shared,
        "cluster_of": {i: report.clusters.find(i) for i in report.queries},
    }
