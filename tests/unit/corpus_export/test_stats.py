"""Statistics, pictures and card: right numbers, the same bytes, harmless text."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, cast

import pytest

from corpus_export.card import card_of, figures_of
from corpus_export.figures import Series, bars, steps
from corpus_export.manifest import read_manifest
from corpus_export.stats import MEASURES, bin_labels, statistics
from judge.verdict import Gate
from tests.unit.corpus_export.builders import GOOD
from tests.unit.corpus_export.days import Day, full_day


@pytest.fixture
def found(tmp_path: Path) -> dict[str, Any]:
    full_day(tmp_path / "day").export(tmp_path / "out")
    return statistics(tmp_path / "out", read_manifest(tmp_path / "out"))


def test_populations_are_rows_and_normalised_rejects(found: dict[str, Any]) -> None:
    assert found["kept"]["trajectories"] == 18
    assert found["rejected"]["trajectories"] == 2
    assert found["kept"]["buckets"] == {"product": 6, "shop": 6, "voucher": 6}
    assert found["kept"]["distinct_shapes"] == 2
    assert found["kept"]["verified"] == 9


def test_a_measure_counts_every_trajectory_in_one_bin(found: dict[str, Any]) -> None:
    for measure in MEASURES:
        summary = found["kept"]["measures"][measure.name]
        assert sum(summary["counts"]) == 18, measure.name
    turns = found["kept"]["measures"]["turns"]
    assert dict(zip(turns["bins"], turns["counts"], strict=True))[3] == 9
    assert (turns["p10"], turns["p50"], turns["p90"], turns["mean"]) == (3, 3, 4, 3.5)


def test_an_unjudged_run_has_no_coefficient(found: dict[str, Any]) -> None:
    assert sum(found["rejected"]["measures"]["coefficient"]["counts"]) == 1


def test_labels_name_their_bins() -> None:
    assert bin_labels((1, 2, 4, 8)) == ["1", "2–", "4–", "8+"]
    assert bin_labels((0.3, 0.9, 1)) == ["0.3–", "0.9–", "1+"]


def test_pictures_are_svg_and_the_same_each_time(found: dict[str, Any]) -> None:
    pictures = figures_of(found)
    assert pictures == figures_of(found)
    assert {f"figures/{measure.name}.svg" for measure in MEASURES} < set(pictures)
    for content in pictures.values():
        assert ET.fromstring(content).tag == "{http://www.w3.org/2000/svg}svg"


def test_pictures_escape_what_they_are_given() -> None:
    hostile = "<script>&\"'"
    for content in (
        bars(hostile, [hostile], [Series(hostile, [1])]),
        steps(hostile, [(hostile, 1)]),
    ):
        assert b"<script" not in content
        ET.fromstring(content)


def test_pictures_of_nothing_are_drawn() -> None:
    ET.fromstring(bars("nothing", ["a"], [Series("kept", [0]), Series("rejected", [0])]))
    ET.fromstring(steps("nothing", [("read", 0)]))


def test_the_card_declares_only_splits_with_rows(tmp_path: Path) -> None:
    day = Day(tmp_path / "day")
    day.add(day.run(0), day.run(1, label="coded", axis="B"), day.run(2, gate=Gate.INFERENCE))
    made = day.export(tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    rows = cast("dict[str, dict[str, int]]", made.manifest["rows"])
    for split, counts in rows.items():
        for name, count in counts.items():
            assert (f"path: {split}/{name}.parquet" in card) == bool(count)


def test_a_card_of_no_rows_declares_nothing(tmp_path: Path) -> None:
    day = Day(tmp_path / "day")
    day.add(day.run(0, GOOD, gate=None))
    day.export(tmp_path / "out")
    assert "configs:" not in (tmp_path / "out" / "README.md").read_text()


def test_the_card_is_the_same_from_the_stored_manifest(tmp_path: Path) -> None:
    made = full_day(tmp_path / "day").export(tmp_path / "out")
    stored = read_manifest(tmp_path / "out")
    statistics_now = statistics(tmp_path / "out", stored)
    assert card_of(stored, statistics_now) == card_of(made.manifest, statistics_now)
