"""Every kind of finding: an export is broken in one way, and that is what is found."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from corpus_export import manifest as manifests
from corpus_export.checking import verify
from corpus_export.findings import Code
from corpus_export.rows import NOT_PUBLIC, SCHEMA
from sandbox.catalog import open_catalog
from tests.unit.corpus_export.days import full_day, lines

Row = dict[str, Any]
TRAIN = "train/axis_a"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, catalogs: Path) -> Path:
    directory = tmp_path_factory.mktemp("exported")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARENA_DATA_DIR", str(catalogs))
        full_day(directory / "day").export(directory / "out")
    return directory / "out"


@pytest.fixture
def out(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported, tmp_path / "out"))


def codes(directory: Path) -> set[Code]:
    return {finding.code for finding in verify(directory)}


def rewrite(out: Path, change: Callable[[list[Row]], Any], table: str = TRAIN) -> None:
    """Change the rows of a table in both formats, and the manifest's hashes with them."""
    found: list[Row] = lines(out / f"{table}.jsonl.zst")
    change(found)
    content = b"".join(orjson.dumps(row) + b"\n" for row in found)
    (out / f"{table}.jsonl.zst").write_bytes(zstandard.compress(content))
    pq.write_table(pa.Table.from_pylist(found, SCHEMA), out / f"{table}.parquet")
    settle(out, rows={f"{table}.parquet": len(found), f"{table}.jsonl.zst": len(found)})


def settle(out: Path, *, rows: dict[str, int] | None = None) -> None:
    """Hashes and sizes of the manifest as the files are now."""

    def change(manifest: Row) -> None:
        for name, said in manifest["files"].items():
            content = (out / name).read_bytes()
            said.update(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
            if rows and name in rows:
                said["rows"] = rows[name]

    remanifest(out, change)


def remanifest(out: Path, change: Callable[[Row], Any]) -> None:
    manifest = json.loads((out / "manifest.json").read_bytes())
    change(manifest)
    (out / "manifest.json").write_bytes(manifests.encode(manifest))


def test_nothing_is_found_in_a_whole_export(out: Path) -> None:
    assert codes(out) == set()


def test_nothing_is_found_when_recommendations_resolve_again(out: Path, tmp_path: Path) -> None:
    from tests.unit.corpus_export.days import write_catalog

    catalog = open_catalog(write_catalog(tmp_path))
    assert list(verify(out, catalogs={catalog.content_hash: catalog})) == []


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, Code.MANIFEST),
        (b"", Code.MANIFEST),
        (b"[]\n", Code.MANIFEST),
        (b'{"schema":"corpus-1"}\n', Code.MANIFEST),
        (b'{"schema":"corpus-99"}\n', Code.MANIFEST),
    ],
)
def test_a_manifest_that_is_none_is_found(out: Path, content: bytes | None, code: Code) -> None:
    if content is None:
        (out / "manifest.json").unlink()
    else:
        (out / "manifest.json").write_bytes(content)
    assert codes(out) == {code}


def test_a_manifest_that_is_not_canonical_is_found(out: Path) -> None:
    value = json.loads((out / "manifest.json").read_bytes())
    (out / "manifest.json").write_text(json.dumps(value, indent=1))
    assert codes(out) == {Code.MANIFEST}


@pytest.mark.parametrize("name", ["train/axis_a.parquet", "eval/axis_b.jsonl.zst", "README.md"])
def test_a_missing_file_is_found(out: Path, name: str) -> None:
    (out / name).unlink()
    assert Code.MISSING in codes(out)


def test_a_file_that_nobody_named_is_found(out: Path) -> None:
    (out / "train" / "axis_a-00001.parquet").write_bytes(b"PAR1")
    assert codes(out) == {Code.UNKNOWN}


@pytest.mark.parametrize("place", range(0, 60_000, 7_919))
def test_any_flipped_byte_is_found(out: Path, place: int) -> None:
    path = out / "train" / "axis_a.parquet"
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= 1
    path.write_bytes(content)
    assert Code.HASH in codes(out)


