"""Everything that can be done to records behind a reader's back is found, and named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arena.db.embedded import EmbeddedPostgres
from arena.records.heads import SignedHead
from arena.records.layout import ANCHORS, HEADS, PROBLEMS, RECORDS, SEALS
from arena.records.verification import verifier
from arena.records.verification.findings import Check
from arena.records.verification.verifier import Trust
from arena.runs.canonical import canonical
from arena.runs.frames import read_spool
from arena.runs.ledger import Head, seal_after
from arena.runs.record import EncodedRecord
from arena.runs.seal import BlockRef, Sealed, timestamp
from arena.runs.signing import KeypairSigner
from tests.integration.transparency import (
    ALICE,
    BOB,
    DAYS,
    OPERATOR,
    Forger,
    History,
    checked,
    codes,
    made_once,
    morning,
    resealed_manifest,
    sealed_by,
    signed,
    write_spool,
)

pytestmark = pytest.mark.database
EVE = KeypairSigner("//Eve")
MANY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def history(
    postgres_server: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[History]:
    directory = tmp_path_factory.mktemp("history")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARENA_DATA_DIR", str(directory / "var"))
        yield made_once(postgres_server, directory)


@pytest.fixture
def forger(history: History, tmp_path: Path) -> Forger:
    """The first day's export, in the hands of someone who rewrites manifests."""
    return Forger(history.exports[0], tmp_path / "forged")


# The control ----------------------------------------------------------------------------


def test_untouched_exports_are_clean_each_alone_and_all_together(history: History) -> None:
    for export in history.exports:
        report = checked(export, world=history.world)
        assert report.failed == 0, report.findings
    report = checked(*history.exports, world=history.world)
    assert report.failed == 0, report.findings
    assert codes(report) == {"seal.late"}
    for check in (Check.OUTCOME, Check.AXIS, Check.SCORE, Check.CITATIONS, Check.CEILING):
        assert report.tallies[check].passed >= 13, check
    assert report.tallies[Check.VERDICTS].passed == 1


def test_an_untouched_export_put_together_again_is_clean(forger: Forger, history: History) -> None:
    forger.relogged()
    assert checked(forger.written(), world=history.world).failed == 0


def test_an_untouched_race_is_clean(history: History) -> None:
    report = checked(history.race, world=history.world, race=True)
    assert report.failed == 0, report.findings
    assert report.tallies[Check.OUTCOME].passed == 9
    assert report.tallies[Check.VERDICTS].passed == 1


def test_a_late_seal_is_told_with_how_late_and_fails_nothing(history: History) -> None:
    report = checked(*history.exports[:2])
    (finding,) = report.findings
    assert finding.code.value == "seal.late"
    assert "head of 2026-01-01" in finding.detail
    assert "14 h 30 min" in finding.detail
    assert report.failed == 0


def test_several_processes_find_what_one_does(
    history: History, forger: Forger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifier, "ALONE_BATCHES", 0)
    forger.resealed(4, _alter("final_score", to=0.5), ALICE)
    forger.relogged()
    forged = forger.written()
    alone = checked(forged, world=history.world)
    helped = checked(forged, world=history.world, jobs=2)
    assert helped.to_json() == alone.to_json()
    assert codes(helped) == {"score.final"}


# Any byte -------------------------------------------------------------------------------


@MANY
@given(data=st.data())
def test_a_flipped_byte_of_a_record_is_found(
    data: st.DataObject, history: History, tmp_path: Path
) -> None:
    forger = Forger(history.exports[0], tmp_path / "forged")
    index = data.draw(st.integers(0, len(forger.records) - 1))
    content, line = forger.records[index]
    forger.records[index] = (_flipped(data, content, keep=b"\n"), line)
    # Without its last brace the line is none, and the frame damaged.
    assert codes(checked(forger.written())) & {"record.hash", "file.damaged"}


@MANY
@given(data=st.data())
def test_a_flipped_byte_of_a_seal_or_its_signature_is_found(
    data: st.DataObject, history: History, tmp_path: Path
) -> None:
    forger = Forger(history.exports[0], tmp_path / "forged")
    index = data.draw(st.integers(0, len(forger.seals) - 1))
    forger.seals[index] = _flipped(data, forger.seals[index], keep=b"\n")
    found = codes(checked(forger.written()))
    assert "log.root" in found
    # And it is named by more than the root: it is no seal, or not by its validator.
    assert found & {"seal.broken", "seal.signature"}


