"""An export: which records are in, and that it is whole, the same again, and goes on."""

from __future__ import annotations

import dataclasses
import json
import random
from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest

from arena.problems.partition import read_partition
from arena.problems.pools import Side
from arena.runs.canonical import canonical
from arena.runs.record import EncodedRecord, Kind, RunRecord
from arena.season.release import Release
from corpus_export.checking import verify
from corpus_export.exceptions import (
    BrokenSourceError,
    CorpusError,
    EmptyDayError,
    OtherExportError,
    TwoSidesError,
)
from corpus_export.opening import Inputs, open_files
from corpus_export.pipeline import export
from corpus_export.ranking import RankingSettings
from corpus_export.settings import ExportOptions
from corpus_export.types import Reason
from judge.verdict import Gate
from scoring.types import JsonObject
from tests.unit.arena import builders
from tests.unit.corpus_export.builders import GOOD, Move, find, recommend
from tests.unit.corpus_export.days import (
    DAY,
    Day,
    Quiet,
    file_bytes,
    full_day,
    lines,
    problems,
    reasons,
    rows,
)


@pytest.fixture
def day(tmp_path: Path) -> Day:
    return Day(tmp_path / "day")


def silent(text: str) -> None:
    pass


def test_every_record_is_a_row_or_a_reject_with_its_reason(tmp_path: Path) -> None:
    made = full_day(tmp_path / "day").export(tmp_path / "out")
    found = list(rows(tmp_path / "out"))
    rejects = lines(tmp_path / "out" / "rejects.jsonl.zst")
    funnel = cast("dict[str, Any]", made.manifest["funnel"])
    assert funnel["read"] == 20 == len(found) + len(rejects)
    assert funnel["rows"] == len(found) == 18
    for stage in funnel["stages"]:
        assert stage["out"] == stage["in"] - sum(stage["refused"].values())
    assert sorted(reasons(tmp_path / "out").values()) == ["coefficient.low", "coefficient.unjudged"]
    assert list(verify(tmp_path / "out")) == []


def test_a_row_names_its_record_seal_agent_and_problem(day: Day, tmp_path: Path) -> None:
    record = day.run(0)
    day.add(record)
    day.export(tmp_path / "out")
    (row,) = rows(tmp_path / "out")
    encoded = record.encode()
    assert row["record_hash"] == encoded.hash
    assert row["record_id"] == record.run_id
    assert day._last is not None
    assert row["seal_hash"] == day._last.hash
    assert (row["validator"], row["sequence"]) == (day._last.seal.validator, 1)
    assert (row["agent"], row["agent_source_hash"]) == ("alpha.py", record.agent.source_hash)
    assert (row["problem_id"], row["query"]) == ("p1", day.problems[0].query)
    assert (row["coefficient"], row["quality"], row["gate"]) == (1.0, 0.9, "passed")
    assert row["final_score"] == 1.0
    assert row["released"] is False
    assert "Not public" in str(row["notice"])


def test_both_dialects_give_the_same_messages(day: Day, tmp_path: Path) -> None:
    day.add(day.run(0), day.run(3, tags=True))
    day.export(tmp_path / "out")
    native, tags = sorted(rows(tmp_path / "out"), key=lambda row: str(row["problem_id"]))
    assert (native["dialect"], tags["dialect"]) == ("native", "tags")
    skip = 2  # the query is another
    assert (
        cast("list[Any]", native["messages"])[skip:] == cast("list[Any]", tags["messages"])[skip:]
    )


def test_the_same_export_again_is_recognised_and_left(tmp_path: Path) -> None:
    day = full_day(tmp_path / "day")
    assert day.export(tmp_path / "out").made
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*")}
    again = day.export(tmp_path / "out")
    assert not again.made
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*")} == before
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_other_inputs_are_refused_and_named(tmp_path: Path) -> None:
    day = full_day(tmp_path / "day")
    day.export(tmp_path / "out")
    with pytest.raises(OtherExportError, match="min_coefficient"):
        day.export(tmp_path / "out", min_coefficient=0.4)
    day.add(day.run(2, label="late"))
    with pytest.raises(OtherExportError, match="source"):
        day.export(tmp_path / "out")
    assert list(verify(tmp_path / "out")) == []


def test_a_directory_with_something_else_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("all there is")
    with pytest.raises(CorpusError, match="not empty"):
        full_day(tmp_path / "day").export(out)
    assert (out / "thesis.txt").read_text() == "all there is"