def test_a_cut_file_is_found(out: Path) -> None:
    path = out / "rejects.jsonl.zst"
    path.write_bytes(path.read_bytes()[:-9])
    assert {Code.SIZE, Code.HASH, Code.FUNNEL} <= codes(out)


def test_other_columns_are_found(out: Path) -> None:
    path = out / "train" / "axis_b.parquet"
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["coefficient"]), path)
    settle(out)
    assert codes(out) == {Code.COLUMNS}


def test_formats_that_differ_are_found(out: Path) -> None:
    path = out / "train" / "axis_a.jsonl.zst"
    found = lines(path)
    found[0]["gate"] = "reference"
    path.write_bytes(zstandard.compress(b"".join(orjson.dumps(row) + b"\n" for row in found)))
    settle(out)
    assert codes(out) == {Code.FORMATS}


def test_a_row_that_one_format_lacks_is_found(out: Path) -> None:
    path = out / "train" / "axis_a.jsonl.zst"
    found = lines(path)[:-1]
    path.write_bytes(zstandard.compress(b"".join(orjson.dumps(row) + b"\n" for row in found)))
    settle(out)
    assert codes(out) == {Code.FORMATS}


def test_a_row_that_is_gone_is_found(out: Path) -> None:
    rewrite(out, lambda rows: rows.pop())
    assert {Code.ROWS, Code.FUNNEL} <= codes(out)


def test_a_reject_that_is_gone_is_found(out: Path) -> None:
    path = out / "rejects.jsonl.zst"
    found = lines(path)[:-1]
    path.write_bytes(zstandard.compress(b"".join(orjson.dumps(row) + b"\n" for row in found)))
    settle(out)
    assert {Code.FUNNEL, Code.SEQUENCES} <= codes(out)


def test_a_reject_of_an_unknown_reason_is_found(out: Path) -> None:
    path = out / "rejects.jsonl.zst"
    found = lines(path)
    found[0]["reason"] = "because"
    path.write_bytes(zstandard.compress(b"".join(orjson.dumps(row) + b"\n" for row in found)))
    settle(out)
    assert Code.REJECT in codes(out)


def test_counts_that_were_changed_are_found(out: Path) -> None:
    remanifest(out, lambda m: m["funnel"].update(read=21))
    assert Code.FUNNEL in codes(out)


def test_a_card_that_was_changed_is_found(out: Path) -> None:
    card = out / "README.md"
    card.write_text(card.read_text().replace(NOT_PUBLIC, "Public."))
    settle(out)
    assert codes(out) == {Code.CARD}


def test_a_partition_that_was_changed_is_found(out: Path) -> None:
    state = json.loads((out / "partition.json").read_bytes())
    moved = next(
        r for c in state["clusters"].values() for r in c.values() if r["side"] == "training"
    )
    moved["side"] = "evaluation"
    (out / "partition.json").write_text(json.dumps(state))
    settle(out)
    assert {Code.PARTITION, Code.SIDE} <= codes(out)


def test_a_partition_with_a_cluster_on_two_sides_is_found(out: Path) -> None:
    state = json.loads((out / "partition.json").read_bytes())
    clusters = state["clusters"]
    by_side = {r["side"]: c for c in clusters for r in clusters[c].values()}
    clusters[by_side["training"]] |= clusters.pop(by_side["evaluation"])
    (out / "partition.json").write_text(json.dumps(state))
    settle(out)
    found = list(verify(out))
    assert [f.code for f in found if "two sides" in f.message] == [Code.PARTITION]


def test_a_cluster_on_two_sides_is_found_in_the_rows(out: Path) -> None:
    (held_out, *_) = lines(out / "eval" / "axis_a.jsonl.zst")
    rewrite(out, lambda rows: rows[0].update(cluster=held_out["cluster"]))
    assert {Code.TWO_SIDES, Code.SIDE} <= codes(out)


def test_a_problem_on_two_sides_is_found(out: Path) -> None:
    (held_out, *_) = lines(out / "eval" / "axis_a.jsonl.zst")
    rewrite(out, lambda rows: rows[0].update(problem_id=held_out["problem_id"]))
    assert {Code.TWO_SIDES, Code.SIDE} <= codes(out)