@MANY
@given(data=st.data())
def test_a_flipped_byte_of_a_seal_beside_its_record_is_found(
    data: st.DataObject, history: History, tmp_path: Path
) -> None:
    forger = Forger(history.exports[0], tmp_path / "forged")
    index = data.draw(st.integers(0, len(forger.records) - 1))
    content, line = forger.records[index]
    forger.records[index] = (content, _flipped(data, line or b"", keep=b"\n"))
    # Without its last brace the line is none, and the frame damaged.
    assert codes(checked(forger.written())) & {"seal.broken", "seal.signature", "file.damaged"}


@MANY
@given(data=st.data())
def test_a_flipped_byte_of_a_head_is_found(
    data: st.DataObject, history: History, tmp_path: Path
) -> None:
    out = tmp_path / "forged"
    forger = Forger(history.exports[2], out)
    forger.written()
    lines = (out / HEADS).read_bytes()
    (out / HEADS).write_bytes(_flipped(data, lines, keep=b""))
    resealed_manifest(out, forger.manifest, len(forger.records))
    found = codes(checked(out))
    assert found & {"head.broken", "head.signature", "head.inconsistent", "file.damaged"}, found


@MANY
@given(data=st.data())
def test_a_flipped_byte_of_an_anchor_is_found(
    data: st.DataObject, history: History, tmp_path: Path
) -> None:
    out = tmp_path / "forged"
    forger = Forger(history.exports[2], out)
    forger.written()
    (out / ANCHORS).write_bytes(_flipped(data, (out / ANCHORS).read_bytes(), keep=b""))
    resealed_manifest(out, forger.manifest, len(forger.records))
    assert codes(checked(out)) & {"chain.anchor", "file.damaged"}


@MANY
@given(data=st.data())
def test_a_flipped_byte_of_any_file_is_found_by_the_manifest(
    data: st.DataObject, history: History, tmp_path: Path
) -> None:
    out = tmp_path / "forged"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(history.exports[0], out)
    files = sorted(p for p in out.rglob("*") if p.is_file() and p.stat().st_size)
    path = data.draw(st.sampled_from([p for p in files if p.name != "manifest.json"]))
    path.write_bytes(_flipped(data, path.read_bytes(), keep=b""))
    assert "file.changed" in codes(checked(out))


# Whole records --------------------------------------------------------------------------


def test_a_record_dropped_from_the_log_is_missing_and_leaves_a_gap(forger: Forger) -> None:
    del forger.seals[4], forger.records[4]
    found = codes(checked(forger.written()))
    assert {"log.leaf_missing", "chain.gap"} <= found


def test_a_record_dropped_by_an_operator_who_signs_anew_leaves_a_gap(forger: Forger) -> None:
    del forger.seals[4], forger.records[4]
    forger.relogged()
    report = checked(forger.written())
    assert codes(report) == {"chain.gap"}
    assert f"seal 2 of {ALICE.address}: missing" in report.findings[0].detail


def test_a_record_whose_seal_was_dropped_is_not_in_the_log(forger: Forger) -> None:
    del forger.seals[2]
    assert "log.not_in_log" in codes(checked(forger.written()))


def test_a_record_without_its_seal_is_named(forger: Forger) -> None:
    forger.records[1] = (forger.records[1][0], None)
    assert codes(checked(forger.written())) == {"seal.missing"}


def test_records_in_another_order_are_found(forger: Forger) -> None:
    forger.seals[0], forger.seals[1] = forger.seals[1], forger.seals[0]
    found = codes(checked(forger.written()))
    assert {"log.order", "log.root"} <= found
    forger.relogged()
    assert codes(checked(forger.written())) == {"log.order"}


def test_a_record_that_stands_twice_is_found(forger: Forger) -> None:
    forger.seals.insert(1, forger.seals[0])
    forger.records.insert(1, forger.records[0])
    forger.relogged()
    found = codes(checked(forger.written()))
    assert {"chain.duplicate", "log.order", "record.duplicate_run"} <= found


