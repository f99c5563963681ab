"""The learning rate of each update, by hand."""

from __future__ import annotations

import pytest

from training.optimising.curves import Curves
from training.optimising.pictures import Panel, draw
from training.optimising.schedule import rate_at
from training.recipe import OptimiserSettings, Schedule


def rates(total: int, **settings: object) -> list[float]:
    made = OptimiserSettings.model_validate({"learning_rate": 1.0, **settings})
    return [rate_at(update, total, made) for update in range(total)]


def test_it_rises_in_equal_steps() -> None:
    assert rates(8, warm_up=0.5, schedule="constant") == [0.25, 0.5, 0.75, 1, 1, 1, 1, 1]


def test_linear_falls_in_equal_steps_to_its_floor() -> None:
    assert rates(4, warm_up=0, schedule="linear") == [1, 0.75, 0.5, 0.25]
    assert rates(4, warm_up=0, schedule="linear", floor=0.5) == [1, 0.875, 0.75, 0.625]


def test_cosine_is_half_in_the_middle() -> None:
    found = rates(4, warm_up=0, schedule="cosine")
    assert found == pytest.approx([1, 0.5 + 0.5**1.5, 0.5, 0.5 - 0.5**1.5])


@pytest.mark.parametrize("schedule", list(Schedule))
@pytest.mark.parametrize("total", [1, 2, 3, 50])
def test_every_update_learns(schedule: Schedule, total: int) -> None:
    assert all(rate > 0 for rate in rates(total, schedule=schedule, warm_up=0.1))


def test_a_line_that_was_cut_off_is_not_read(tmp_path: object) -> None:
    from pathlib import Path

    curves = Curves(Path(str(tmp_path)), ("loss", "held_out_*"))
    for update in (1, 2, 3):
        curves.add(update, {"loss": 1.0 / update, "held_out_x": 2.0})
    with (Path(str(tmp_path)) / "curves.jsonl").open("ab") as file:
        file.write(b'{"update": 4, "lo')
    assert [line["update"] for line in curves.read()] == [1, 2, 3]
    curves.rewind(2)
    assert [line["update"] for line in curves.read()] == [1, 2]
    curves.draw()
    picture = (Path(str(tmp_path)) / "curves.svg").read_text()
    assert picture.index(">loss<") < picture.index(">held_out_x<")


def test_a_picture_takes_anything() -> None:
    import xml.etree.ElementTree as ET

    panels = [
        Panel("<b>&", [(1, 2.0), (2, float("nan")), (3, 4.0)]),
        Panel("one", [(1, 5.0)]),
        Panel("none", []),
    ]
    root = ET.fromstring(draw(panels))
    assert root.tag.endswith("svg")
    assert "nan" not in draw(panels)