@pytest.mark.parametrize("workers", [1, 2])
def test_neither_order_nor_processes_change_the_rows(tmp_path: Path, workers: int) -> None:
    one, other = full_day(tmp_path / "one"), full_day(tmp_path / "other")
    random.Random(7).shuffle(other.frames)
    one.export(tmp_path / "a")
    other.export(tmp_path / "b", workers=workers)
    a, b = file_bytes(tmp_path / "a"), file_bytes(tmp_path / "b")
    a.pop("manifest.json"), b.pop("manifest.json")  # they name their sources
    assert a.keys() == b.keys()
    assert [name for name in a if a[name] != b[name]] == []


@pytest.mark.parametrize("pages", [1, 2, 3])
def test_an_interrupted_export_goes_on_to_the_same_bytes(
    tmp_path: Path, pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corpus_export.sources.PAGE_RECORDS", 5)
    day = full_day(tmp_path / "day")
    day.export(tmp_path / "whole")
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        export(day.job(out), Quiet(stop_after=5 * pages), silent)
    assert not out.exists()
    told: list[str] = []
    watch = _Counting()
    assert export(day.job(out), watch, told.append).made
    assert told == ["going on with the export that was interrupted"]
    assert watch.examined == [5 * pages, *[5] * (4 - pages)]
    assert file_bytes(out) == file_bytes(tmp_path / "whole")


def test_an_export_interrupted_while_writing_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    day = full_day(tmp_path / "day")
    day.export(tmp_path / "whole")
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        export(day.job(out), _Interrupted("Writing", 9), silent)
    assert not out.exists()
    assert (tmp_path / ".out.partial" / "train").is_dir()
    day.export(out)
    assert file_bytes(out) == file_bytes(tmp_path / "whole")
    assert not (tmp_path / ".out.partial").exists()


def test_an_interrupted_export_of_other_records_begins_again(tmp_path: Path) -> None:
    day = full_day(tmp_path / "day")
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        export(day.job(out), Quiet(stop_after=1), silent)
    day.add(day.run(2, label="late"))
    told: list[str] = []
    made = export(day.job(out), Quiet(), told.append)
    assert "begins again" in told[0]
    assert cast("dict[str, Any]", made.manifest["funnel"])["read"] == 21


def test_two_exports_into_one_directory_take_turns(tmp_path: Path) -> None:
    day = full_day(tmp_path / "day")
    job = day.job(tmp_path / "out")

    class Second(Quiet):
        def stage(self, name: str, total: int | None = None) -> None:
            with pytest.raises(CorpusError, match="another process"):
                export(job, Quiet(), silent)

    export(job, Second(), silent)


def test_an_empty_day_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    day = full_day(tmp_path / "day")
    with pytest.raises(EmptyDayError, match="2026-01-05"):
        day.export(tmp_path / "out", day=date(2026, 1, 5))
    assert not (tmp_path / "out").exists()


def test_runs_of_other_days_are_counted_and_not_exported(day: Day, tmp_path: Path) -> None:
    day.add(day.run(0), day.run(1, day=date(2026, 1, 2)))
    made = day.export(tmp_path / "out")
    records = cast("dict[str, Any]", made.manifest["records"])
    assert (records["read"], records["other_days"]) == (1, 1)


def _two_recommendations() -> tuple[Move, ...]:
    again = Move("Number 2 is a good one, too.", (recommend(2),))
    return (*GOOD[:3], again, GOOD[3])


@pytest.mark.parametrize(
    ("moves", "changes", "reason"),
    [
        (_two_recommendations(), {}, Reason.RECOMMENDATIONS),
        ((*GOOD[:2], GOOD[3]), {}, Reason.RECOMMENDATIONS),
        (
            (*GOOD[:2], Move("This one.", (recommend("nowhere"),)), GOOD[3]),
            {},
            Reason.BAD_RECOMMENDATION,
        ),
        (GOOD, {"gate": None}, Reason.UNJUDGED),
        (GOOD, {"gate": Gate.REFERENCE}, Reason.LOW_COEFFICIENT),
        (GOOD, {"catalog_hash": "ff" * 32}, Reason.OTHER_CATALOGUE),
        (GOOD, {"failure": builders.HOST_FAULT}, Reason.OPEN),
        (GOOD[:2], {"failure": builders.AGENT_FAULT}, Reason.CUT_OFF),
        ((), {}, Reason.NO_MODEL_TURN),
        (
            (*GOOD, Move("What else is there?", (find("more"),))),
            {},
            Reason.STOPPED_THINKING,
        ),
        ((Move("x " * 40_000, GOOD[0].calls), *GOOD[1:]), {}, Reason.TOO_LONG),
    ],
)
def test_a_record_that_is_not_in_says_why(
    day: Day,
    tmp_path: Path,
    moves: tuple[Move, ...],
    changes: dict[str, Any],
    reason: Reason,
) -> None:
    record = day.run(0, moves, **changes)
    day.add(record)
    day.export(tmp_path / "out")
    assert reasons(tmp_path / "out") == {record.run_id: reason.value}
    assert list(verify(tmp_path / "out")) == []


def test_bytes_that_are_no_record_are_counted(day: Day, tmp_path: Path) -> None:
    day.add(day.run(0))
    good = day.run(1).encode().value
    other = {**good, "schema": 99}
    torn = {k: v for k, v in good.items() if k != "trace"}
    strange: JsonObject = {"agent": 3, "schema": 1}
    for value in (other, torn, strange):
        day.put(_encoded(value))
    day.put(EncodedRecord(b'{"agent":{"label":"a"'[:-1] + b'x"}'))
    made = day.export(tmp_path / "out")
    funnel = cast("dict[str, Any]", made.manifest["funnel"])
    assert funnel["stages"][0]["refused"] == {
        "record.unreadable": 3,
        "record.unknown_schema": 1,
    }
    assert funnel["rows"] == 1
    assert list(verify(tmp_path / "out")) == []


def test_a_field_of_another_type_is_counted(day: Day, tmp_path: Path) -> None:
    day.add(day.run(0))
    good = day.run(1).encode().value
    agent = cast("JsonObject", good["agent"])
    day.put(_encoded({**good, "run_id": [1]}))
    day.put(_encoded({**good, "run_id": "other", "agent": {**agent, "version": {"a": 1}}}))
    made = day.export(tmp_path / "out")
    funnel = cast("dict[str, Any]", made.manifest["funnel"])
    assert funnel["stages"][0]["refused"] == {"record.unreadable": 2}
    assert funnel["rows"] == 1
    assert list(verify(tmp_path / "out")) == []


def test_a_record_without_its_problem_is_counted(day: Day, tmp_path: Path) -> None:
    day.add(day.run(0), day.run(1))
    day.problems = [day.problems[0], *day.problems[2:]]
    day.export(tmp_path / "out")
    assert list(reasons(tmp_path / "out").values()) == ["record.problem_not_at_hand"]


def test_a_seal_of_another_record_or_key_is_counted(day: Day, tmp_path: Path) -> None:
    day.add(day.run(0))
    day.put(day.run(1).encode(), spoil=True)
    day.export(tmp_path / "out")
    assert list(reasons(tmp_path / "out").values()) == ["record.bad_seal"]


def test_a_record_that_comes_twice_counts_once(day: Day, tmp_path: Path) -> None:
    record = day.run(0)
    day.add(record, record, dataclasses.replace(record, log_tail="another"))
    made = day.export(tmp_path / "out")
    funnel = cast("dict[str, Any]", made.manifest["funnel"])
    assert (funnel["read"], funnel["rows"]) == (3, 1)
    assert funnel["stages"][0]["refused"] == {"record.duplicate": 2}
    assert list(verify(tmp_path / "out")) == []


def test_a_half_written_end_of_a_file_is_not_there_yet(day: Day, tmp_path: Path) -> None:
    day.add(day.run(0), day.run(1))
    day.frames[-1] = day.frames[-1][:-20]
    made = day.export(tmp_path / "out")
    assert cast("dict[str, Any]", made.manifest["records"])["read"] == 1


def test_damage_in_a_file_is_an_error_and_no_short_corpus(day: Day, tmp_path: Path) -> None:
    day.add(day.run(0), day.run(1), day.run(2))
    day.frames[1] = b"\0" * len(day.frames[1])
    with pytest.raises(CorpusError, match="damaged at byte"):
        day.export(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_later_verdict_counts_and_is_named(day: Day, tmp_path: Path) -> None:
    run = day.run(0, gate=None)
    later = builders.verdict_record(run, Gate.PASSED)
    day.add(run)
    day.put(later.encode(), kind=Kind.VERDICT)
    made = day.export(tmp_path / "out")
    (row,) = rows(tmp_path / "out")
    assert (row["coefficient"], row["verdict_hash"]) == (1.0, later.encode().hash)
    assert "judge:standin/judge-1" in cast("list[str]", row["standins"])
    assert cast("dict[str, Any]", made.manifest["records"])["later_verdicts"] == 1
    assert list(verify(tmp_path / "out")) == []


def test_suites_are_never_touched(tmp_path: Path) -> None:
    day = Day(tmp_path / "day", problems=problems("suite:v1"))
    day.add(day.run(0), day.run(1))
    made = day.export(tmp_path / "out")
    assert set(reasons(tmp_path / "out").values()) == {"partition.never_touch"}
    assert cast("dict[str, Any]", made.manifest["funnel"])["rows"] == 0


def test_a_public_export_holds_only_what_is_released(day: Day, tmp_path: Path) -> None:
    embargoed = day.run(2, label="beta")
    embargoed = dataclasses.replace(
        embargoed, agent=dataclasses.replace(embargoed.agent, source_hash="ee" * 32)
    )
    day.add(day.run(0), day.run(1), day.run(2), embargoed)
    job = day.job(tmp_path / "out", public=True)
    source = day.run(0).agent.source_hash
    release = Release(frozenset({"p1", "p3"}), frozenset({source}))
    setup = dataclasses.replace(job.setup, release=release)
    made = export(dataclasses.replace(job, setup=setup), Quiet(), silent)
    assert sorted(str(row["problem_id"]) for row in rows(tmp_path / "out")) == ["p1", "p3"]
    assert all(row["released"] and row["notice"] == "" for row in rows(tmp_path / "out"))
    assert set(reasons(tmp_path / "out").values()) == {"release.not_released"}
    assert made.manifest["public"] is True
    assert "Not public" not in (tmp_path / "out" / "README.md").read_text()
    assert list(verify(tmp_path / "out")) == []


def test_a_public_export_tells_nothing_of_what_is_not_released(day: Day, tmp_path: Path) -> None:
    """Until its release a record is public as a hash in a chain."""
    hidden = day.run(2, label="hidden")
    broken = day.run(3, label="hidden", catalog_hash="ff" * 32)
    day.add(day.run(0), hidden, broken)
    job = day.job(tmp_path / "out", public=True)
    release = Release(frozenset({"p1"}), frozenset({day.run(0).agent.source_hash}))
    setup = dataclasses.replace(job.setup, release=release)
    made = export(dataclasses.replace(job, setup=setup), Quiet(), silent)
    refused = lines(tmp_path / "out" / "rejects.jsonl.zst")
    assert {str(line["record_hash"]) for line in refused} == {
        hidden.encode().hash,
        broken.encode().hash,
    }
    public = {"record_hash", "stage", "reason", "validator", "sequence"}
    assert all({k for k, v in line.items() if v not in (None, "")} == public for line in refused)
    assert "hidden" not in json.dumps(made.manifest)
    assert list(verify(tmp_path / "out")) == []


def _other(record: RunRecord, **changes: Any) -> EncodedRecord:
    """A record that its validator wrote otherwise."""
    value = json.loads(record.encode().content)
    for name, change in changes.items():
        value[name] = value[name] | change
    return EncodedRecord(canonical(value | {"run_id": "odd"}))


@pytest.mark.parametrize(
    "changes",
    [
        {"timing": {"finished_at": "0001-01-01T00:00:00+14:00"}},
        {"axis": {"axis": "C"}},
        {"problem": {"bucket": "other"}},
    ],
)
def test_a_field_that_no_row_can_have_is_a_counted_reject(
    changes: dict[str, Any], day: Day, tmp_path: Path
) -> None:
    day.add(day.run(0))
    day.put(_other(day.run(1), **changes))
    made = day.export(tmp_path / "out")
    assert reasons(tmp_path / "out") == {"odd": "record.unreadable"}
    assert cast("dict[str, Any]", made.manifest["funnel"])["rows"] == 1


def test_names_of_agents_are_freed_of_secrets_in_rows_rejects_and_manifest(
    day: Day, tmp_path: Path
) -> None:
    secrets = ("jane@example.com", "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789")
    for number, secret in enumerate(secrets):
        day.add(day.run(number, label=f"bot {secret}"))
        day.add(day.run(number, label=f"bot {secret}", gate=None))
    made = day.export(tmp_path / "out")
    told = [*rows(tmp_path / "out"), *lines(tmp_path / "out" / "rejects.jsonl.zst"), made.manifest]
    names = [str(one["agent"]) for one in told[:-1]]
    assert len(names) == 4
    assert all("[removed " in name for name in names)
    assert not [secret for secret in secrets if secret in json.dumps(made.manifest)]
    assert list(verify(tmp_path / "out")) == []


def test_two_problems_of_one_name_are_refused(day: Day, tmp_path: Path) -> None:
    other = Day(tmp_path / "other")
    first, second, *rest = other.problems
    other.problems = [dataclasses.replace(second, problem_id=first.problem_id), *rest]
    day.add(day.run(0))
    other.add(other.run(0, label="beta"))
    inputs = Inputs(catalogs=(day.catalog,), races=(day.write(), other.write()))
    with pytest.raises(BrokenSourceError, match="two different problems are called 'p1'"):
        open_files(inputs, ExportOptions(out=tmp_path / "out", day=DAY, workers=1))


def test_files_release_nothing(day: Day, tmp_path: Path) -> None:
    day.add(day.run(0))
    made = day.export(tmp_path / "out", public=True)
    assert cast("dict[str, Any]", made.manifest["funnel"])["rows"] == 0
    assert "Not public" in _card_of(day, tmp_path)


def _card_of(day: Day, tmp_path: Path) -> str:
    day.export(tmp_path / "own")
    return (tmp_path / "own" / "README.md").read_text()


def test_one_is_kept_when_one_is_asked_for(tmp_path: Path) -> None:
    day = full_day(tmp_path / "day")
    made = day.export(tmp_path / "out", ranking=RankingSettings(keep=1))
    kept = [row["problem_id"] for row in rows(tmp_path / "out")]
    assert len(kept) == len(set(kept)) == 9
    stages = cast("dict[str, Any]", made.manifest["funnel"])["stages"]
    assert stages[-1]["refused"] == {"rank.ranked_out": 9}
    assert list(verify(tmp_path / "out")) == []


def test_code_made_runs_go_to_axis_b(day: Day, tmp_path: Path) -> None:
    day.add(day.run(0), day.run(0, label="coded", axis="B"))
    day.export(tmp_path / "out")
    assert {row["axis"] for row in rows(tmp_path / "out")} == {"A", "B"}
    assert list(verify(tmp_path / "out")) == []


def test_a_secret_is_taken_out_and_counted(day: Day, tmp_path: Path) -> None:
    key = "sk-" + "abcdefghij0123456789ABCDEF"
    leaky = (Move(f"My key is {key}, and I search.", (find(f"bag {key}"),)), *GOOD[1:])
    day.add(day.run(0, leaky))
    made = day.export(tmp_path / "out")
    assert made.manifest["removed"] == {"key": 1}
    (row,) = rows(tmp_path / "out")
    assert key not in str(row)
    assert str(row["messages"]).count("[removed key]") >= 2
    assert list(verify(tmp_path / "out")) == []


def test_a_secret_stands_in_no_reject_either(day: Day, tmp_path: Path) -> None:
    key = "sk-" + "abcdefghij0123456789ABCDEF"
    day.add(day.run(0, (*GOOD[:2], Move("This.", (recommend(key),)), GOOD[3])))
    day.export(tmp_path / "out")
    (reject,) = lines(tmp_path / "out" / "rejects.jsonl.zst")
    assert reject["reason"] == "format.recommendation_does_not_resolve"
    assert key not in str(reject)


def test_a_cluster_on_two_sides_is_refused_and_nothing_is_written(day: Day, tmp_path: Path) -> None:
    day.add(*(day.run(number) for number in range(9)))
    job = day.job(tmp_path / "out")
    places = {n: dataclasses.replace(p, cluster="one") for n, p in job.setup.places.items()}
    assert {place.side for place in places.values()} == {Side.TRAINING, Side.EVALUATION}
    broken = dataclasses.replace(job, setup=dataclasses.replace(job.setup, places=places))
    with pytest.raises(TwoSidesError, match="one"):
        export(broken, Quiet(), silent)
    assert not (tmp_path / "out").exists()


def test_later_exports_never_change_the_frozen_evaluation(tmp_path: Path) -> None:
    """Over three days; on the second a new problem joins a training cluster with one of
    evaluation, and on the third another new one does so again."""
    kept = tmp_path / "partition.json"
    first = Day(tmp_path / "day1")
    first.add(*(first.run(number) for number in range(9)))
    first.export(tmp_path / "out1", partition=kept)
    frozen = read_partition(kept)
    evaluation = frozen.problems(Side.EVALUATION)
    training = frozen.problems(Side.TRAINING)
    assert evaluation
    assert training
    for number in (2, 3):
        known = list(first.problems)
        day = Day(tmp_path / f"day{number}", problems=known)
        bridge = _bridge(known, evaluation[number - 2], training[number - 2], f"bridge{number}")
        day.problems = [*known, bridge]
        first.problems = day.problems
        day.add(*(day.run(n) for n in range(len(day.problems))))
        day.export(tmp_path / f"out{number}", partition=kept)
        now = read_partition(kept)
        assert now.problems(Side.EVALUATION) == evaluation
        assert now.evaluation_hash == frozen.evaluation_hash
        assert now.side_of(training[number - 2]) is Side.NEVER
        seen = {
            str(r["problem_id"]) for r in rows(tmp_path / f"out{number}") if r["split"] == "train"
        }
        assert training[number - 2] not in seen
        assert list(verify(tmp_path / f"out{number}")) == []
    for number in (1, 2, 3):
        held_out = {
            str(r["problem_id"]) for r in rows(tmp_path / f"out{number}") if r["split"] == "eval"
        }
        assert held_out == set(evaluation)


def test_a_variant_of_an_evaluation_problem_is_known_on_a_day_without_it(tmp_path: Path) -> None:
    kept = tmp_path / "partition.json"
    first = Day(tmp_path / "day1")
    first.add(*(first.run(number) for number in range(9)))
    first.export(tmp_path / "out1", partition=kept)
    evaluation = set(read_partition(kept).problems(Side.EVALUATION))
    variants = [
        dataclasses.replace(p, problem_id=f"{p.problem_id}-again", query=f"{p.query} now")
        for p in first.problems
        if p.problem_id in evaluation
    ]
    assert variants
    second = Day(tmp_path / "day2", problems=variants)
    second.add(*(second.run(number) for number in range(len(variants))))
    second.export(tmp_path / "out2", partition=kept)
    assert list(rows(tmp_path / "out2")) == []
    now = read_partition(kept)
    assert {now.side_of(p.problem_id) for p in variants} == {Side.NEVER}
    assert set(now.problems(Side.EVALUATION)) == evaluation


def test_a_partition_without_its_problems_is_refused(tmp_path: Path) -> None:
    kept = tmp_path / "partition.json"
    day = Day(tmp_path / "day1")
    day.add(*(day.run(number) for number in range(9)))
    day.export(tmp_path / "out1", partition=kept)
    (tmp_path / "partition.json.problems.jsonl.gz").unlink()
    other = Day(tmp_path / "day2", problems=[_bridge(day.problems, "p1", "p2", "new")])
    other.add(other.run(0))
    with pytest.raises(CorpusError, match="not at hand"):
        other.export(tmp_path / "out2", partition=kept)
    changed = [dataclasses.replace(day.problems[0], query="something else altogether")]
    day.export(tmp_path / "out3", partition=kept)
    swapped = Day(tmp_path / "day3", problems=[*changed, *day.problems[1:]])
    swapped.add(swapped.run(0))
    with pytest.raises(CorpusError, match="is another one than"):
        swapped.export(tmp_path / "out4", partition=kept)


def _bridge(known: list[Any], one: str, other: str, name: str) -> Any:
    """A problem that wants the products of two others: it joins their clusters."""
    rewards = tuple(r for p in known if p.problem_id in (one, other) for r in p.rewards)
    shop = next(p for p in known if p.bucket.value == "shop")
    return dataclasses.replace(shop, problem_id=name, query=f"{name} of both", rewards=rewards)


def _encoded(value: JsonObject) -> EncodedRecord:
    return EncodedRecord(canonical(value))


class _Counting(Quiet):
    """Keeps what every step of the first stage advanced by."""

    def __init__(self) -> None:
        super().__init__()
        self.examined: list[int] = []

    def advance(self, count: int) -> None:
        if self.seen[-1] == "Examining records":
            self.examined.append(count)


class _Interrupted(Quiet):
    """Interrupts in one stage."""

    def __init__(self, stage: str, after: int) -> None:
        super().__init__()
        self._stage, self._after = stage, after

    def advance(self, count: int) -> None:
        super().advance(count)
        if self.seen[-1] == self._stage and self.advanced >= self._after:
            raise KeyboardInterrupt