def test_a_record_in_two_rows_is_found(out: Path) -> None:
    rewrite(out, lambda rows: rows.append(rows[0]))
    assert {Code.TWICE, Code.ROWS, Code.KEPT} <= codes(out)


def test_a_record_in_both_splits_is_found(out: Path) -> None:
    (held_out, *_) = lines(out / "eval" / "axis_a.jsonl.zst")
    rewrite(out, lambda rows: rows.__setitem__(0, dict(held_out) | {"split": "train"}))
    assert {Code.TWICE, Code.TWO_SIDES, Code.SIDE} <= codes(out)


def test_a_record_that_is_in_and_rejected_is_found(out: Path) -> None:
    (reject, *_) = lines(out / "rejects.jsonl.zst")
    rewrite(out, lambda rows: rows[0].update(record_hash=reject["record_hash"]))
    assert Code.TWICE in codes(out)


def _messages(change: Callable[[list[Row]], Any]) -> Callable[[list[Row]], None]:
    return lambda rows: change(rows[0]["messages"])


def _arguments(name: str, text: str) -> Callable[[list[Row]], None]:
    def change(messages: list[Row]) -> None:
        for message in messages:
            for call in message["tool_calls"] or []:
                if call["function"]["name"] == name:
                    call["function"]["arguments"] = text

    return _messages(change)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda rows: rows[0].update(split="eval"), Code.PLACE),
        (lambda rows: rows[0].update(axis="B"), Code.PLACE),
        (_messages(lambda m: m.pop(0)), Code.MESSAGES),
        (_messages(lambda m: m[2].update(role="narrator")), Code.MESSAGES),
        (_messages(lambda m: m[3].update(tool_call_id="call_99")), Code.MESSAGES),
        (_messages(lambda m: m.__setitem__(slice(3, 5), [m[4], m[3]])), Code.MESSAGES),
        (_messages(lambda m: m.pop(3)), Code.UNANSWERED),
        (_messages(lambda m: m.__delitem__(slice(-2, None))), Code.FEATURES),
        (_messages(lambda m: m.__delitem__(slice(-4, -2))), Code.RECOMMENDATIONS),
        (_messages(lambda m: m.__delitem__(slice(-4, None))), Code.STOPPED),
        (_arguments("recommend_product", '"1"'), Code.RECOMMENDATION),
        (_arguments("recommend_product", '{"product_ids": '), Code.RECOMMENDATION),
        (lambda rows: rows[0]["features"].update(tokens=20_000), Code.TOO_LONG),
        (lambda rows: rows[0]["features"].update(tokens=20), Code.TOKENS),
        (lambda rows: rows[0]["features"].update(depth=9), Code.FEATURES),
        (lambda rows: rows[0].update(coefficient=0.5), Code.COEFFICIENT),
        (lambda rows: rows[0].update(quality=0.1), Code.COEFFICIENT),
        (lambda rows: rows[0].update(final_score=0.75), Code.SCORE),
        (lambda rows: rows[0].update(notice=""), Code.RELEASE),
    ],
)
def test_a_row_that_passes_no_gate_is_found(
    out: Path, change: Callable[[list[Row]], Any], code: Code
) -> None:
    rewrite(out, change)
    assert code in codes(out)


def test_a_row_that_is_not_released_is_found_in_a_public_export(out: Path) -> None:
    remanifest(out, lambda m: m.update(public=True))
    assert Code.RELEASE in codes(out)


def test_an_id_that_no_catalogue_has_is_found_with_the_catalogue(out: Path, tmp_path: Path) -> None:
    from tests.unit.corpus_export.days import write_catalog

    catalog = open_catalog(write_catalog(tmp_path))
    rewrite(out, _arguments("recommend_product", '{"product_ids":"nowhere"}'))
    found = {f.code for f in verify(out, catalogs={catalog.content_hash: catalog})}
    assert Code.RECOMMENDATION in found


def test_every_code_but_those_of_reading_errors_is_shown_here() -> None:
    here = Path(__file__).read_text()
    assert {code.name for code in Code if f"Code.{code.name}" not in here} == {"UNREADABLE"}
