"""Whatever an agent returns is read, and nothing that it returns is an exception."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.attempt import read_attempt
from scoring.dialogue import (
    MAX_ID_LENGTH,
    MAX_IDS,
    Recommendation,
    action_of,
    read_recommendation,
    read_steps,
    read_termination,
)
from scoring.outcome import score
from scoring.upstream import format_score, length_score
from tests.unit.scoring.builders import (
    call,
    catalogue,
    problem,
    product,
    recommend,
    step,
    terminate,
)

JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=8)
    | st.sampled_from(["recommend_product", "terminate", "success", "7", "7,8"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "completion",
                    "message",
                    "tool_call",
                    "name",
                    "parameters",
                    "product_ids",
                    "status",
                    "think",
                    "response",
                    "extra_info",
                    "timestamp",
                    "",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=30,
)


@given(JUNK, st.booleans())
def test_any_dialogue_is_scored_and_its_scores_are_bounded(dialogue: Any, completed: bool) -> None:
    attempt = read_attempt(dialogue, completed=completed)
    outcome = score(problem(), attempt, catalogue(product("7"), product("8")))
    assert all(0.0 <= value <= 1.0 for value in outcome.upstream_scores.values())
    assert completed or not outcome.success
    for name in outcome.recommended_ids:
        name.encode("utf-8")
        assert "\0" not in name


@pytest.mark.parametrize(
    "dialogue",
    [
        None,
        17,
        float("nan"),
        "text",
        {},
        [],
        [None, 3, "x", [], {}],
        [{"completion": None}],
        [{"completion": {"message": "hello"}}],
        [{"completion": {"message": {"tool_call": "recommend_product"}}}],
        [{"completion": {"message": {"tool_call": [{"name": ["recommend_product"]}]}}}],
        [step(call("recommend_product"))],
        [step({"name": "recommend_product", "parameters": "7"})],
        [step(terminate(True), timestamp=10**4000)],
        [step(recommend("7"), timestamp=float("nan"))],
        [step(recommend("7"), timestamp=float("inf"))],
        [{1: 2, "completion": {3: 4}}],
    ],
)
def test_a_malformed_dialogue_is_a_failure_and_no_exception(dialogue: Any) -> None:
    assert not score(problem(), read_attempt(dialogue), catalogue(product())).success


def test_depth_does_not_break_the_reader() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    steps = [step(call("find_product", q=deep), think="t"), step(recommend("7"), terminate())]
    assert score(problem(), read_attempt(steps), catalogue(product())).success


def test_ten_megabytes_of_ids_are_read_in_bounds() -> None:
    for text in (",".join(map(str, range(1_400_000))), "9" * 10_000_000, "," * 10_000_000):
        read = read_recommendation(text)
        assert len(read.ids) <= MAX_IDS
        assert all(len(i) <= MAX_ID_LENGTH + 1 for i in read.ids)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("7", ("7",)),
        (" 7 , 8 ", ("7", "8")),
        ("8,7,8,7", ("8", "7")),
        ("7,", ("7",)),
        ("7,,8", ("7", "", "8")),
        (",8", ("", "8")),
        ("", ()),
        (",,", ()),
        ("7\n", ("7",)),
        ("a\0b", ("a\ufffdb",)),
        ("\ud800", ("?",)),
        (None, ()),
        (True, ()),
        (7, ("7",)),
        (["7", 8], ("7", "8")),
        (["7", None], ()),
        ([], ()),
        ({"7": 1}, ()),
    ],
)
def test_recommended_ids_keep_their_order_without_repetitions(
    text: Any, ids: tuple[str, ...]
) -> None:
    assert read_recommendation(text).ids == ids


@given(st.lists(st.text("789 ,", max_size=4), max_size=12))
def test_ids_are_distinct_stripped_and_in_order_of_first_appearance(pieces: list[str]) -> None:
    text = ",".join(pieces)
    ids = read_recommendation(text).ids
    assert len(set(ids)) == len(ids)
    assert read_recommendation(",".join(ids)).ids == ids
    expected = list(dict.fromkeys(piece.strip() for piece in text.split(",")))
    assert list(ids) == (expected[:-1] if expected[-1] == "" else expected)


def test_a_number_of_thousands_of_digits_is_no_id() -> None:
    assert read_recommendation(10**5000).ids == ()


def test_what_was_no_text_counts_for_nothing_in_a_dialogue() -> None:
    assert not read_recommendation(7).as_text
    assert read_attempt([step(recommend(7), terminate())]).ids == ()


def test_termination_is_a_success_only_when_it_says_so_or_says_nothing() -> None:
    assert read_termination("success").success
    assert read_termination(None).success  # the tool's default
    for status in ("failure", "Success", "success ", "", True, 1, ["success"]):
        assert not read_termination(status).success


def test_only_the_two_closing_tools_are_actions() -> None:
    assert action_of("find_product", {"q": "x"}) is None
    assert action_of(None, {}) is None
    assert action_of("recommend_product", None) == Recommendation((), as_text=False)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (step(recommend("7")), 1.0),
        (step(response="here"), 1.0),
        (step(recommend("7"), timestamp=0), 0.5),
        (step(recommend("7"), timestamp=True), 0.5),
        (step(recommend("7"), timestamp=None), 0.5),
        (step(recommend("7"), timestamp="1"), 0.5),
        (step(recommend("7"), think=""), 0.0),
        (step(recommend("7"), think=None), 0.0),
        (step(), 0.0),
        (step(recommend("7"), think="a </response> b"), 0.0),
        (step(recommend("<think>")), 0.0),
        (step(call("x", **{"<tool_call>": 1})), 0.0),
        (step(call("<response>")), 0.0),
        (step({"name": "x"}), 0.0),
        (step({"name": 3, "parameters": {}}), 0.0),
        (step({"name": "x", "parameters": []}), 0.0),
        (step("recommend_product"), 0.0),
        (step(response=3), 0.0),
        (step(call("x", q="<obs>")), 1.0),
        # A product's text in a tool result is not the agent's.
        (step(call("x") | {"result": "<think>"}), 1.0),
    ],
)
def test_format_looks_at_tags_calls_and_timestamps(message: Any, expected: float) -> None:
    assert format_score(read_steps([message])) == expected


def test_length_counts_steps_up_to_a_last_one_that_terminates() -> None:
    assert length_score(read_steps([step(recommend("7")), step(terminate("failure"))])) == 0.5
    assert length_score(read_steps([step(terminate()), step(recommend("7"))])) == 0.0
    assert length_score(()) == format_score(()) == 0.0