def test_two_records_with_swapped_contents_are_found(forger: Forger) -> None:
    (one, first), (two, second) = forger.records[:2]
    forger.records[:2] = [(two, first), (one, second)]
    report = checked(forger.written())
    assert codes(report) == {"record.hash"}
    assert report.tallies[Check.CONTENT].failed == 2


def test_a_run_under_a_second_seal_is_found(forger: Forger) -> None:
    """The validator itself seals one run twice: both signatures are true."""
    content, line = forger.records[7]
    last = Sealed.from_line(line or b"")
    again = seal_after(
        Head.of(last), EncodedRecord(content), ALICE, now=morning(DAYS[0], 12), block=None
    )
    forger.records.append((content, again.sealed.to_line()))
    forger.seals.append(again.sealed.to_line())
    forger.relogged()
    assert codes(checked(forger.written())) == {
        "record.duplicate_run",
        "seal.record_sealed_twice",
    }
    del forger.records[7:]
    assert codes(checked(forger.written())) == {"seal.record_sealed_twice"}


def test_the_last_record_of_a_chain_that_was_dropped_is_missed_by_the_next_day(
    history: History, forger: Forger
) -> None:
    """Bob's third is the last of the day: only what follows on it can show that it is gone."""
    del forger.seals[2], forger.records[2]
    forger.relogged()
    forged = forger.written()
    assert checked(forged).failed == 0
    assert {"head.two_for_a_day", "head.inconsistent"} <= codes(checked(forged, history.exports[1]))


def test_a_chain_that_goes_on_from_nothing_proven_has_a_gap(
    history: History, tmp_path: Path
) -> None:
    """An operator who lost Bob's third cannot prove what his fourth goes on from."""
    out = tmp_path / "forged"
    forger = Forger(history.exports[1], out)
    forger.written()
    anchors = (out / ANCHORS).read_bytes().splitlines(keepends=True)
    (out / ANCHORS).write_bytes(b"".join(a for a in anchors if BOB.address.encode() not in a))
    resealed_manifest(out, forger.manifest, len(forger.records))
    report = checked(out)
    assert codes(report) == {"chain.gap", "seal.late"}
    (gap,) = (f for f in report.findings if f.code.value == "chain.gap")
    assert f"seals 1 to 3 of {BOB.address}: missing" in gap.detail


def test_exports_are_checked_in_the_order_of_the_log(history: History) -> None:
    assert checked(*reversed(history.exports)).failed == 0


@pytest.mark.parametrize("name", ["problem_id", "bucket", "cluster", "pool"])
def test_a_validator_that_calls_its_problem_another_is_found(
    name: str, forger: Forger, history: History
) -> None:
    """The outcome follows from the problem that the hash binds: the name must be its name."""
    forger.resealed(4, lambda value: value["problem"].update({name: "shop"}), ALICE)
    forger.relogged()
    assert codes(checked(forger.written(), world=history.world)) == {"record.problem_other"}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda value: value["verdict"].update(quality="much"),
        lambda value: value.update(failure="none"),
        lambda value: value["problem"].update(content_hash=[]),
        lambda value: value["trace"]["events"][0]["usage"].update(completion_tokens={}),
    ],
)
def test_a_record_whose_fields_are_of_another_kind_does_not_end_the_verification(
    spoil: Any, forger: Forger, history: History
) -> None:
    """Its validator signed it: everybody's verification would end with a traceback."""
    forger.resealed(4, spoil, ALICE)
    forger.relogged()
    report = checked(forger.written(), world=history.world)
    assert "record.schema" in codes(report)
    assert report.tallies[Check.OUTCOME].passed >= 6


# Keys -----------------------------------------------------------------------------------


def test_a_record_signed_by_another_key_is_found(forger: Forger) -> None:
    """Eve changes a record and signs in Alice's name."""
    forger.resealed(4, lambda value: value.update(log_tail="changed"), EVE)
    forger.relogged()
    assert codes(checked(forger.written())) == {"seal.signature"}


