"""Axis B: the calls that code made."""

from __future__ import annotations

import json

from corpus_export.types import LeftOut, Reason, ResultSource
from scoring.types import Json, JsonObject
from tests.unit.corpus_export.builders import (
    GOOD,
    Move,
    TagAgent,
    find,
    reject_of,
    trajectory_of,
)
from tests.unit.sandbox.provenance.traces import TraceBuilder, call, listing, step


def pipeline() -> TraceBuilder:
    build = TraceBuilder()
    build.llm([{"role": "user", "content": "Classify."}], "Product, I should think.")
    build.wire("find_product", listing(1, 2), q="canvas bag", page=1)
    build.tool("view_product_information", {"error": "busy"}, status=503, product_ids="1")
    build.tool("view_product_information", listing(1), product_ids="1")
    return build


def test_every_dispatch_is_a_turn_without_thinking() -> None:
    build = pipeline()
    build.tool("recommend_product", "ok", product_ids="1")
    build.dispatch(call("terminate", status="success"), "bye")
    made = trajectory_of(build.trace, axis="B")
    assert made.dialect == "code"
    assert [t.calls[0].name for t in made.turns] == [
        "find_product",
        "view_product_information",
        "recommend_product",
        "terminate",
    ]
    assert {t.reasoning for t in made.turns} == {""}
    assert {r.source for t in made.turns for r in t.results} == {ResultSource.WIRE}
    assert made.turns[1].results[0].content == json.dumps(listing(1), separators=(",", ":"))
    assert made.left_out == LeftOut(completions=1)


def test_the_quoting_of_the_wire_is_undone() -> None:
    made = trajectory_of(pipeline().trace, axis="B")
    assert json.loads(made.turns[0].calls[0].arguments) == {"q": "canvas bag", "page": "1"}


def test_what_only_the_dialogue_recommends_is_a_call_and_copies_are_one() -> None:
    said: list[Json] = [
        step("x", call("recommend_product", product_ids="1")),
        step("x", call("recommend_product", product_ids=["1"]), call("terminate")),
    ]
    made = trajectory_of(pipeline().trace, axis="B", dialogue=said)
    last = [(c.name, c.arguments) for t in made.turns[2:] for c in t.calls]
    assert last == [
        ("recommend_product", '{"product_ids":"1"}'),
        ("terminate", '{"status":"success"}'),
    ]
    assert all(t.results for t in made.turns)


def test_the_thinking_of_the_completion_that_emitted_a_call_stands_in_its_turn() -> None:
    build = TraceBuilder()
    TagAgent(build).play(GOOD[:2])
    build.wire("find_product", listing(9), q="made by code")
    made = trajectory_of(build.trace, axis="B")
    assert [t.reasoning for t in made.turns] == [GOOD[0].think, GOOD[1].think, ""]


def test_the_calls_of_one_completion_are_one_turn() -> None:
    build = TraceBuilder()
    both = Move("I search for both of them at once.", (find("a", 1), find("b", 2)))
    TagAgent(build).play([both])
    build.wire("find_product", listing(9), q="made by code")
    made = trajectory_of(build.trace, axis="B")
    assert [[c.id for c in t.calls] for t in made.turns] == [["call_1", "call_2"], ["call_3"]]
    assert [len(t.results) for t in made.turns] == [2, 1]


def test_a_run_that_dispatched_nothing_has_no_trajectory() -> None:
    build = TraceBuilder()
    build.llm([{"role": "user", "content": "Hello."}], "Hello yourself, and good day to you.")
    assert reject_of(build.trace, axis="B").reason is Reason.NO_CALL


def test_a_run_cut_before_its_recommendation_is_refused() -> None:
    cut: JsonObject = {"code": "agent.timeout"}
    assert reject_of(pipeline().trace, axis="B", failure=cut).reason is Reason.CUT_OFF
