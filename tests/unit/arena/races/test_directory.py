"""A race directory knows its inputs and lets one process in."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from arena.exceptions import OtherInputsError, RaceError
from arena.problems.suite import Suite
from arena.races.directory import MANIFEST, PROBLEMS, open_directory, reopen_directory
from arena.races.inputs import RaceInputs, draw, judge_differences
from arena.runs.record import EncodedRecord
from sandbox.gateway.interface import GatewayLimits
from sandbox.isolation.interface import SandboxLimits
from scoring.types import JsonObject
from tests.unit.arena import builders

INPUTS = builders.inputs(
    agents=(builders.agent("alpha"), builders.agent("beta")),
    problems=(builders.problem(1), builders.problem(2)),
)


def test_the_same_inputs_go_on_with_the_race(tmp_path: Path) -> None:
    first = open_directory(tmp_path / "race", INPUTS)
    first.close()
    again = open_directory(tmp_path / "race", INPUTS)
    again.close()
    assert (first.resumed, again.resumed) == (False, True)
    assert first.race_id == again.race_id
    assert first.entry() == again.entry()


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (
            {"agents": (builders.agent("alpha", b"changed"), builders.agent("beta"))},
            "agent alpha (its file changed)",
        ),
        ({"agents": (builders.agent("alpha"),)}, "agent beta (not given now)"),
        ({"agents": (*INPUTS.agents, builders.agent("gamma"))}, "agent gamma (new)"),
        ({"problems": (builders.problem(1),)}, "the problems (2, now 1)"),
        (
            {"problems": (builders.problem(1), builders.problem(2, "another"))},
            "the problems' content",
        ),
        ({"catalog_hash": "00" * 32}, "the catalogue's content"),
        ({"catalog_engine": "engine 2"}, "the search engine (engine 1, now engine 2)"),
        ({"scoring_version": "rules-2"}, "the scoring (rules-1, now rules-2)"),
        ({"model": "another"}, "the model (standin/shopper-1, now another)"),
        ({"model_server": "host:1"}, "the model server (stand-in, now host:1)"),
        ({"sandbox_limits": SandboxLimits(wall_s=1.0)}, "the sandbox's limits"),
        ({"judge": builders.JUDGE}, "the judge (nobody, now standin/judge-1)"),
        ({"gateway_limits": GatewayLimits(cost_usd=1.0)}, "the gateway's limits"),
    ],
)
def test_other_inputs_are_refused_by_name(
    tmp_path: Path, other: dict[str, object], named: str
) -> None:
    open_directory(tmp_path, INPUTS).close()
    changed: RaceInputs = replace(INPUTS, **other)  # type: ignore[arg-type]
    with pytest.raises(OtherInputsError) as caught:
        open_directory(tmp_path, changed)
    assert named in caught.value.message
    assert ";" not in caught.value.message
    open_directory(tmp_path, INPUTS).close()


def test_a_suite_file_under_another_name_is_the_same_suite(tmp_path: Path) -> None:
    open_directory(tmp_path, INPUTS).close()
    open_directory(tmp_path, replace(INPUTS, suites=("renamed.jsonl",))).close()


def test_a_second_process_is_kept_out_while_the_first_races(tmp_path: Path) -> None:
    first = open_directory(tmp_path, INPUTS)
    with pytest.raises(RaceError, match="another process races"):
        open_directory(tmp_path, INPUTS)
    first.close()
    open_directory(tmp_path, INPUTS).close()


def test_a_directory_with_other_things_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(RaceError, match=r"not empty \(it has thesis.txt\)"):
        open_directory(tmp_path, INPUTS)


def test_a_process_killed_before_the_manifest_was_whole_begins_anew(tmp_path: Path) -> None:
    (tmp_path / f"{MANIFEST}.new").write_bytes(b'{"inp')
    directory = open_directory(tmp_path, INPUTS)
    directory.close()
    assert not directory.resumed


def test_a_manifest_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(b"{")
    with pytest.raises(RaceError, match="cannot be read"):
        open_directory(tmp_path, INPUTS)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_permission_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(RaceError, match="Permission denied"):
        open_directory(tmp_path / "race", INPUTS)


def test_problems_are_drawn_from_each_suite_up_to_the_limit() -> None:
    one = Suite("one", tuple(builders.problem(n) for n in (1, 2, 3)))
    two = Suite("two", tuple(builders.problem(n) for n in (4, 5, 6)))
    assert [p.problem_id for p in draw([one, two], 2)] == ["p1", "p2", "p4", "p5"]
    assert len(draw([one, two], None)) == 6


def test_a_problem_in_two_suites_is_refused() -> None:
    suite = Suite("one", (builders.problem(1),))
    with pytest.raises(RaceError, match="p1 of two also stands in one"):
        draw([suite, replace(suite, name="two")], None)


def test_a_file_is_no_directory_to_race_in(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    with pytest.raises(RaceError, match="is a file"):
        open_directory(file, INPUTS)
    assert file.read_text() == "precious"


def test_two_judges_differ_by_what_decides_a_verdict() -> None:
    other: JsonObject = {**builders.JUDGE, "prompt": "2"}
    assert judge_differences(builders.JUDGE, other) == ["the judge's prompt (1, now 2)"]
    assert judge_differences(builders.JUDGE, dict(builders.JUDGE)) == []
    assert judge_differences(None, None) == []


def test_the_database_is_given_each_problem_as_records_name_it(tmp_path: Path) -> None:
    directory = open_directory(tmp_path / "race", INPUTS)
    directory.close()
    found = {
        problem: EncodedRecord(content).hash for problem, content in directory.entry().contents
    }
    assert found == {ref.problem_id: ref.content_hash for ref in INPUTS.problem_refs()}
    assert stat.S_IMODE((tmp_path / "race" / PROBLEMS).stat().st_mode) == 0o600
    (tmp_path / "race" / PROBLEMS).write_bytes(b"damage")
    with pytest.raises(RaceError, match="cannot be read"):
        directory.entry()
    (tmp_path / "race" / PROBLEMS).unlink()  # begun before problems were kept
    assert directory.entry().contents == ()


def test_a_race_is_opened_again_with_nothing_but_its_directory(tmp_path: Path) -> None:
    first = open_directory(tmp_path / "race", INPUTS)
    first.close()
    again = reopen_directory(tmp_path / "race")
    again.close()
    assert again.entry() == first.entry()
    assert again.queries == {p.problem_id: p.query for p in INPUTS.problems}
    with pytest.raises(RaceError, match="no race's directory"):
        reopen_directory(tmp_path)