def test_a_record_resigned_in_anothers_own_name_is_found(forger: Forger) -> None:
    seal = replace(forger.seal_of(4).seal, validator=EVE.address)
    forger.swapped(4, sealed_by(seal.encode(), EVE).to_line())
    forger.relogged()
    trust = Trust(validators=frozenset({ALICE.address, BOB.address}))
    found = codes(checked(forger.written(), trust=trust))
    assert {"seal.unexpected_validator", "chain.gap"} <= found


def test_the_validators_that_were_named_pass(history: History) -> None:
    trust = Trust(frozenset({ALICE.address, BOB.address}), OPERATOR.address)
    report = checked(history.exports[0], trust=trust)
    assert report.failed == 0
    assert report.tallies[Check.VALIDATOR].uncheckable.total() == 0


# Chains ---------------------------------------------------------------------------------


def test_a_forked_chain_is_found(forger: Forger) -> None:
    """Alice signs two different seals with one number."""
    content, _ = forger.records[4]
    twin = replace(
        forger.seal_of(1).seal,
        sealed_at=timestamp(
            morning(
                DAYS[0],
                8,
                1,
            )
        ),
    )
    twin = replace(twin, sealed_at=timestamp(twin.time + timedelta(seconds=9)))
    line = sealed_by(twin.encode(), ALICE).to_line()
    forger.seals.insert(5, line)
    forger.records.insert(5, (content, line))
    forger.relogged()
    assert "chain.fork" in codes(checked(forger.written()))


def test_a_chain_that_names_an_earlier_seal_again_is_a_fork(forger: Forger) -> None:
    first = forger.seal_of(3).hash
    seal = replace(forger.seal_of(5).seal, previous=first)
    forger.swapped(5, sealed_by(seal.encode(), ALICE).to_line())
    forger.relogged()
    report = checked(forger.written())
    assert {"chain.fork", "chain.previous"} == codes(report)
    assert "names seal 1 as the one before, as seal 2 does" in report.findings[0].detail


def test_a_seal_whose_predecessor_was_replaced_is_found(forger: Forger) -> None:
    """Alice seals another record in place of one, and does not seal what follows anew."""
    seal = replace(forger.seal_of(4).seal, record="ab" * 32)
    forger.swapped(4, sealed_by(seal.encode(), ALICE).to_line())
    del forger.records[4]
    forger.relogged()
    assert codes(checked(forger.written())) == {"chain.previous"}


def test_a_chain_that_goes_back_in_time_is_found(forger: Forger) -> None:
    _rechain(forger, 6, sealed_at=timestamp(morning(DAYS[0], 7)))
    assert codes(checked(forger.written())) == {"chain.time_back"}


def test_a_chain_that_goes_back_in_blocks_is_found(forger: Forger) -> None:
    _rechain(forger, 6, block=BlockRef(9, "0x" + "0" * 64))
    assert codes(checked(forger.written())) == {"chain.block_back"}


# Dates ----------------------------------------------------------------------------------


def test_a_back_dated_seal_is_found_by_its_block(history: History, tmp_path: Path) -> None:
    """Alice says that she sealed on the first day, and names a block of the second."""
    forger = Forger(history.exports[1], tmp_path / "forged")
    index = _of(forger, ALICE.address)[0]
    _rechain(
        forger,
        index,
        sealed_at=timestamp(morning(DAYS[0], 23)),
        block=BlockRef(20, "0x" + "1" * 64),
    )
    found = codes(checked(history.exports[0], forger.written()))
    assert "seal.back_dated" in found


def test_a_back_dated_seal_without_a_block_is_told_as_late(
    history: History, tmp_path: Path
) -> None:
    forger = Forger(history.exports[1], tmp_path / "forged")
    index = _of(forger, ALICE.address)[0]
    _rechain(forger, index, sealed_at=timestamp(morning(DAYS[0], 23)), block=None)
    report = checked(history.exports[0], forger.written())
    late = [f for f in report.findings if f.code.value == "seal.late"]
    assert any(ALICE.address in f.detail for f in late)


def test_a_seal_from_after_its_head_is_found(forger: Forger) -> None:
    _rechain(forger, 7, sealed_at=timestamp(morning(DAYS[2])))
    assert codes(checked(forger.written())) == {"seal.after_head"}


