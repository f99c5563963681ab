"""Both refusals of the coefficient gate, and each of the five hard rejects."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from corpus_export.features import features
from corpus_export.gates import (
    MAX_TOKENS,
    MIN_COEFFICIENT,
    coefficient_gate,
    not_one_recommendation,
    refused,
    stopped_thinking,
    too_long,
    unanswered_call,
    unresolved_recommendation,
)
from corpus_export.tokens import open_tokens
from corpus_export.types import Reason, Reject, Stage, ToolCall, Trajectory
from scoring.coefficient import coefficient
from tests.unit.corpus_export.builders import (
    GOOD,
    Called,
    Move,
    NativeAgent,
    TagAgent,
    find,
    recommend,
    terminate,
    trajectory,
    trajectory_of,
    view,
)
from tests.unit.corpus_export.normalise.test_observations import Shelf


def gate(made: Trajectory, max_tokens: int = MAX_TOKENS) -> Reason | None:
    reject = refused(made, features(made, open_tokens(None)), Shelf(), max_tokens)
    return reject.reason if reject else None


def reason(reject: Reject | None) -> Reason | None:
    return reject.reason if reject else None


@pytest.mark.parametrize("agent", [NativeAgent, TagAgent])
def test_a_good_run_passes_all_five(agent: type[NativeAgent] | type[TagAgent]) -> None:
    assert gate(trajectory_of(agent().play(GOOD))) is None


def test_an_unjudged_run_is_refused_and_is_no_zero() -> None:
    reject = coefficient_gate(None, why="judge.all_failed")
    assert reject == Reject(Reason.UNJUDGED, "judge.all_failed")
    assert reason(coefficient_gate(0.3)) is Reason.LOW_COEFFICIENT


def test_a_coefficient_below_the_threshold_is_refused() -> None:
    assert coefficient_gate(MIN_COEFFICIENT) is None
    assert reason(coefficient_gate(MIN_COEFFICIENT - 0.0001)) is Reason.LOW_COEFFICIENT
    assert coefficient_gate(0.5, minimum=0.5) is None


def test_the_default_threshold_lies_between_two_rungs_of_the_judges_tree() -> None:
    assert coefficient_gate(coefficient(0.7)) is None
    assert reason(coefficient_gate(coefficient(0.5))) is Reason.LOW_COEFFICIENT


def test_1_a_call_that_is_not_answered_in_the_next_turn_is_refused() -> None:
    agent = NativeAgent()
    agent.speak(Move("I search twice at once, then.", (find("bag", 1), find("linen", 2))))
    agent.show(0, [])
    made = trajectory_of(agent.play(GOOD[1:]))
    reject = unanswered_call(made)
    assert reject == Reject(Reason.UNANSWERED_CALL, "turn 1: find_product")
    assert gate(made) is Reason.UNANSWERED_CALL


def test_1_a_run_that_ends_on_an_unanswered_call_is_refused() -> None:
    moves = [*GOOD[:3], Move("One more look, since I can.", (view(2),))]
    agent = NativeAgent()
    agent.play(moves[:3])
    agent.speak(moves[3])
    assert gate(trajectory_of(agent.build.trace)) is Reason.UNANSWERED_CALL


@pytest.mark.parametrize(
    ("moves", "count"),
    [
        ((*GOOD[:2], GOOD[3]), 0),
        ((*GOOD[:3], Move("Or rather number 2.", (recommend(2),)), GOOD[3]), 2),
        ((*GOOD[:2], Move("Both at once.", (recommend(1), recommend(1))), GOOD[3]), 2),
    ],
)
def test_2_anything_but_one_recommendation_is_refused(moves: tuple[Move, ...], count: int) -> None:
    made = trajectory_of(TagAgent().play(moves))
    assert not_one_recommendation(made) == Reject(
        Reason.RECOMMENDATIONS, f"{count} recommendations"
    )
    assert gate(made) is Reason.RECOMMENDATIONS


@pytest.mark.parametrize(
    "arguments",
    ['{"product_ids": "1"', "[1]", "{}", '{"product_ids": {"a": 1}}', '{"product_ids": " , "}'],
)
def test_3_a_recommendation_that_does_not_parse_is_refused(arguments: str) -> None:
    made = trajectory(*GOOD)
    last = made.turns[2]
    broken = replace(last, calls=(ToolCall(last.calls[0].id, "recommend_product", arguments),))
    made = replace(made, turns=(*made.turns[:2], broken, made.turns[3]))
    assert gate(made) is Reason.BAD_RECOMMENDATION


@pytest.mark.parametrize("ids", [["404"], ["1", "404"], ["1; DROP"]])
def test_3_an_id_that_the_search_cannot_return_is_refused(ids: list[str]) -> None:
    made = trajectory(*GOOD[:2], Move("These.", (recommend(*ids),)), GOOD[3])
    reject = unresolved_recommendation(made, {"1", "2"}.__contains__)
    assert reason(reject) is Reason.BAD_RECOMMENDATION
    assert gate(made) is Reason.BAD_RECOMMENDATION


@pytest.mark.parametrize("ids", ["2, 1", ["1", 2], 1, "1,1"])
def test_3_ids_in_any_form_that_the_tool_takes_resolve(ids: str | int | list[str | int]) -> None:
    called = Called("recommend_product", {"product_ids": ids}, "ok")  # type: ignore[dict-item]
    assert gate(trajectory(*GOOD[:2], Move("These.", (called,)), GOOD[3])) is None


def test_4_more_tokens_than_the_trainer_takes_are_refused() -> None:
    made = trajectory(*GOOD)
    tokens = features(made, open_tokens(None)).tokens
    assert gate(made, tokens) is None
    assert gate(made, tokens - 1) is Reason.TOO_LONG
    assert too_long(14_336) is None
    assert reason(too_long(14_337)) is Reason.TOO_LONG


@pytest.mark.parametrize(
    "last",
    [
        Move("I could go on thinking about this."),
        Move("", (), "I recommended number 1 to you, as you know."),
        Move("Let me look at it once more.", (view(1),)),
    ],
    ids=["thinks", "talks", "calls"],
)
def test_5_a_run_that_stops_without_recommending_or_terminating_is_refused(last: Move) -> None:
    made = trajectory_of(NativeAgent().play([*GOOD[:3], last]))
    assert reason(stopped_thinking(made)) is Reason.STOPPED_THINKING
    assert gate(made) is Reason.STOPPED_THINKING


def test_5_a_run_may_stop_on_its_recommendation() -> None:
    assert gate(trajectory_of(NativeAgent().play(GOOD[:3]))) is None


def test_the_five_are_asked_in_the_papers_order() -> None:
    bad = trajectory(Move("I stop here.", (recommend(404), recommend(404))), Move("Hm."))
    unanswered = replace(bad, turns=(replace(bad.turns[0], results=()), bad.turns[1]))
    single = trajectory(Move("I stop here.", (recommend(404),)), Move("Hm."))
    known = trajectory(Move("I stop here.", (recommend(1),)), Move("Hm."))
    assert [gate(t, 1) for t in (unanswered, bad, single, known)] == [
        Reason.UNANSWERED_CALL,
        Reason.RECOMMENDATIONS,
        Reason.BAD_RECOMMENDATION,
        Reason.TOO_LONG,
    ]


def test_every_reason_names_its_stage() -> None:
    assert all(r.stage in Stage for r in Reason)
    assert Reason.LOST_CONTEXT.stage is Stage.NORMALISE


def test_a_reject_quotes_little_of_what_an_agent_wrote() -> None:
    long = trajectory(Move("x", (Called("recommend_product", {"product_ids": "9" * 9000}, "ok"),)))
    reject = refused(long, features(long, open_tokens(None)), Shelf())
    assert reject is not None
    assert len(reject.detail) < 200
    assert terminate().name not in json.dumps(reject.detail)
