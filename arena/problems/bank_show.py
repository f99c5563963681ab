"""What `arena problems` shows of the bank: counts, problems, and what a change did.

The texts of held-out problems are for nobody's eyes but the operator's, who asks for them.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from arena.problems.bank import Bank
from arena.problems.growth import DIFFICULTIES, Growth
from arena.problems.holdings import Holding
from arena.problems.intake import Taken
from arena.problems.pools import Pool
from arena.problems.rotation import Rotation
from sandbox.terminal import console, plain
from scoring.types import Bucket, Json, JsonObject

_SHOWN = 10
_WIDTH = 140
_QUERY_CHARS = 60


def holdings_in(bank: Bank, pool: Pool | None) -> list[Holding]:
    """The problems of a pool, or all, in the order they came."""
    return [holding for holding in bank if pool is None or holding.pool is pool]


def counts(bank: Bank) -> list[JsonObject]:
    """Problems and clusters by pool and bucket, with difficulties; pools without any left out."""
    rows: list[JsonObject] = []
    drawable = Counter(holding.bucket for holding in bank.drawable())
    for pool in Pool:
        for bucket in Bucket:
            held = [h for h in holdings_in(bank, pool) if h.bucket is bucket]
            if not held:
                continue
            difficulty = Counter(h.difficulty or "unknown" for h in held)
            row: JsonObject = {
                "pool": pool.value,
                "bucket": bucket.value,
                "problems": len(held),
                "clusters": len({h.cluster for h in held}),
                "difficulty": dict(sorted(difficulty.items())),
            }
            if pool is Pool.HELD_OUT:
                row["drawable"] = drawable[bucket]
            rows.append(row)
    return rows


def counts_table(rows: Iterable[JsonObject]) -> Table:
    """Those counts for people."""
    table = Table("pool", "bucket", box=None, pad_edge=False)
    names = (*DIFFICULTIES, "unknown")
    for name in ("problems", "clusters", *names, "drawable"):
        table.add_column(name, justify="right")
    for row in rows:
        difficulty = row["difficulty"]
        assert isinstance(difficulty, dict)
        table.add_row(
            str(row["pool"]),
            str(row["bucket"]),
            str(row["problems"]),
            str(row["clusters"]),
            *(str(difficulty.get(name, "")) for name in names),
            str(row.get("drawable", "")),
        )
    return table


def problem_row(holding: Holding, *, reveal: bool) -> JsonObject:
    """One problem for `--json`: no reward, and no text of a held-out one unless revealed."""
    row: JsonObject = {
        "problem_id": holding.problem_id,
        "pool": holding.pool.value,
        "bucket": holding.bucket.value,
        "difficulty": holding.difficulty,
        "cluster": holding.cluster,
        "version": holding.version,
        "provenance": _shown_provenance(holding, reveal=reveal),
        "raced": list[Json](holding.raced),
        "history": [
            {
                "pool": step.pool.value,
                "at": step.at.isoformat(),
                "version": step.version,
                "reason": step.reason,
            }
            for step in holding.history
        ],
    }
    if reveal or holding.pool is not Pool.HELD_OUT:
        row["query"] = str(holding.content["query"])
    return row


def _shown_provenance(holding: Holding, *, reveal: bool) -> JsonObject:
    """Without the seed: with the catalogue it gives every problem of the same growth, and those
    are held out still when the first of them is opened."""
    hidden = frozenset() if reveal else frozenset({"seed"})
    return {name: value for name, value in holding.provenance.items() if name not in hidden}


def problems_table(holdings: Iterable[Holding], *, reveal: bool) -> Table:
    """Problems for people, one a line."""
    table = Table(box=None, pad_edge=False)
    table.add_column("problem", no_wrap=True, min_width=36)
    for name in ("pool", "bucket", "difficulty", "cluster", "since", "query"):
        table.add_column(name, no_wrap=name != "query")
    for holding in holdings:
        shown = reveal or holding.pool is not Pool.HELD_OUT
        query = str(holding.content["query"])
        table.add_row(
            plain(holding.problem_id, 40),
            holding.pool.value,
            holding.bucket.value,
            plain(holding.difficulty or "", 12),
            plain(holding.cluster, 20),
            f"{holding.history[-1].at:%Y-%m-%d}",
            plain(" ".join(query.split()), _QUERY_CHARS) if shown else "(held out: --reveal)",
        )
    return table


def taken_json(taken: Taken) -> JsonObject:
    """What an import or a growth did, for `--json`."""
    return {
        "admitted": len(taken.admitted),
        "already": len(taken.already),
        "left_out": dict[str, Json](taken.left_out_by_reason()),
        "retired": [{"problem_id": x.problem_id, "reason": x.reason} for x in taken.left],
        "merged_clusters": taken.merged,
    }


def people() -> Console:
    """The console for people; wide enough for tables where there is no terminal."""
    if console.is_terminal:
        return console
    width = max(_WIDTH, shutil.get_terminal_size().columns)
    return Console(file=sys.stderr, highlight=False, width=width)


def tell_taken(taken: Taken, pool: Pool) -> None:
    """The same for people."""
    console.print(f"{_problems(len(taken.admitted))} came to {pool}", soft_wrap=True)
    if taken.already:
        console.print(f"{_problems(len(taken.already))} stood there already, the same")
    for reason, number in taken.left_out_by_reason().items():
        console.print(f"{_problems(number)} left out: {reason.replace('_', ' ')}")
    if taken.merged:
        console.print(f"{taken.merged} clusters turned out to be part of another")
    if taken.left:
        console.print(
            f"{_problems(len(taken.left))} of the bank retired, by the rule that held-out stays"
            " and open leaves, and before a suite everyone does:"
        )
        for left in taken.left[:_SHOWN]:
            console.print(f"  {plain(left.problem_id, 60)}: {plain(left.reason)}", soft_wrap=True)
        if len(taken.left) > _SHOWN:
            console.print(f"  and {len(taken.left) - _SHOWN} more")


def growth_json(growth: Growth) -> JsonObject:
    """What a growth asked for and got, by bucket and difficulty."""
    mix: JsonObject = {}
    for bucket in Bucket:
        row: JsonObject = {}
        for difficulty in DIFFICULTIES:
            wanted, got = growth.wanted[bucket, difficulty], growth.got[bucket, difficulty]
            if wanted or got:
                row[difficulty] = {"wanted": wanted, "got": got}
        if row:
            mix[bucket.value] = row
    return {"pool": growth.plan.pool.value, "drawn": growth.drawn, "difficulty": mix}


def rotation_table(rotation: Rotation) -> Table:
    """What a rotation moves, for people."""
    table = Table("bucket", box=None, pad_edge=False)
    names = {
        "opened_clusters": "opened",
        "opened_problems": "(problems)",
        "retired_clusters": "retired",
        "retired_problems": "(problems)",
        "drawable_clusters": "to draw after",
        "open_clusters": "open after",
    }
    for name in names.values():
        table.add_column(name, justify="right")
    for move in rotation.moves:
        row = move.to_json()
        table.add_row(move.bucket.value, *(str(row[name]) for name in names))
    return table


def _problems(number: int) -> str:
    return "1 problem" if number == 1 else f"{number} problems"