def test_a_seal_that_names_a_block_after_its_heads_is_found(forger: Forger) -> None:
    _rechain(forger, 7, block=BlockRef(1_000, "0x" + "1" * 64))
    assert codes(checked(forger.written())) == {"seal.block"}


# Heads ----------------------------------------------------------------------------------


def test_a_head_that_another_key_signed_is_found(forger: Forger) -> None:
    forger.relogged(EVE)
    assert codes(checked(forger.written())) == {"head.signature"}


def test_a_head_of_another_operator_is_found(forger: Forger) -> None:
    forger.heads[-1] = signed(replace(forger.heads[-1].head, log=EVE.address), EVE)
    report = checked(forger.written(), trust=Trust(operator=OPERATOR.address))
    assert codes(report) == {"head.operator"}


def test_a_log_rewritten_under_the_true_key_contradicts_the_next_head(
    history: History, forger: Forger
) -> None:
    """The operator drops what it does not like and signs the day again."""
    del forger.seals[-1], forger.records[-1]
    forger.relogged()
    forged = forger.written()
    alone = checked(forged)
    assert alone.failed == 0, "nothing in the export alone can show this"
    found = codes(checked(forged, history.exports[1]))
    assert {"head.two_for_a_day", "head.inconsistent"} <= found


def test_a_truncated_log_is_found_by_who_has_the_head(history: History, forger: Forger) -> None:
    last = SignedHead.from_line((history.exports[2] / HEADS).read_bytes().splitlines()[-1])
    report = checked(history.exports[0], trust=Trust(head=last.hash))
    assert codes(report) == {"head.other"}
    assert checked(*history.exports, trust=Trust(head=last.hash)).failed == 0


def test_a_head_that_shrinks_or_goes_back_is_found(history: History, tmp_path: Path) -> None:
    forger = Forger(history.exports[2], tmp_path / "forged")
    first, second, third = (head.head for head in forger.heads)
    shrunk = signed(replace(second, size=first.size - 1), OPERATOR, forger.heads[1].consistency)
    forger.heads[1] = shrunk
    assert "head.size_back" in codes(checked(forger.written()))
    forger.heads[1] = signed(
        replace(second, closed_at=timestamp(morning(DAYS[0]))),
        OPERATOR,
        forger.heads[1].consistency,
    )
    assert "head.time_back" in codes(checked(forger.written()))
    other = replace(third, previous="ab" * 32)
    forger = Forger(history.exports[2], tmp_path / "forged")
    forger.heads[2] = signed(other, OPERATOR, forger.heads[2].consistency)
    assert codes(checked(forger.written())) == {"head.previous"}


def test_a_consistency_proof_that_is_left_out_is_found(history: History, tmp_path: Path) -> None:
    forger = Forger(history.exports[2], tmp_path / "forged")
    forger.heads[2] = replace(forger.heads[2], consistency=())
    assert codes(checked(forger.written())) == {"head.inconsistent"}


def test_other_subtrees_before_the_day_are_found(history: History, tmp_path: Path) -> None:
    forger = Forger(history.exports[2], tmp_path / "forged")
    forger.manifest["log"]["subtrees"][0] = "ab" * 32
    assert codes(checked(forger.written())) == {"log.root"}


