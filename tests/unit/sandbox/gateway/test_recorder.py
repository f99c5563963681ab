"""Time that is the validator's, counted once; messages kept once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sandbox.gateway.recorder import Recorder, Stopwatch
from scoring.types import JsonObject


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


spans = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), max_size=8)


@given(spans)
def test_overlapping_activities_count_once(lengths: list[tuple[int, int]]) -> None:
    clock = Clock()
    watch = Stopwatch(clock)
    open_now = {}
    for tick in range(80):
        clock.now = float(tick)
        for number, (begin, length) in enumerate(lengths):
            if tick == begin:
                open_now[number] = watch.running()
                open_now[number].__enter__()
            if tick == begin + length:
                open_now.pop(number).__exit__(None, None, None)
        busy = {t for b, n in lengths for t in range(b, b + n) if t < tick}
        assert watch.seconds() == len(busy)


def test_messages_are_told_apart_by_value_not_by_equality() -> None:
    recorder = Recorder(Clock())
    same: list[JsonObject] = [{"a": 1, "b": "x"}, {"b": "x", "a": 1}]
    others: list[JsonObject] = [{"a": True, "b": "x"}, {"a": 1.0, "b": "x"}, {"a": "1", "b": "x"}]
    assert recorder.intern(same) == (0, 0)
    assert recorder.intern(others) == (1, 2, 3)
    assert recorder.intern([*same, *others]) == (0, 0, 1, 2, 3)


def test_events_are_numbered_in_the_order_of_their_answers() -> None:
    clock = Clock()
    recorder = Recorder(clock)
    slow = recorder.begin()
    clock.now += 1.0
    quick = recorder.begin()
    clock.now += 0.5
    quick.tool("tools", "terminate", {}, 200, "done")
    slow.llm((), {"model": "m"}, 200)
    first, second = recorder.trace().events
    assert (first.kind, first.seq, first.started_ms, first.elapsed_ms) == ("tool", 0, 1000.0, 500.0)
    assert (second.kind, second.seq, second.elapsed_ms) == ("llm", 1, 1500.0)
