"""`arena records` as people use it: close, export, verify, prove, show, on one database."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arena.db.engine import Database
from arena.exceptions import ArenaError, LogError, ProofError
from arena.records.export import export_day
from arena.records.heads import SignedHead
from arena.records.layout import RECORDS
from arena.records.log import TransparencyLog
from arena.records.proofs import InclusionProof
from arena.records.verification.findings import Check
from arena.records.verification.stored import DatabaseSource
from arena.records.verification.verifier import Options, Trust, verify, verify_proof
from arena.runs.canonical import canonical
from arena.runs.record import EncodedRecord
from arena.season.release import Release
from neurons.cli import main
from tests.integration.transparency import (
    ALICE,
    DAYS,
    OPERATOR,
    History,
    Validator,
    checked,
    codes,
    make_history,
    morning,
    write_spool,
)
from tests.postgres import sources

pytestmark = pytest.mark.database


@pytest.fixture
async def history(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    monkeypatch.setenv("ARENA_DATA_DIR", str(tmp_path / "var"))
    return await make_history(database, tmp_path / "history")


def run(*arguments: str) -> int:
    """The exit code of `arena` in this process."""
    try:
        code = main([*arguments])
    except SystemExit as end:
        code = end.code
    return int(code or 0)


def names(directory: Path) -> set[str]:
    """What lies in a directory."""
    return {path.name for path in directory.iterdir()}


async def test_a_database_is_verified_whole(database: Database, history: History) -> None:
    report = await verify([DatabaseSource(database.engine)], Options(catalog=history.world.catalog))
    assert report.failed == 0, report.findings
    assert report.tallies[Check.LOG].passed == 3
    assert report.tallies[Check.INCLUSION].passed == 15
    assert report.tallies[Check.OUTCOME].passed == 14
    assert report.tallies[Check.VERDICTS].passed == 1


async def test_a_public_export_holds_only_what_is_released(
    database: Database, history: History, tmp_path: Path
) -> None:
    nothing = await export_day(database.engine, DAYS[0], tmp_path / "a", public=True)
    assert (nothing.seals, nothing.records, nothing.withheld) == (8, 0, 8)
    assert names(tmp_path / "a" / "agents") == set()
    report = await asyncio.to_thread(checked, tmp_path / "a")
    assert report.failed == 0
    assert report.tallies[Check.CONTENT].uncheckable.total() == 8

    free = history.world.problems[1].problem_id
    some = await export_day(
        database.engine,
        DAYS[0],
        tmp_path / "b",
        public=True,
        release=Release(frozenset({free}), await sources(database)),
    )
    assert 0 < some.records < some.seals
    content = b"".join(p.read_bytes() for p in (tmp_path / "b").rglob("*") if p.is_file())
    assert history.world.problems[0].problem_id.encode() not in content
    report = await asyncio.to_thread(checked, tmp_path / "b", world=history.world)
    assert report.failed == 0
    assert report.tallies[Check.OUTCOME].passed == some.records


async def test_an_export_is_there_whole_or_not_at_all(
    database: Database, history: History, tmp_path: Path
) -> None:
    with pytest.raises(LogError, match="is not closed"):
        await export_day(database.engine, DAYS[2].replace(day=9), tmp_path / "x", public=False)
    with pytest.raises(LogError, match="there already"):
        await export_day(database.engine, DAYS[0], history.exports[0], public=False)

    before = names(tmp_path)

    def fails(count: int) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(ArenaError, match="No space left") as caught:
        await export_day(database.engine, DAYS[0], tmp_path / "y", public=False, progress=fails)
    assert caught.value.code == "export.failed"
    assert names(tmp_path) == before


async def test_a_proof_holds_for_a_stranger_and_no_changed_byte_does(
    database: Database, history: History, tmp_path: Path
) -> None:
    proof = await TransparencyLog(database.engine).prove("run-31")
    trust = Trust(frozenset({ALICE.address}), OPERATOR.address, proof.head.hash)
    report = verify_proof(proof, trust, [])
    assert report.failed == 0
    assert sum(tally.uncheckable.total() for tally in report.tallies.values()) == 0
    other = Trust(frozenset(), None, "ab" * 32)
    assert codes(verify_proof(proof, other, [])) == {"head.other"}
    heads = [
        SignedHead.from_line(line)
        for line in (history.exports[2] / "heads.jsonl").read_bytes().splitlines()
    ]
    assert verify_proof(proof, Trust(), heads).failed == 0
    assert codes(verify_proof(proof, Trust(), heads[:1])) == {"head.other"}
    line = proof.to_line()

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, len(line) - 1), st.integers(1, 255))
    def flipped(at: int, flip: int) -> None:
        changed = line[:at] + bytes([line[at] ^ flip]) + line[at + 1 :]
        try:
            forged = InclusionProof.from_bytes(changed)
            found = codes(verify_proof(forged, Trust(), []))
        except ProofError:
            return
        assert found & {"log.inclusion", "seal.signature", "head.signature"}

    flipped()


async def test_the_commands_from_closing_to_verifying(
    database: Database,
    database_url: str,
    history: History,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ARENA_DATABASE_URL", database_url)
    export, proof = tmp_path / "export", tmp_path / "proof.json"

    def commands() -> None:
        catalog = ("--catalog", str(history.world.catalog))
        assert run("records", "close", "--day", "2026-01-03") == 0
        assert "was closed before" in capsys.readouterr().err
        assert run("records", "close", "--day", "2026-01-04") == 1  # not this machine's log
        assert "cannot sign its heads" in capsys.readouterr().err
        assert run("records", "export", "--day", "2026-01-02", "--out", str(export)) == 0
        assert run("records", "verify", str(export), *catalog, "--json", "-") == 0
        told = json.loads(capsys.readouterr().out)
        assert told["ok"]
        assert told["checks"]["outcome"]["passed"] == 3
        assert run("records", "verify", str(export), "--strict") == 1  # one seal came late
        assert "seal.late" in capsys.readouterr().err
        assert run("records", "verify", *catalog) == 0
        assert run("records", "verify", "--operator", ALICE.address) == 1
        assert "head.operator" in capsys.readouterr().err
        assert run("records", "prove", "run-1", "--out", str(proof)) == 0
        assert run("records", "verify", "--proof", str(proof), "--operator", OPERATOR.address) == 0
        assert run("records", "prove", "nobody") == 1
        assert run("records", "verify", str(tmp_path)) == 1
        capsys.readouterr()
        for place in ((), ("--race", str(history.race))):
            assert run("records", "show", "run-1", *place) == 0
            shown = capsys.readouterr().err
            assert "⟦" in shown
            assert "success" in shown
            assert ALICE.address in shown
        assert run("records", "show", "run-20", "--race", str(history.race)) == 0
        assert "verdict, later" in capsys.readouterr().err

    await asyncio.to_thread(commands)


def test_a_record_that_cannot_be_shown_is_said_to_be_so_in_one_line(
    history: History, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = json.loads(history.world.run(1).encode().content)
    value["trace"]["messages"][0] = "no message"
    record = EncodedRecord(canonical(value))
    write_spool(tmp_path / RECORDS, [Validator(ALICE).seal(record, morning(DAYS[0], 9))])
    told = tmp_path / "told.json"
    assert run("records", "show", "run-1", "--race", str(tmp_path), "--json", str(told)) == 1
    assert "field of the wrong kind" in capsys.readouterr().err
    assert json.loads(told.read_text()) == value


async def test_a_changed_export_exits_with_one_and_names_what_it_found(
    history: History, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(history.exports[0], tmp_path / "changed")
    heads = (out / "heads.jsonl").read_bytes()
    (out / "heads.jsonl").write_bytes(heads.replace(b'"size":8', b'"size":9'))
    code = await asyncio.to_thread(run, "records", "verify", str(out), "--json", "-")
    told = capsys.readouterr()
    found = {finding["code"] for finding in json.loads(told.out)["findings"]}
    assert code == 1
    assert {"file.changed", "head.signature", "log.leaf_missing"} <= found
    assert "head.signature" in told.err