# Files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [RECORDS, SEALS, HEADS])
def test_a_file_that_was_cut_is_found(name: str, history: History, tmp_path: Path) -> None:
    out = shutil.copytree(history.exports[0], tmp_path / "cut")
    content = (out / name).read_bytes()
    (out / name).write_bytes(content[: len(content) * 2 // 3])
    assert "file.changed" in codes(checked(out))
    manifest = json.loads((out / "manifest.json").read_text())
    resealed_manifest(out, manifest, manifest["counts"]["records"])
    found = codes(checked(out))
    assert found & {"file.cut", "log.leaf_missing", "file.damaged", "head.missing"}, found


def test_a_file_that_is_gone_is_found(history: History, tmp_path: Path) -> None:
    out = shutil.copytree(history.exports[0], tmp_path / "gone")
    (out / SEALS).unlink()
    assert {"file.missing", "log.leaf_missing"} <= codes(checked(out))


def test_another_source_under_an_agents_hash_is_found(history: History, tmp_path: Path) -> None:
    out = shutil.copytree(history.exports[0], tmp_path / "other")
    (source,) = (out / "agents").iterdir()
    source.write_text("def agent_main(p): return ['another']\n")
    manifest = json.loads((out / "manifest.json").read_text())
    resealed_manifest(out, manifest, manifest["counts"]["records"])
    assert codes(checked(out)) == {"file.not_named"}


# What a true key signs and the trace does not say ---------------------------------------


def _alter(*path: str, to: Any) -> Any:
    def change(value: dict[str, Any]) -> None:
        for name in path[:-1]:
            value = value[name]
        value[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (_alter("outcome", "success", to=False), "outcome.other"),
        (_alter("outcome", "recommended_ids", to=["6"]), "outcome.other"),
        (_alter("outcome", "axes", "price", to=0.5), "outcome.other"),
        (_alter("axis", "axis", to="B"), "axis.other"),
        (_alter("axis", "matched", to=2), "axis.other"),
        (_alter("coefficient", to=0.99), "score.coefficient"),
        (_alter("final_score", to=0.5), "score.final"),
        (_alter("verdict", "quality", to=0.1), "score.quality"),
        (_alter("verdict", "evidence", to=[]), "citation.false"),
        (_alter("conditions", "standins", to=[]), "record.standins"),
        (_alter("closed", to=False), "closed.other"),
        (_alter("trace", "schema", to=9), "record.trace"),
        (_alter("schema", to=9), "record.schema"),
        (_alter("phase", to=None), None),
    ],
)
def test_what_the_true_validator_signs_is_held_against_the_trace(
    change: Any, code: str | None, forger: Forger, history: History
) -> None:
    """Validator and operator lie together; every signature, chain and root is true."""
    forger.resealed(4, change, ALICE)
    forger.relogged()
    report = checked(forger.written(), world=history.world)
    found = codes(report)
    assert found == ({code} if code else set()) or (
        code == "outcome.other" and found == {code, "score.final"}
    ), report.findings


def test_an_axis_by_rules_of_another_version_is_not_called_verified(
    forger: Forger, history: History
) -> None:
    forger.resealed(4, _alter("axis", "version", to="0"), ALICE)
    forger.relogged()
    tally = checked(forger.written(), world=history.world).tallies[Check.AXIS]
    assert tally.failed == 0
    assert tally.uncheckable["decided by another version of the axis rules"] == 1


def test_a_citation_that_stands_elsewhere_is_found(forger: Forger, history: History) -> None:
    def change(value: dict[str, Any]) -> None:
        value["verdict"]["evidence"][0]["quote"] = "I never compared anything"

    forger.resealed(4, change, ALICE)
    forger.relogged()
    assert codes(checked(forger.written(), world=history.world)) == {"citation.false"}


def test_a_verdict_above_the_facts_is_found(forger: Forger, history: History) -> None:
    """The thinking is cut to a few words that compare nothing, and the quality stays."""

    def change(value: dict[str, Any]) -> None:
        message = value["trace"]["events"][2]["choices"][0]["message"]
        message["content"] = "I take this one, since it looks right to me and to everyone."
        quote = message["content"][:6]
        span = {"event": 2, "field": "think:0", "start": 0, "end": 6, "quote": quote}
        value["verdict"]["evidence"] = [span]

    forger.resealed(4, change, ALICE)
    forger.relogged()
    assert codes(checked(forger.written(), world=history.world)) == {"verdict.above_facts"}


def test_a_changed_trace_no_longer_gives_the_outcome(forger: Forger, history: History) -> None:
    def change(value: dict[str, Any]) -> None:
        value["trace"]["events"][3]["arguments"]["product_ids"] = "6"

    forger.resealed(4, change, ALICE)
    forger.relogged()
    found = codes(checked(forger.written(), world=history.world))
    assert {"outcome.other", "axis.other"} <= found


# Later verdicts, and a race's own directory ---------------------------------------------


def test_a_verdict_that_names_another_record_is_found(history: History, tmp_path: Path) -> None:
    forger = Forger(history.exports[1], tmp_path / "forged")
    index = next(i for i, (c, _) in enumerate(forger.records) if b'"kind":"verdict"' in c[:400])
    forger.resealed(index, _alter("record_hash", to="ab" * 32), ALICE)
    forger.relogged()
    assert codes(checked(forger.written())) >= {"verdict.other_record"}


def test_a_verdict_on_a_run_that_is_not_there_or_was_judged_is_found(
    history: History, tmp_path: Path
) -> None:
    frames = [f.content.sealed for f in read_spool(history.race / RECORDS)]
    race = shutil.copytree(history.race, tmp_path / "race")
    at = next(i for i, one in enumerate(frames) if one.record.value["run_id"] == "run-20")
    write_spool(race / RECORDS, [*frames[:at], *frames[at + 1 :]])
    assert codes(checked(race, race=True)) == {"chain.gap", "verdict.unlinked"}
    last, later = frames[-1].sealed, frames[at + 1].record
    value = {**later.value, "judged_at": "2026-01-03T00:00:00+00:00"}
    again = EncodedRecord(canonical(value))
    second = seal_after(Head.of(last), again, ALICE, now=morning(DAYS[2], 20), block=None)
    write_spool(race / RECORDS, [*frames, second])
    assert codes(checked(race, race=True)) == {"verdict.second"}


def test_a_problem_that_is_none_is_found(history: History, tmp_path: Path) -> None:
    out = shutil.copytree(history.exports[0], tmp_path / "other")
    (out / PROBLEMS).write_bytes(zstandard.compress(b'{"query":"no reward"}\n'))
    manifest = json.loads((out / "manifest.json").read_text())
    resealed_manifest(out, manifest, manifest["counts"]["records"])
    assert codes(checked(out)) == {"file.unreadable"}


def test_a_race_whose_spool_lost_a_record_has_a_gap(history: History, tmp_path: Path) -> None:
    frames = [f.content for f in read_spool(history.race / RECORDS)]
    records = [frame.sealed for frame in frames]
    race = shutil.copytree(history.race, tmp_path / "race")
    write_spool(race / RECORDS, [*records[:3], *records[4:]])
    assert codes(checked(race, race=True)) == {"chain.gap"}
    write_spool(race / RECORDS, [records[1], records[0], *records[2:]])
    assert codes(checked(race, race=True)) == {"chain.order"}
    write_spool(race / RECORDS, [*records[:2], records[1], *records[2:]])
    assert {"chain.duplicate", "record.duplicate_run"} <= codes(checked(race, race=True))


def test_a_race_whose_spool_was_cut_or_damaged_is_found(history: History, tmp_path: Path) -> None:
    race = shutil.copytree(history.race, tmp_path / "race")
    content = (race / RECORDS).read_bytes()
    (race / RECORDS).write_bytes(content[:-7])
    assert "file.cut" in codes(checked(race, race=True))
    (race / RECORDS).write_bytes(content[:2000] + b"\xff" * 8 + content[2008:])
    assert "file.damaged" in codes(checked(race, race=True))


# Details --------------------------------------------------------------------------------


def _flipped(data: st.DataObject, content: bytes, *, keep: bytes) -> bytes:
    """The bytes with one of them changed; never into one of `keep`, which would split a line."""
    at = data.draw(st.integers(0, len(content) - 1), label="position")
    flip = data.draw(
        st.integers(1, 255).filter(lambda f: bytes([content[at] ^ f]) not in (keep or b"x")),
        label="flip",
    )
    return content[:at] + bytes([content[at] ^ flip]) + content[at + 1 :]


def _of(forger: Forger, validator: str) -> list[int]:
    """Where the records of a validator stand."""
    return [i for i in range(len(forger.records)) if forger.seal_of(i).seal.validator == validator]


def _rechain(forger: Forger, index: int, **changes: Any) -> None:
    """Alice changes a seal and signs it and all that follow it in her chain again."""
    previous: str | None = None
    for at in _of(forger, ALICE.address):
        if at < index:
            continue
        seal = forger.seal_of(at).seal
        seal = replace(seal, **changes) if at == index else replace(seal, previous=previous)
        made = sealed_by(seal.encode(), ALICE)
        forger.swapped(at, made.to_line())
        previous = made.hash
    forger.relogged()
