"""How far a run is: what is not heard is told the next time."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import httpx

from arena.client.validator import HostLoad
from arena.races.schedule import Board
from arena.runs.record import RunSummary
from judge.verdict import Gate
from neurons.validating.host import host_load
from neurons.validating.metrics import Metrics
from neurons.validating.progress import Reporter, score_of
from tests.unit.arena import builders
from tests.unit.arena.api.world import problem
from tests.unit.neurons.validating.wire import Wire, client_of

HEARD = httpx.Response(200, json={"accepted": True})


def summary(number: int, *, gate: Gate = Gate.PASSED) -> RunSummary:
    made = builders.record(problem(number), run_id=f"run-{number}", race_id="r", gate=gate)
    return RunSummary.of(made.to_json())


async def test_what_is_not_heard_is_told_with_the_next_news() -> None:
    wire = Wire(progress=httpx.ConnectError("x"))
    reporter = Reporter(client_of(wire), uuid4(), Metrics(), 10.0)
    await reporter.report()
    assert wire.asked == []
    reporter.done(summary(1))
    await reporter.report()
    wire.answers["progress"] = HEARD
    reporter.done(summary(2))
    await reporter.report()
    await reporter.report()
    told = [json.loads(request.content)["problems"] for request in wire.asked]
    assert [len(one) for one in told] == [1, 2]
    assert {one["status"] for one in told[1]} == {"SUCCESS"}


def test_the_score_is_the_mean_over_all_problems_asked() -> None:
    runs = [summary(1), summary(2, gate=Gate.INFERENCE)]
    board = Board([runs[0].agent], [problem(n).problem_id for n in (1, 2, 3, 4)])
    for run in runs:
        board.add(run)
    score, components = score_of(board)
    assert score == sum(run.final_score or 0.0 for run in runs) / 4
    assert components["problems"] == 4


def test_a_machine_says_how_loaded_it_is_and_nothing_it_cannot_know(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  1000 kB\nMemAvailable: 250 kB\nodd line\n")
    load = host_load(tmp_path, meminfo=meminfo)
    assert load.ram_pct == 75.0
    assert load.disk_pct is not None
    assert 0 < load.disk_pct <= 100
    meminfo.write_text("MemTotal: no\n")
    gone = host_load(tmp_path / "gone", meminfo=meminfo)
    assert (gone.ram_pct, gone.disk_pct) == (None, None)
    assert isinstance(gone, HostLoad)
