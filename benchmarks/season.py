"""A simulated year: how long it takes, and what agentic richness would do.

    python -m benchmarks.season [--days 365] [--miners 300] [--shares 0,0.1,0.25,0.5]
                                [--seeds 3] [--richness-days 120] [--json FILE]

First the season of `arena race simulate` once, timed by the clock and by this process's
own CPU time. Then shorter seasons for each share of agentic richness, over several seeds:
what part of the titles that honest miners won, and of what they were paid, went to axis A.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from pathlib import Path

from arena.simulation.course import Plan, Simulation
from arena.simulation.tally import Outcome, share_of_a
from scoring.types import Json, JsonObject

TARGET_S = 60.0


def timed(plan: Plan) -> tuple[Outcome, float, float]:
    """A season, with seconds by the clock and of CPU time."""
    clock, cpu = time.monotonic(), time.process_time()
    outcome = Simulation(plan).run()
    return outcome, time.monotonic() - clock, time.process_time() - cpu


def axis_a(outcome: Outcome) -> tuple[float, float]:
    """Shares of axis A among honest miners: of the titles they won, of what they were paid."""
    tally = outcome.tally
    return share_of_a(tally.titles_by_axis) or 0.0, share_of_a(tally.paid_by_axis) or 0.0


def richness(shares: list[float], days: int, miners: int, seeds: int) -> list[Json]:
    """One row for each share, means over the seeds."""
    rows: list[Json] = []
    for share in shares:
        found = [
            axis_a(Simulation(Plan(days=days, miners=miners, seed=s, richness_share=share)).run())
            for s in range(1, seeds + 1)
        ]
        titles, paid = ([row[i] for row in found] for i in range(2))
        row: JsonObject = {
            "share": share,
            "titles_axis_a": statistics.fmean(titles),
            "titles_by_seed": list[Json](titles),
            "paid_axis_a": statistics.fmean(paid),
            "paid_by_seed": list[Json](paid),
        }
        rows.append(row)
        told = ", ".join(f"{x:.0%}" for x in paid)
        print(
            f"richness {share:.2f}: axis A wins {statistics.fmean(titles):.0%} of the titles"
            f" and {statistics.fmean(paid):.0%} of what is paid (by seed: {told})",
            flush=True,
        )
    return rows


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--days", type=int, default=365, help="0: richness alone")
    parser.add_argument("--miners", type=int, default=300)
    parser.add_argument("--shares", default="0,0.1,0.25,0.5")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--richness-days", type=int, default=120)
    parser.add_argument("--json", type=Path, help="write the result here")
    options = parser.parse_args()
    shares = [float(text) for text in options.shares.split(",")]

    if options.days == 0:
        richness(shares, options.richness_days, options.miners, options.seeds)
        return
    outcome, clock_s, cpu_s = timed(Plan(days=options.days, miners=options.miners))
    print(
        f"{options.days} days, {options.miners} miners: {clock_s:.1f} s by the clock,"
        f" {cpu_s:.1f} s of CPU time (target {TARGET_S:.0f} s); sound: {outcome.sound}",
        flush=True,
    )
    report: JsonObject = {
        "clock_s": round(clock_s, 1),
        "cpu_s": round(cpu_s, 1),
        "target_s": TARGET_S,
        "season": outcome.to_json(),
        "richness": richness(shares, options.richness_days, options.miners, options.seeds),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
