"""What a day has cost, from records, over restarts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurons.validating.spending import FILE, Spending, cost_usd
from tests.unit.neurons.validating.wire import Time

RECORD: Any = {
    "trace": {"events": [{"cost_usd": 0.25}, {"kind": "tool"}, {"cost_usd": 0.5}]},
    "verdict": {"cost_usd": 0.125},
    "unjudged": None,
}


def test_a_record_costs_its_calls_and_its_judges() -> None:
    assert cost_usd(RECORD) == 0.875
    assert cost_usd(RECORD, models=False) == 0.125
    assert cost_usd({"verdict": None, "unjudged": {"cost_usd": 2}}) == 2.0


@given(
    st.recursive(
        st.none() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["trace", "events", "cost_usd", "verdict"]), inner, max_size=3
            )
        ),
        max_leaves=8,
    )
)
def test_no_record_costs_less_than_nothing_or_breaks_the_sum(value: Any) -> None:
    for record in (value, {"trace": value, "verdict": value}):
        cost = cost_usd(record) if isinstance(record, dict) else 0.0
        assert 0 <= cost < float("inf")


def test_a_restart_does_not_begin_the_day_again(tmp_path: Path) -> None:
    time = Time()
    Spending(tmp_path, 1.0, time).note(0.75)
    again = Spending(tmp_path, 1.0, time)
    assert again.today_usd == 0.75
    again.note(0.5)
    assert again.exhausted_until() is not None
    time.now += timedelta(days=1)
    assert Spending(tmp_path, 1.0, time).today_usd == 0.0


@pytest.mark.parametrize("broken", [b"", b"{}", b'{"day": 1, "usd": NaN}', b"\xff"])
def test_a_broken_file_begins_the_day(tmp_path: Path, broken: bytes) -> None:
    (tmp_path / FILE).write_bytes(broken)
    assert Spending(tmp_path, 1.0, Time()).today_usd == 0.0


def test_a_sum_that_cannot_be_written_still_counts(tmp_path: Path) -> None:
    (tmp_path / (FILE + ".new")).mkdir()
    spending = Spending(tmp_path, 1.0, Time())
    spending.note(2.0)
    assert spending.exhausted_until() is not None
