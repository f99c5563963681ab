"""`arena problems cluster`, as a person calls it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from typer.testing import CliRunner

from arena.problems.cli import app
from arena.problems.suite import write_suite
from scoring.exceptions import ArenaError
from tests.shared import SHARED, needs_shared
from tests.unit.arena.problems.leaks import asked, wanted, with_voucher

HOSE = asked("hose", "a garden hose, 15 m", wanted("1", "Garden hose XT500 expandable"))
MUG = asked("mug", "a camping [b]mug[/b]\x1b[2J", wanted("2", "Enamel camping mug with lid"))
RELISTED = asked("other", "hose for a garden", wanted("9", "XT500 expandable garden hose"))


def test_it_tells_clusters_sizes_rules_and_members(tmp_path: Path) -> None:
    first, second, out = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz", tmp_path / "out.json"
    write_suite([HOSE, MUG], first)
    write_suite([with_voucher(HOSE), RELISTED], second)
    result = CliRunner().invoke(app, ["cluster", str(first), str(second), "--json", str(out)])
    assert result.exit_code == 0, result.output
    assert "4 problems in 2 clusters" in result.output
    assert "\x1b[2J" not in result.output
    told = json.loads(out.read_text(encoding="utf-8"))
    assert (told["problems"], told["clusters"]) == (4, 2)
    assert told["sizes"] == {"1": 1, "3": 1}
    assert told["rules"] == {"product": 1, "reward": 0, "listing": 1, "wording": 0}
    (shared,) = told["shared"]
    assert shared["problems"] == ["hose", "hose-v", "other"]
    assert [link["rule"] for link in shared["links"]] == ["product", "listing"]
    assert told["cluster_of"]["hose"] == told["cluster_of"]["other"] == shared["cluster"]
    assert told["cluster_of"]["mug"] != shared["cluster"]


def test_a_stricter_likeness_joins_less(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    longer = replace(RELISTED.rewards[0], title=("XT500 expandable garden hose blue nozzle",))
    write_suite([HOSE, replace(RELISTED, rewards=(longer,))], path)
    loose = CliRunner().invoke(app, ["cluster", str(path), "--alike", "0.6"])
    strict = CliRunner().invoke(app, ["cluster", str(path), "--alike", "0.99"])
    assert "2 problems in 1 clusters" in loose.output
    assert "2 problems in 2 clusters" in strict.output


def test_a_problem_in_two_files_and_a_place_that_cannot_be_written_are_refused(
    tmp_path: Path,
) -> None:
    one, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    write_suite([HOSE], one)
    write_suite([HOSE], other)
    twice = CliRunner().invoke(app, ["cluster", str(one), str(other)])
    assert isinstance(twice.exception, ArenaError)
    nowhere = CliRunner().invoke(app, ["cluster", str(one), "--json", str(tmp_path / "no" / "x")])
    assert isinstance(nowhere.exception, ArenaError)


@needs_shared
def test_the_public_problems_share_no_cluster() -> None:
    files = [str(SHARED / "shoppingbench" / f"{n}.jsonl") for n in ("product", "shop", "voucher")]
    result = CliRunner().invoke(app, ["cluster", *files])
    assert result.exit_code == 0
    assert "369 problems in 369 clusters" in result.output
